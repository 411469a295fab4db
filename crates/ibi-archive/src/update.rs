//! Updates and removals create new versions of items. Nothing deposited is overwritten (clause
//! 2.2).

use std::collections::HashSet;

use ibi_store::index::LabelRole;
use ibi_store::journal::{State, Verb};

use crate::ArchiveError;
use crate::access::AccessRule;
use crate::archive::{Archive, HeldItem};
use crate::custody::next_epoch;
use crate::deposit::{
    ByteProgress, DepositSource, StagedContent, check_not_future, default_target, resolve_target_name,
};
use crate::dublin_core::{DublinCore, MetadataStatement};
use crate::item::{ItemDescription, ItemRemoval, check_alias_count};
use crate::language::Language;
use crate::links::LinkAuthority;
use crate::object::StoredObject;
use crate::ownership::LOCAL_OPERATOR;
use crate::prepared_change::{BaseVersion, PreparedChange, StagedFile, UnmovedClocks};
use crate::state_change::StateChange;
use crate::target_url::TargetUrl;

/// The changes of an update. Unset fields stay as they are.
#[derive(Debug, Clone, Default)]
pub struct ItemChanges {
    /// Replaces all metadata.
    pub record: Option<DublinCore>,
    /// Replaces the statements of the same elements.
    pub statements: Vec<MetadataStatement>,
    /// The language; `Some(None)` clears it.
    pub language: Option<Option<Language>>,
    /// What it is a translation of; `Some(None)` clears it.
    pub translation_of: Option<Option<String>>,
    /// What it is the next edition of; `Some(None)` clears it.
    pub next_edition_of: Option<Option<String>>,
    /// The file that the persistent URL opens.
    pub target: Option<String>,
    /// A redirect target instead of files; `Some(None)` clears it.
    pub url: Option<Option<TargetUrl>>,
    /// The access rule of its files.
    pub access: Option<AccessRule>,
    /// Aliases to add.
    pub aliases: Vec<String>,
    /// Makes the item non-transferable for good.
    pub non_transferable: bool,
}

impl ItemChanges {
    /// Whether no change is set.
    pub fn is_empty(&self) -> bool {
        let Self {
            record,
            statements,
            language,
            translation_of,
            next_edition_of,
            target,
            url,
            access,
            aliases,
            non_transferable,
        } = self;
        record.is_none()
            && statements.is_empty()
            && language.is_none()
            && translation_of.is_none()
            && next_edition_of.is_none()
            && target.is_none()
            && url.is_none()
            && access.is_none()
            && aliases.is_empty()
            && !non_transferable
    }
}

/// The description of the next version.
struct NextVersion {
    item: ItemDescription,
    metadata: DublinCore,
    target_is_given: bool,
    url_is_given: bool,
}

impl Archive {
    /// Prepares a new version of an item; `None` if it would equal the current one. Without a
    /// source, the files stay.
    pub fn prepare_update(
        &mut self,
        label: &str,
        source: Option<&DepositSource>,
        changes: ItemChanges,
        by: &str,
        progress: ByteProgress<'_>,
    ) -> Result<Option<PreparedChange>, ArchiveError> {
        let (holding, object) = self.find_changeable(label)?;
        let next = self.describe_next_version(&object, changes)?;
        let source = source.filter(|source| !source.files().is_empty());
        let staged =
            self.stage(source.unwrap_or(&DepositSource::empty()), Some(&object.inventory), progress)?;
        self.new_version((holding, object), next, staged, source.is_none(), by)
    }

    /// Prepares a version of an imported item, also of a Copy, with metadata that was found after
    /// it. Its data and the clock of its data do not change (D32).
    pub(crate) fn prepare_late_metadata(
        &mut self,
        path: &str,
        changes: ItemChanges,
        by: &str,
    ) -> Result<Option<PreparedChange>, ArchiveError> {
        let (holding, object) = self.find_with_object(path)?;
        let data = object.item.data_time().to_owned();
        let next = self.describe_next_version(&object, changes)?;
        let staged = self.stage(&DepositSource::empty(), Some(&object.inventory), &|_| ())?;
        let change = self.new_version((holding, object), next, staged, true, by)?;
        Ok(change.map(|change| {
            let unmoved = UnmovedClocks { data: Some(data), ..change.unmoved };
            PreparedChange { unmoved, ..change }
        }))
    }

    #[cfg(feature = "web")]
    /// Like [`Archive::prepare_update`], with uploaded files as the complete list of files.
    pub(crate) fn prepare_update_uploaded(
        &mut self,
        label: &str,
        uploads: &[crate::deposit::UploadedFile],
        changes: ItemChanges,
        by: &str,
    ) -> Result<Option<PreparedChange>, ArchiveError> {
        let (holding, object) = self.find_changeable(label)?;
        let next = self.describe_next_version(&object, changes)?;
        let staged = self.stage_uploads(uploads, Some(&object.inventory))?;
        self.new_version((holding, object), next, staged, false, by)
    }

    /// Builds the description of the next version.
    fn describe_next_version(
        &self,
        object: &StoredObject,
        changes: ItemChanges,
    ) -> Result<NextVersion, ArchiveError> {
        let minter = ibi_mint::read_state(&self.holdings.data)?;
        check_alias_count(object.item.aliases.len().saturating_add(changes.aliases.len()))?;
        changes.aliases.iter().try_for_each(|alias| check_not_future(&minter, alias).map(drop))?;
        let item = apply_changes(&object.item, &changes);
        let metadata = match changes.record {
            Some(record) => record,
            None => replace_statements(&object.metadata, changes.statements)?,
        };
        let url_is_given = changes.url.as_ref().is_some_and(Option::is_some);
        Ok(NextVersion { item, metadata, target_is_given: changes.target.is_some(), url_is_given })
    }

    fn new_version(
        &self,
        (holding, object): (HeldItem, StoredObject),
        NextVersion { mut item, metadata, target_is_given, url_is_given }: NextVersion,
        StagedContent { staging, mut files }: StagedContent,
        files_stay: bool,
        by: &str,
    ) -> Result<Option<PreparedChange>, ArchiveError> {
        if files_stay && !url_is_given {
            files = kept_files(&object);
        }
        // An item has a target file or a target URL (clause 2.2): setting one clears the other. The
        // change rules refuse both at once.
        if !files_stay && !files.is_empty() && !url_is_given {
            item.url = None;
        }
        if item.url.is_some() && !target_is_given {
            item.target = None;
        } else if files_stay && !url_is_given {
            // The files stay, and so does the target file.
        } else if item
            .target
            .as_ref()
            .is_none_or(|target| !files.iter().any(|file| file.file.path == *target))
            && !target_is_given
        {
            // The target file is gone, or there was none.
            item.target = default_target(&files);
        }
        item.target = item.target.map(|target| resolve_target_name(target, &files));
        let same_files = files.iter().map(|file| &file.file).eq(&object.item.files)
            && kept_files(&object).iter().map(|file| &file.sha512).eq(files.iter().map(|file| &file.sha512));
        if same_files && item == object.item && metadata == object.metadata {
            self.holdings.content.discard(&staging)?;
            return Ok(None);
        }
        let base = BaseVersion::of(&holding, &object);
        let unmoved = unmoved_clocks(&object, &item, same_files, metadata == object.metadata);
        Ok(Some(PreparedChange {
            unmoved,
            staging,
            verb: Verb::Update,
            base: Some(base),
            item,
            metadata,
            files,
            state: holding.state,
            epoch: holding.epoch,
            by: by.to_owned(),
            owner: Some(LOCAL_OPERATOR.to_owned()),
            note: None,
            key: None,
            source: None,
            source_state: None,
            past: None,
            mint: false,
            whole: None,
            authority: LinkAuthority::Operator,
            links: Vec::new(),
        }))
    }

    /// Prepares the removal of an item: a tombstone with its last metadata. `purge` also destroys
    /// all other content at once.
    pub fn prepare_removal(
        &mut self,
        label: &str,
        reason: &str,
        by: &str,
        purge: bool,
    ) -> Result<PreparedChange, ArchiveError> {
        if purge {
            ibi_store::reserve::release_if_needed(&self.holdings.data)?;
        }
        if let (holding, LabelRole::Metadata) = self.holdings.find(label)? {
            let item = holding.item.labels.primary().to_owned();
            return Err(ArchiveError::IsMetadata { label: label.to_owned(), item });
        }
        let (holding, object) = self.find_with_object(label)?;
        if holding.state == State::Copy {
            let is_copy = ArchiveError::RemoveCopy { label: label.to_owned() };
            return Err(self.not_original_error(label, &holding.path, is_copy));
        }
        if holding.path
            == self.holdings.lookup(self.holdings.settings.service.primary())?[..]
                .first()
                .map_or("", |found| &found.path)
        {
            return Err(ArchiveError::IsService { label: label.to_owned() });
        }
        let purged = object.item.removed.as_ref().is_some_and(|removed| removed.purged);
        if holding.state == State::Deleted && (!purge || purged) {
            return Err(ArchiveError::Removed { label: label.to_owned() });
        }
        if purge {
            // Partial downloads that a killed process left behind.
            let _ = std::fs::remove_dir_all(crate::archive::partial_fetch_folder(
                &self.holdings.data,
                &holding.path,
            ));
        }
        let at = self.now().to_string();
        // An earlier removal keeps its date and reason; the history records the purge.
        let before = object.item.removed.clone();
        let removed = before.unwrap_or_else(|| ItemRemoval {
            at,
            by: by.to_owned(),
            reason: reason.to_owned(),
            purged: purge,
        });
        let removed = ItemRemoval { purged: purge, ..removed };
        let base = BaseVersion::of(&holding, &object);
        Ok(PreparedChange {
            // A removal advances both clocks, data and metadata.
            unmoved: UnmovedClocks::default(),
            staging: self.holdings.content.begin_staging()?,
            verb: if purge { Verb::Purge } else { Verb::Remove },
            base: Some(base),
            item: ItemDescription {
                files: Vec::new(),
                target: None,
                url: None,
                removed: Some(removed),
                ..object.item
            },
            metadata: object.metadata,
            files: Vec::new(),
            state: State::Deleted,
            epoch: holding.epoch,
            by: by.to_owned(),
            owner: Some(LOCAL_OPERATOR.to_owned()),
            note: Some(reason.to_owned()),
            key: None,
            source: None,
            source_state: None,
            past: None,
            mint: false,
            whole: None,
            authority: LinkAuthority::Operator,
            links: Vec::new(),
        })
    }

    /// The operator declares a Copy the Original.
    pub fn declare_original(&mut self, label: &str, by: &str) -> Result<(), ArchiveError> {
        let (holding, object) = self.find_with_object(label)?;
        match holding.state {
            State::Original => return Err(ArchiveError::OriginalAnyway),
            State::Deleted => return Err(ArchiveError::Removed { label: label.to_owned() }),
            State::Copy if self.holdings.restored => return Err(ArchiveError::Restored),
            State::Copy => {}
        }
        let stand = self.holdings.custody_state(&holding.path)?;
        if stand.granted.is_some() {
            let to = self.holdings.transfer_recipient(&holding.path)?.unwrap_or_default();
            return Err(ArchiveError::Granted { label: label.to_owned(), to });
        }
        let epoch = next_epoch(&stand, &holding);
        self.change_state(&holding.path, &object, StateChange::new(Verb::Declare, State::Original, epoch, by))
    }

    pub(crate) fn find_with_object(&self, label: &str) -> Result<(HeldItem, StoredObject), ArchiveError> {
        let (holding, _) = self.holdings.find(label)?;
        let object = StoredObject::read(&*self.holdings.content, &holding.path)?;
        let object = object.ok_or_else(|| ArchiveError::DamagedObject {
            path: holding.path.clone(),
            what: "it is not in the tree".to_owned(),
        })?;
        Ok((holding, object))
    }

    /// Finds an item that may get a new version.
    fn find_changeable(&self, label: &str) -> Result<(HeldItem, StoredObject), ArchiveError> {
        let (holding, object) = self.find_with_object(label)?;
        match holding.state {
            State::Original => Ok((holding, object)),
            State::Deleted => Err(ArchiveError::Removed { label: label.to_owned() }),
            State::Copy => {
                let is_copy = ArchiveError::IsCopy { label: label.to_owned() };
                Err(self.not_original_error(label, &holding.path, is_copy))
            }
        }
    }

    /// Why an item that answers Copy cannot be changed here: it may be in transfer, or the Archive
    /// was restored.
    fn not_original_error(&self, label: &str, path: &str, is_copy: ArchiveError) -> ArchiveError {
        match self.holdings.open_grant(path) {
            _ if self.holdings.restored => ArchiveError::Restored,
            Ok(Some((_, to))) => ArchiveError::Granted { label: label.to_owned(), to },
            Ok(None) => is_copy,
            Err(error) => error,
        }
    }
}

/// The clocks that a new version does not advance (D32). A link advances neither (clause 2.4);
/// every other property besides the metadata counts as data.
fn unmoved_clocks(
    object: &StoredObject,
    item: &ItemDescription,
    same_files: bool,
    same_metadata: bool,
) -> UnmovedClocks {
    let linked = ItemDescription {
        translation_of: item.translation_of.clone(),
        next_edition_of: item.next_edition_of.clone(),
        ..object.item.clone()
    };
    let same_data = same_files && linked == *item;
    UnmovedClocks {
        data: same_data.then(|| object.item.data_time().to_owned()),
        metadata: same_metadata.then(|| object.item.metadata_time().to_owned()),
    }
}

fn apply_changes(item: &ItemDescription, changes: &ItemChanges) -> ItemDescription {
    let mut item = item.clone();
    let ItemChanges {
        language,
        translation_of,
        next_edition_of,
        target,
        url,
        access,
        aliases,
        non_transferable,
        ..
    } = changes;
    if let Some(language) = language {
        item.language = *language;
    }
    if let Some(link) = translation_of {
        item.translation_of.clone_from(link);
    }
    if let Some(link) = next_edition_of {
        item.next_edition_of.clone_from(link);
    }
    if target.is_some() {
        item.target.clone_from(target);
    }
    if let Some(url) = url {
        item.url.clone_from(url);
    }
    if let Some(access) = access {
        item.access = access.clone();
    }
    let mut known: HashSet<String> = item.aliases.iter().cloned().collect();
    item.aliases.extend(aliases.iter().filter(|alias| known.insert((*alias).clone())).cloned());
    item.transferable &= !non_transferable;
    item
}

/// Metadata in which `statements` replace those of the same elements.
fn replace_statements(
    metadata: &DublinCore,
    statements: Vec<MetadataStatement>,
) -> Result<DublinCore, ArchiveError> {
    let stays = |old: &&MetadataStatement| !statements.iter().any(|new| new.element() == old.element());
    let all: Vec<MetadataStatement> =
        metadata.statements().iter().filter(stays).cloned().chain(statements.iter().cloned()).collect();
    DublinCore::new(all).map_err(|error| ArchiveError::Value(error.to_string()))
}

/// The files of the current version, carried over to the next.
fn kept_files(object: &StoredObject) -> Vec<StagedFile> {
    let mut digests: Vec<(&str, &str)> = object
        .inventory
        .files()
        .filter_map(|(path, digest, _)| Some((path.strip_prefix(crate::object::DOC_FOLDER)?, digest)))
        .collect();
    digests.sort_unstable();
    let digest = |path: &str| {
        let at = digests.binary_search_by(|(name, _)| (*name).cmp(path));
        at.ok().and_then(|at| digests.get(at)).map(|(_, digest)| (*digest).to_owned())
    };
    let files = object.item.files.iter();
    files
        .map(|file| StagedFile {
            sha512: digest(&file.path).unwrap_or_default(),
            file: file.clone(),
            stored: None,
        })
        .collect()
}
