//! Updates and removals: new versions of items. Nothing that was deposited is overwritten (clause 2.2).

use ibi_store::journal::{State, Verb};
use ibi_store::records::Role;

use crate::access::Access;
use crate::archive::{Archive, Holding};
use crate::commit::{Base, Prepared, StagedFile, UnmovedClocks};
use crate::deposit::{Progress, Source, Staged, check_not_ahead, default_target, spelled_as};
use crate::dublin_core::{DublinCore, Statement};
use crate::holders::stand::next_epoch;
use crate::item::{Item, Removed};
use crate::language::Language;
use crate::links::LinkAuthority;
use crate::object::Object;
use crate::restate::Restated;
use crate::target_url::TargetUrl;
use crate::{ArchiveError, mint};

/// What is to change; what is not said stays.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Metadata in the place of all there is.
    pub record: Option<DublinCore>,
    /// Statements in the place of those of the same elements.
    pub statements: Vec<Statement>,
    /// The language; nothing takes it away.
    pub language: Option<Option<Language>>,
    /// What it is a translation of, likewise.
    pub translation_of: Option<Option<String>>,
    /// What it is the next edition of, likewise.
    pub next_edition_of: Option<Option<String>>,
    /// The file to open.
    pub target: Option<String>,
    /// Where to lead instead of to files; nothing takes it away.
    pub url: Option<Option<TargetUrl>>,
    /// Who may read it.
    pub access: Option<Access>,
    /// More labels that lead to it.
    pub aliases: Vec<String>,
    /// Whether it may never be handed over from now on.
    pub non_transferable: bool,
}

impl Changes {
    /// Whether nothing is to change.
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

/// What is said of the version to come.
struct Next {
    item: Item,
    metadata: DublinCore,
    target_is_given: bool,
    url_is_given: bool,
}

impl Archive {
    /// Prepares a new version of an item; nothing if it would be the same as the last one. Without a source, its files stay.
    pub fn prepare_update(
        &mut self,
        label: &str,
        source: Option<&Source>,
        changes: Changes,
        by: &str,
        progress: Progress<'_>,
    ) -> Result<Option<Prepared>, ArchiveError> {
        let (holding, object) = self.to_change(label)?;
        let next = self.described(&object, changes)?;
        let source = source.filter(|source| !source.files().is_empty());
        let staged = self.stage(source.unwrap_or(&Source::nothing()), Some(&object.inventory), progress)?;
        self.new_version((holding, object), next, staged, source.is_none(), by)
    }

    /// Prepares a version of an item that an import made, also of a Copy, with the metadata that
    /// came after it. Its data stay as they are, and so does their clock (D32).
    pub(crate) fn prepare_late_metadata(
        &mut self,
        path: &str,
        changes: Changes,
        by: &str,
    ) -> Result<Option<Prepared>, ArchiveError> {
        let (holding, object) = self.found(path)?;
        let data = object.item.data_time().to_owned();
        let next = self.described(&object, changes)?;
        let staged = self.stage(&Source::nothing(), Some(&object.inventory), &|_| ())?;
        let change = self.new_version((holding, object), next, staged, true, by)?;
        Ok(change.map(|change| {
            let unmoved = UnmovedClocks { data: Some(data), ..change.unmoved };
            Prepared { unmoved, ..change }
        }))
    }

    #[cfg(feature = "web")]
    /// The same with files that have arrived: all that the new version has.
    pub(crate) fn prepare_update_uploaded(
        &mut self,
        label: &str,
        uploads: &[crate::deposit::Upload],
        changes: Changes,
        by: &str,
    ) -> Result<Option<Prepared>, ArchiveError> {
        let (holding, object) = self.to_change(label)?;
        let next = self.described(&object, changes)?;
        let staged = self.stage_uploads(uploads, Some(&object.inventory))?;
        self.new_version((holding, object), next, staged, false, by)
    }

    /// What is said of the version to come.
    fn described(&self, object: &Object, changes: Changes) -> Result<Next, ArchiveError> {
        let minter = mint::look(&self.holdings.data)?;
        changes.aliases.iter().try_for_each(|alias| check_not_ahead(&minter, alias).map(drop))?;
        let item = changed(&object.item, &changes);
        let metadata = match changes.record {
            Some(record) => record,
            None => replaced(&object.metadata, changes.statements)?,
        };
        let url_is_given = changes.url.as_ref().is_some_and(Option::is_some);
        Ok(Next { item, metadata, target_is_given: changes.target.is_some(), url_is_given })
    }

    fn new_version(
        &self,
        (holding, object): (Holding, Object),
        Next { mut item, metadata, target_is_given, url_is_given }: Next,
        Staged { staging, mut files }: Staged,
        files_stay: bool,
        by: &str,
    ) -> Result<Option<Prepared>, ArchiveError> {
        if files_stay && !url_is_given {
            files = kept(&object);
        }
        // An item opens a file or leads to a URL (clause 2.2): what is given takes the other's
        // place. Both given at once are refused by the rules.
        if !files_stay && !files.is_empty() && !url_is_given {
            item.url = None;
        }
        if item.url.is_some() && !target_is_given {
            item.target = None;
        } else if files_stay && !url_is_given {
            // Its files stay, and so does the one that it opens.
        } else if item
            .target
            .as_ref()
            .is_none_or(|target| !files.iter().any(|file| file.file.path == *target))
            && !target_is_given
        {
            // The file that it opened is gone, or it had none.
            item.target = default_target(&files);
        }
        item.target = item.target.map(|target| spelled_as(target, &files));
        let same_files = files.iter().map(|file| &file.file).eq(&object.item.files)
            && kept(&object).iter().map(|file| &file.sha512).eq(files.iter().map(|file| &file.sha512));
        if same_files && item == object.item && metadata == object.metadata {
            self.holdings.content.discard(&staging)?;
            return Ok(None);
        }
        let base = Base::of(&holding, &object);
        let unmoved = unmoved(&object, &item, same_files, metadata == object.metadata);
        Ok(Some(Prepared {
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
            note: None,
            key: None,
            source: None,
            past: None,
            mint: false,
            whole: None,
            authority: LinkAuthority::Operator,
            links: Vec::new(),
        }))
    }

    /// Prepares the removal of an item: a tombstone with its last metadata. `purge` destroys all else at once.
    pub fn prepare_removal(
        &mut self,
        label: &str,
        reason: &str,
        by: &str,
        purge: bool,
    ) -> Result<Prepared, ArchiveError> {
        if let (holding, Role::Metadata) = self.holdings.find(label)? {
            let item = holding.item.labels.primary().to_owned();
            return Err(ArchiveError::IsMetadata { label: label.to_owned(), item });
        }
        let (holding, object) = self.found(label)?;
        if holding.state == State::Copy {
            let is_copy = ArchiveError::RemoveCopy { label: label.to_owned() };
            return Err(self.not_the_original(label, &holding.path, is_copy));
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
            // What a copy had fetched of it, and a kill left there.
            let _ = std::fs::remove_dir_all(crate::holders::place(&self.holdings.data, &holding.path));
        }
        let at = self.now().to_string();
        // What was removed before stays removed since then, and for that reason; the history tells of the purge.
        let before = object.item.removed.clone();
        let removed = before.unwrap_or_else(|| Removed {
            at,
            by: by.to_owned(),
            reason: reason.to_owned(),
            purged: purge,
        });
        let removed = Removed { purged: purge, ..removed };
        let base = Base::of(&holding, &object);
        Ok(Prepared {
            // A removal is of both, data and metadata.
            unmoved: UnmovedClocks::default(),
            staging: self.holdings.content.stage()?,
            verb: if purge { Verb::Purge } else { Verb::Remove },
            base: Some(base),
            item: Item { files: Vec::new(), target: None, url: None, removed: Some(removed), ..object.item },
            metadata: object.metadata,
            files: Vec::new(),
            state: State::Deleted,
            epoch: holding.epoch,
            by: by.to_owned(),
            note: Some(reason.to_owned()),
            key: None,
            source: None,
            past: None,
            mint: false,
            whole: None,
            authority: LinkAuthority::Operator,
            links: Vec::new(),
        })
    }

    /// The operator says that a Copy is the Original from now on.
    pub fn declare_original(&mut self, label: &str, by: &str) -> Result<(), ArchiveError> {
        let (holding, object) = self.found(label)?;
        match holding.state {
            State::Original => return Err(ArchiveError::OriginalAnyway),
            State::Deleted => return Err(ArchiveError::Removed { label: label.to_owned() }),
            State::Copy if self.holdings.restored => return Err(ArchiveError::Restored),
            State::Copy => {}
        }
        let stand = self.holdings.stand(&holding.path)?;
        if stand.granted.is_some() {
            let to = self.holdings.given_to(&holding.path)?.unwrap_or_default();
            return Err(ArchiveError::Granted { label: label.to_owned(), to });
        }
        let epoch = next_epoch(&stand, &holding);
        self.restate(&holding.path, &object, Restated::new(Verb::Declare, State::Original, epoch, by))
    }

    pub(crate) fn found(&self, label: &str) -> Result<(Holding, Object), ArchiveError> {
        let (holding, _) = self.holdings.find(label)?;
        let object = Object::read(&*self.holdings.content, &holding.path)?;
        let object = object.ok_or_else(|| ArchiveError::DamagedObject {
            path: holding.path.clone(),
            what: "it is not in the tree".to_owned(),
        })?;
        Ok((holding, object))
    }

    /// An item that may get a new version.
    fn to_change(&self, label: &str) -> Result<(Holding, Object), ArchiveError> {
        let (holding, object) = self.found(label)?;
        match holding.state {
            State::Original => Ok((holding, object)),
            State::Deleted => Err(ArchiveError::Removed { label: label.to_owned() }),
            State::Copy => {
                let is_copy = ArchiveError::IsCopy { label: label.to_owned() };
                Err(self.not_the_original(label, &holding.path, is_copy))
            }
        }
    }

    /// Why an item that answers Copy is not to be changed here: it may be on its way, or its Archive was restored.
    fn not_the_original(&self, label: &str, path: &str, is_copy: ArchiveError) -> ArchiveError {
        match self.holdings.granted(path) {
            _ if self.holdings.restored => ArchiveError::Restored,
            Ok(Some((_, to))) => ArchiveError::Granted { label: label.to_owned(), to },
            Ok(None) => is_copy,
            Err(error) => error,
        }
    }
}

/// Which clocks a new version leaves where they are (D32). A link moves neither (clause 2.4); all
/// else that is said of an item, besides its metadata, is said of its data.
fn unmoved(object: &Object, item: &Item, same_files: bool, same_metadata: bool) -> UnmovedClocks {
    let linked = Item {
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

fn changed(item: &Item, changes: &Changes) -> Item {
    let mut item = item.clone();
    let Changes {
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
    for alias in aliases {
        if !item.aliases.contains(alias) {
            item.aliases.push(alias.clone());
        }
    }
    item.transferable &= !non_transferable;
    item
}

/// Metadata with statements in the place of those of the same elements.
fn replaced(metadata: &DublinCore, statements: Vec<Statement>) -> Result<DublinCore, ArchiveError> {
    let stays = |old: &&Statement| !statements.iter().any(|new| new.element() == old.element());
    let all: Vec<Statement> =
        metadata.statements().iter().filter(stays).cloned().chain(statements.iter().cloned()).collect();
    DublinCore::new(all).map_err(|error| ArchiveError::Value(error.to_string()))
}

/// The files of the last version, for the next.
fn kept(object: &Object) -> Vec<StagedFile> {
    let mut digests: Vec<(&str, &str)> = object
        .inventory
        .files()
        .filter_map(|(path, digest, _)| Some((path.strip_prefix(crate::object::DOC)?, digest)))
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
