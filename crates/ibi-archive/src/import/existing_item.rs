//! Repositories whose item is already here: metadata found later is added, and a Copy of an earlier
//! import may be declared the Original. A repository is never reported as present when it is not.

use std::io;

use ibi_id::Label;
use ibi_store::digests;
use ibi_store::index::LabelRole;
use ibi_store::journal::State;
use ibi_store::ocfl::logical_path;

use super::{
    ImportDetails, ImportOptions, ImportOutcome, ImportReport, ImportStep, OriginalClaimCheck,
    single_language,
};
use super::{LateMetadata, TreeMetadata, TreeRepository};
use crate::ArchiveError;
use crate::archive::{Archive, HeldItem};
use crate::deposit::{DepositSource, has_own_prefix};
use crate::dublin_core::Element;
use crate::item::{ItemDescription, LabelKey};
use crate::prepared_change::PreparedChange;
use crate::update::ItemChanges;

/// What `--original` says of an item without files: the service of an Archive has none, and is
/// never the Original of another one (clause 2).
pub(super) const STAYS_COPY_NOTE: &str = "it has no files, and may be the service of an Archive: it stays a Copy. \
    If it is not a service, `ibi archive update LABEL --original` declares it the Original";

impl Archive {
    /// What is to be done with a repository whose item is here; nothing if it is not.
    pub(super) fn existing_item_step(
        &mut self,
        repository: &TreeRepository,
        options: &ImportOptions,
        claim: &mut OriginalClaimCheck<'_>,
        details: &mut ImportDetails,
    ) -> Result<Option<ImportStep>, ArchiveError> {
        let Some(holding) = self.find_existing_item(repository)? else { return Ok(None) };
        details.metadata = Some(holding.item.metadata.primary().to_owned());
        let declared = options.original
            && holding.state == State::Copy
            && self.declare_existing_item(&repository.label, &holding, options, claim, details)?;
        if let Some(metadata) = &repository.metadata {
            let holding = self.holdings.item(&holding.path)?;
            let late =
                self.late_metadata_step(&holding, metadata, options, details).map_err(
                    |error| match error {
                        error if declared && !options.dry => {
                            ArchiveError::Value(format!("it is declared the Original now, but: {error}"))
                        }
                        error => error,
                    },
                )?;
            if late.is_some() {
                return Ok(late);
            }
        }
        let path = holding.path;
        Ok(Some(ImportStep::Done(match declared {
            true if options.dry => ImportOutcome::Possible,
            true => ImportOutcome::Declared { path },
            false => ImportOutcome::Already { path },
        })))
    }

    /// Takes metadata whose item is in no tree, but in the Archive.
    pub fn import_late_metadata(
        &mut self,
        late: &LateMetadata,
        options: &ImportOptions,
    ) -> Result<ImportReport, ArchiveError> {
        let mut details = ImportDetails::default();
        let outcome = match self.apply_late_metadata(late, options, &mut details) {
            Ok(outcome) => outcome,
            Err(error) => ImportOutcome::Refused(error),
        };
        if self.stopped { Err(ArchiveError::Stopped) } else { Ok(ImportReport { outcome, details }) }
    }

    fn apply_late_metadata(
        &mut self,
        late: &LateMetadata,
        options: &ImportOptions,
        details: &mut ImportDetails,
    ) -> Result<ImportOutcome, ArchiveError> {
        let mut paths = Vec::new();
        for name in &late.names {
            match self.holdings.find(name) {
                // A record that names other metadata is not of the item that those describe.
                Ok((_, LabelRole::Metadata)) | Err(ArchiveError::Unknown { .. }) => {}
                Ok((holding, _)) => paths.push(holding.path),
                Err(error) => return Err(error),
            }
        }
        paths.sort();
        paths.dedup();
        let holding = match &paths[..] {
            [one] => self.holdings.item(one)?,
            [] => {
                let names = late.names.join(", ");
                let what = format!("metadata of {names}, which is neither in this tree nor in this Archive");
                return Err(ArchiveError::Value(what));
            }
            several => {
                let what = format!("its record names several items of this Archive: {}", several.join(", "));
                return Err(ArchiveError::Value(what));
            }
        };
        if holding.state == State::Deleted {
            return Err(ArchiveError::Removed { label: holding.item.labels.primary().to_owned() });
        }
        details.metadata = Some(holding.item.metadata.primary().to_owned());
        match self.late_metadata_step(&holding, &late.metadata, options, details)? {
            None => Ok(ImportOutcome::Already { path: holding.path }),
            Some(ImportStep::Done(outcome)) => Ok(outcome),
            Some(ImportStep::Staged(change) | ImportStep::Describing(change)) => {
                let path = self.commit(vec![*change]).into_iter().collect::<Result<Vec<_>, _>>()?;
                Ok(ImportOutcome::Described { path: path.into_iter().next().unwrap_or_default() })
            }
        }
    }

    /// The item that the label leads to. Nothing is duplicated, and no repository is reported as
    /// present because of another one whose label is the same identifier (clause 1.3).
    fn find_existing_item(&self, repository: &TreeRepository) -> Result<Option<HeldItem>, ArchiveError> {
        let label = &repository.label;
        let spelling = LabelKey::parse(label)
            .map_err(|error| ArchiveError::Label { label: label.escape_debug().to_string(), error })?;
        if repository.spelled_twice && self.holdings.records.find_exact(&spelling.folded)?.is_none() {
            return Ok(None);
        }
        let (holding, role) = match self.holdings.find(label) {
            Ok(found) => found,
            Err(ArchiveError::Unknown { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let item = holding.item.labels.primary();
        if holding.state == State::Deleted {
            return Err(ArchiveError::Removed { label: label.clone() });
        }
        if role == LabelRole::Metadata {
            return Err(ArchiveError::Taken { label: label.clone(), item: item.to_owned() });
        }
        let is_itself = holding.item.labels.iter().any(|own| own == label)
            || (!repository.spelled_twice && self.has_same_files(&holding, repository)?);
        if is_itself {
            return Ok(Some(holding));
        }
        Err(ArchiveError::Value(format!(
            "{label} is a label of {item} here, another repository: not imported. If both are one item, \
             `ibi archive update {item} DIR` adds the files of this one"
        )))
    }

    fn has_same_files(&self, holding: &HeldItem, repository: &TreeRepository) -> Result<bool, ArchiveError> {
        let source = DepositSource::plain_folder(&repository.folder.join("doc"))?;
        if self.holdings.files(&holding.path, "", source.files().len() + 1)?.len() != source.files().len()
            || source.size() != self.holdings.size(&holding.path)?
        {
            return Ok(false);
        }
        for file in source.files() {
            let Ok(name) = logical_path(file.name()) else { return Ok(false) };
            let Some(held) = self.holdings.file(&holding.path, &name)? else { return Ok(false) };
            match digests::copy_and_digest(&mut file.open(&|_| ())?, &mut io::sink()) {
                Ok(found) if found.sha512 == held.sha512 => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Declares a Copy of an earlier import the Original, if nobody claims it (clause 2.1). Whether
    /// it was, or would be.
    fn declare_existing_item(
        &mut self,
        label: &str,
        holding: &HeldItem,
        options: &ImportOptions,
        claim: &mut OriginalClaimCheck<'_>,
        details: &mut ImportDetails,
    ) -> Result<bool, ArchiveError> {
        if self.holdings.files(&holding.path, "", 1)?.is_empty() && holding.item.url.is_none() {
            details.note = Some(STAYS_COPY_NOTE.to_owned());
            return Ok(false);
        }
        if let Some(source) = self.holdings.replica_source(&holding.path)? {
            return Err(ArchiveError::Value(format!(
                "it is here as a Copy that came from {source}, not from a tree: `ibi archive update {label} \
                 --original` declares it the Original"
            )));
        }
        claim(label)?;
        details.note = Some("was a Copy, now the Original".to_owned());
        if !options.dry {
            self.declare_original(&holding.path, &options.by)?;
        }
        Ok(true)
    }

    /// Adds metadata found after the item; `None` if the item already has it. The metadata keeps
    /// the label that it got (labels are permanent), and the label of the metadata repository
    /// becomes an alias of the item.
    fn late_metadata_step(
        &mut self,
        holding: &HeldItem,
        metadata: &TreeMetadata,
        options: &ImportOptions,
        details: &mut ImportDetails,
    ) -> Result<Option<ImportStep>, ArchiveError> {
        let (item, label) = (&holding.item, &metadata.label);
        let spelling = LabelKey::parse(label)
            .map_err(|error| ArchiveError::Label { label: label.escape_debug().to_string(), error })?;
        let found = self.holdings.records.find(&spelling.folded, &spelling.canonical)?;
        if let Some(other) = found.iter().find(|found| found.path != holding.path) {
            return Err(ArchiveError::Taken { label: label.clone(), item: other.path.clone() });
        }
        if !found.is_empty() {
            return Ok(None);
        }
        let (name, own) = (item.labels.primary(), item.metadata.primary());
        if !self.has_placeholder_metadata(holding)? {
            return Err(ArchiveError::Value(format!(
                "{name} already has metadata here, {own}: those of the repository {label} were not \
                 imported. To use them, run `ibi archive update {name} --dc FILE --alias {label}` at the Archive that has the Original"
            )));
        }
        let before = details.note.take().map(|note| format!("{note}; ")).unwrap_or_default();
        details.note = Some(format!(
            "{before}takes the metadata of {label}, which came after it: they keep the label {own}, and {label} \
             leads to the item as an alias"
        ));
        if options.dry {
            return Ok(Some(ImportStep::Done(ImportOutcome::Possible)));
        }
        let changes = ItemChanges {
            language: item.language.is_none().then(|| single_language(&metadata.record)),
            record: Some(metadata.record.clone()),
            aliases: vec![label.clone()],
            ..ItemChanges::default()
        };
        let change = self.prepare_late_metadata(&holding.path, changes, &options.by)?;
        Ok(change.map(|change: PreparedChange| ImportStep::Describing(Box::new(change))))
    }

    /// Whether the metadata of an item are those that an import makes up, of which nobody else has
    /// a version: a label of this Archive, and the label of the item for a title.
    fn has_placeholder_metadata(&self, holding: &HeldItem) -> Result<bool, ArchiveError> {
        let subsystem = ibi_mint::read_state(&self.holdings.data)?.subsystem;
        let ItemDescription { labels, metadata, .. } = &holding.item;
        let minted_here =
            metadata.iter().all(|own| Label::parse(own).is_ok_and(|own| has_own_prefix(&subsystem, &own)));
        let only_a_title = match holding.metadata.statements() {
            [one] => one.element() == Element::Title && labels.iter().any(|label| label == one.value()),
            _ => false,
        };
        let is_from_here = !self.holdings.restored && self.holdings.replica_source(&holding.path)?.is_none();
        let is_free = self.holdings.open_grant(&holding.path)?.is_none();
        Ok(minted_here && only_a_title && is_from_here && is_free)
    }
}
