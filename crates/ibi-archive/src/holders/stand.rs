//! What an Archive durably knows of an item, for hand-overs; and the steps of a hand-over that change it.

use ibi_store::journal::{Entry, LinkStatement, State, Verb};

use super::handover::{self, No, Stand, Take, Terms};
use crate::ArchiveError;
use crate::archive::{Archive, Holding, Holdings};
use crate::object::short;
use crate::restate::Restated;

/// What an item's history calls a hand-over that was granted here, and one that was accepted.
fn granted_key(handover: &str) -> String {
    format!("grant:{handover}")
}

fn accepted_key(handover: &str) -> String {
    format!("accept:{handover}")
}

/// The hand-over that was granted last, if nothing has ended it.
fn pending(events: &[Entry]) -> Option<&Entry> {
    let ends = [Verb::Grant, Verb::Given, Verb::Accept, Verb::Declare, Verb::Drop];
    events.iter().rev().find(|event| ends.contains(&event.verb)).filter(|event| event.verb == Verb::Grant)
}

/// The epoch in which the operator declares an item the Original: after all that is known of. A lie about it leaves room.
pub(crate) fn next_epoch(stand: &Stand, holding: &Holding) -> u64 {
    const LIE: u64 = 1 << 48;
    let heard = if holding.epoch < LIE { holding.epoch } else { 0 };
    stand.epoch.max(heard).saturating_add(1)
}

/// Whether the epoch of an event is of this Archive's making, and not what another one told.
const fn is_own(verb: Verb) -> bool {
    !matches!(verb, Verb::Copy | Verb::Refresh | Verb::Repair | Verb::Given | Verb::Drop | Verb::Link)
}

impl Holdings {
    /// What is durably known of the item at a path.
    pub fn stand(&self, path: &str) -> Result<Stand, ArchiveError> {
        let events = self.records.events(path)?;
        let record = self.records.item(path)?;
        let transferable = match &record {
            Some(_) => self.item(path)?.item.transferable,
            None => true,
        };
        let granted = pending(&events).and_then(|event| event.key.as_deref());
        Ok(Stand {
            state: record.as_ref().map(|record| record.state),
            epoch: events
                .iter()
                .filter(|event| is_own(event.verb))
                .map(|event| event.epoch)
                .max()
                .unwrap_or(0),
            inventory: record.map(|record| record.inventory),
            restored: self.restored,
            transferable,
            granted: granted.map(|key| key.strip_prefix("grant:").unwrap_or(key).to_owned()),
        })
    }

    /// What was granted here and not answered yet, and to whom.
    pub fn granted(&self, path: &str) -> Result<Option<(Terms, String)>, ArchiveError> {
        let events = self.records.events(path)?;
        Ok(pending(&events).and_then(|event| {
            let handover = event.key.as_deref()?.strip_prefix("grant:")?.to_owned();
            let terms = Terms { handover, epoch: event.epoch, inventory: event.inventory.clone() };
            Some((terms, event.to.clone()?))
        }))
    }

    /// Whether a hand-over was ever granted here.
    pub fn was_granted(&self, handover: &str) -> Result<bool, ArchiveError> {
        Ok(self.made_by(&granted_key(handover))?.is_some())
    }

    /// Whether the taker of a hand-over has said that it has the Original.
    pub fn has_given(&self, handover: &str) -> Result<bool, ArchiveError> {
        Ok(self.made_by(&format!("given:{handover}"))?.is_some())
    }

    /// What happened to an item, told to another Archive: each event says where.
    #[cfg(feature = "web")]
    pub(crate) fn told_history(&self, path: &str) -> Result<Vec<crate::told::Event>, ArchiveError> {
        let here = self.settings().service.primary();
        let events = crate::told::history(self, path)?.into_iter().map(|mut event| {
            event.at.get_or_insert_with(|| here.to_owned());
            event
        });
        Ok(events.collect())
    }

    /// Whether a hand-over of the item at a path was accepted here before.
    pub fn has_accepted(&self, path: &str, handover: &str) -> Result<bool, ArchiveError> {
        // The giver names it: another may have named one of another item so.
        let key = accepted_key(handover);
        Ok(self.records.events(path)?.iter().any(|event| event.key.as_ref() == Some(&key)))
    }

    /// The terms on which an item may be offered now, under a name for the hand-over.
    pub fn terms(&self, label: &str, handover: String) -> Result<(Holding, Terms), ArchiveError> {
        let (holding, _) = self.find(label)?;
        let stand = self.stand(&holding.path)?;
        handover::may_offer(&stand).map_err(|no| self.no_handover(label, &holding.path, no))?;
        let inventory = stand.inventory.unwrap_or_default();
        Ok((holding, Terms { handover, epoch: stand.epoch.saturating_add(1), inventory }))
    }

    /// Why there is no hand-over, told to a person.
    pub(crate) fn no_handover(&self, label: &str, path: &str, no: No) -> ArchiveError {
        let label = label.to_owned();
        match no {
            No::Restored => ArchiveError::Restored,
            No::Granted => {
                let to = self.given_to(path).ok().flatten().unwrap_or_default();
                ArchiveError::Granted { label, to }
            }
            no => ArchiveError::NoHandover { label, no },
        }
    }
}

impl Archive {
    /// Step 2 of a hand-over: from here on the item is a Copy here, in the next epoch.
    pub fn grant(&mut self, label: &str, terms: &Terms, to: &str, by: &str) -> Result<(), ArchiveError> {
        let (holding, object) = self.found(label)?;
        let stand = self.holdings.stand(&holding.path)?;
        if stand.granted.as_ref() == Some(&terms.handover) {
            return Ok(());
        }
        handover::may_grant(&stand, terms)
            .map_err(|no| self.holdings.no_handover(label, &holding.path, no))?;
        let restated = Restated {
            to: Some(to.to_owned()),
            key: Some(granted_key(&terms.handover)),
            ..Restated::new(Verb::Grant, State::Copy, terms.epoch, by)
        };
        self.restate(&holding.path, &object, restated)
    }

    /// Step 3 of a hand-over, at the taker: it is the Original here from now on. Tells what is still to be done before that.
    pub fn accept(&mut self, label: &str, terms: &Terms, from: &Given<'_>) -> Result<Take, ArchiveError> {
        let found = match self.found(label) {
            Ok(found) => Some(found),
            Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }) => {
                None
            }
            Err(error) => return Err(error),
        };
        let path = match &found {
            Some((holding, _)) => holding.path.clone(),
            None => crate::item::Spelling::parse(label).map(|label| label.folded).unwrap_or_default(),
        };
        let accepted = self.holdings.has_accepted(&path, &terms.handover)?;
        if accepted {
            return Ok(Take::Accepted);
        }
        let stand = self.holdings.stand(&path)?;
        let take = handover::take(&stand, accepted, terms)
            .map_err(|no| self.holdings.no_handover(label, &path, no))?;
        let Some((holding, object)) = found.filter(|_| take == Take::Accept) else { return Ok(take) };
        // The bytes on disk, and not what is recorded of them.
        if short(&object.digest) != terms.inventory {
            return Ok(Take::Fetch);
        }
        let restated = Restated {
            source: Some(from.url.to_owned()),
            key: Some(accepted_key(&terms.handover)),
            past: from.past.clone(),
            links: self.holdings.link_news(&from.links)?,
            ..Restated::new(Verb::Accept, State::Original, terms.epoch, from.by)
        };
        self.restate(&holding.path, &object, restated)?;
        Ok(Take::Accepted)
    }

    /// Step 4 of a hand-over: the taker has it, and is at this URL now. Tells whether that was waited for.
    pub fn given(&mut self, label: &str, handover: &str, to: &str, by: &str) -> Result<bool, ArchiveError> {
        let (holding, object) = self.found(label)?;
        if self.holdings.stand(&holding.path)?.granted.as_deref() != Some(handover) {
            return Ok(false);
        }
        let (to, key) = (Some(to.to_owned()), Some(format!("given:{handover}")));
        let restated = Restated { to, key, ..Restated::new(Verb::Given, State::Copy, holding.epoch, by) };
        self.restate(&holding.path, &object, restated).map(|()| true)
    }

    /// The operator's word that the taker is gone for ever: the Original is here again, in a later epoch.
    pub fn taker_destroyed(&mut self, label: &str, by: &str) -> Result<(), ArchiveError> {
        let (holding, object) = self.found(label)?;
        let stand = self.holdings.stand(&holding.path)?;
        if stand.granted.is_none() {
            let what = format!(
                "{label} is not being handed over: there is no taker to wait for, and `ibi archive show {label}` tells who was \
                 given it"
            );
            return Err(ArchiveError::NotHandedOver(what));
        }
        if stand.restored {
            return Err(ArchiveError::Restored);
        }
        let to = self.holdings.given_to(&holding.path)?.unwrap_or_default();
        let note = Some(format!("the taker {to} is gone for ever"));
        let restated = Restated {
            note,
            ..Restated::new(Verb::Declare, State::Original, next_epoch(&stand, &holding), by)
        };
        self.restate(&holding.path, &object, restated)
    }

    /// Takes a copy out of this Archive.
    pub fn drop_copy(&mut self, label: &str, by: &str, note: Option<String>) -> Result<(), ArchiveError> {
        let (holding, _) = self.holdings.find(label)?;
        let stand = self.holdings.stand(&holding.path)?;
        handover::may_drop(&stand).map_err(|no| match no {
            No::IsOriginal => ArchiveError::NotHandedOver(format!(
                "{label} is the Original: it is handed over (`ibi archive transfer`) or removed (`ibi archive remove`)"
            )),
            No::Removed => ArchiveError::Removed { label: label.to_owned() },
            no => self.holdings.no_handover(label, &holding.path, no),
        })?;
        self.take_out(&holding, by, note)
    }
}

/// Who hands an item over.
#[derive(Debug, Clone)]
pub struct Given<'a> {
    /// The giver.
    pub url: &'a str,
    /// Who there said so.
    pub by: &'a str,
    /// What had happened to it there.
    pub past: Option<String>,
    /// What is known there of its links, proposals too.
    pub links: Vec<LinkStatement>,
}

impl Holdings {
    /// Where a copy was brought from, or brought up to date from, last.
    pub fn source(&self, path: &str) -> Result<Option<String>, ArchiveError> {
        let brought = [Verb::Copy, Verb::Refresh, Verb::Given, Verb::Drop];
        let events = self.records.events(path)?;
        let last = events.into_iter().rev().find(|event| brought.contains(&event.verb));
        // Who gave the Original away has its copy from who has the Original.
        Ok(last.and_then(|event| event.source.or(event.to)))
    }
}
