//! Witnesses: the Archives that can say who has the Original of an item (clause 2.1), and so decide
//! about links to it.
//!
//! An Archive is a witness if it claimed the Original when the first copy ever of the item was made
//! from it; if the resolver named it; or if a witness named it as the taker of the item. Its own
//! claim does not make it a witness of an item already known here, and replaces no witness: any
//! holder of a copy can claim the Original.

use ibi_store::journal::{JournalEntry, State, Verb};

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::links::LinkSource;

/// How far the claims of an item's source are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceStanding {
    /// A witness, or named by one or by the resolver.
    Witness,
    /// It claims the Original, and the item was never known here.
    FirstSource,
    /// It gives the item in a hand-over, and only the operator's word says that it may.
    TrustedGiver,
    /// It has a copy, or only its own claim says more.
    Unproven,
}

impl SourceStanding {
    /// Its role for link statements.
    pub(crate) const fn link_source(self) -> LinkSource {
        match self {
            SourceStanding::Witness | SourceStanding::FirstSource | SourceStanding::TrustedGiver => {
                LinkSource::OriginalHolder
            }
            SourceStanding::Unproven => LinkSource::CopyHolder,
        }
    }
}

/// The Archives to ask for the Original of an item, from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OriginalWitnesses {
    /// The last one that had the Original: proven when a copy came from it, or it was handed over
    /// to it from here.
    pub(crate) source: Option<String>,
    /// The source of the last copy, if it is not known to have had the Original.
    pub(crate) copy_holder: Option<String>,
    /// Whether a copy ever came from an Archive that only had a copy: then another one had the
    /// Original.
    pub(crate) came_from_copy: bool,
}

impl Holdings {
    /// The Archives to ask for the Original of an item, even of a dropped one.
    pub(crate) fn original_witnesses(&self, path: &str) -> Result<OriginalWitnesses, ArchiveError> {
        let brought = [Verb::Copy, Verb::Refresh, Verb::Given];
        let events: Vec<JournalEntry> = self.records.events(path)?;
        let came_from_copy = events.iter().any(|event| event.source_state == Some(State::Copy));
        let mut brought = events.into_iter().rev().filter(|event| brought.contains(&event.verb)).peekable();
        let had_original =
            |event: &JournalEntry| event.verb == Verb::Given || event.source_state == Some(State::Original);
        let last = brought.peek().filter(|event| !had_original(event));
        let copy_holder = last.and_then(|event| event.source.clone());
        let source = brought.find(had_original).and_then(|event| event.source.or(event.to));
        let copy_holder = copy_holder.filter(|url| source.as_ref() != Some(url));
        Ok(OriginalWitnesses { source, copy_holder, came_from_copy })
    }

    /// The current standing of a source, which may have changed since it was determined.
    pub(super) fn current_standing(
        &self,
        path: &str,
        found: SourceStanding,
    ) -> Result<SourceStanding, ArchiveError> {
        Ok(match found {
            SourceStanding::FirstSource if self.records.last_event(path)?.is_some() => {
                SourceStanding::Unproven
            }
            found => found,
        })
    }
}
