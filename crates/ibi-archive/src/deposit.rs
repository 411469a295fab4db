//! Deposits: what is to be kept is staged and hashed as it arrives, gets its labels, and is committed.

mod bag;
mod dates;
mod labels;
mod source;
#[cfg(feature = "web")]
mod uploads;

use std::path::Path;

use ibi_id::Instant;
use ibi_store::Staging;
use ibi_store::journal::Verb;
use ibi_store::ocfl::{ContentNames, Inventory, logical};

use crate::ArchiveError;
use crate::access::Access;
use crate::archive::Archive;
use crate::commit::{Prepared, StagedFile, UnmovedClocks};
use crate::dublin_core::{DublinCore, Element, Statement};
use crate::item::{FORMAT, Item, ItemFile, Labels};
use crate::language::Language;
use crate::links::LinkAuthority;
use crate::mint::{LONGEST_WAIT, Minter, Request, granularity};
use crate::object::DOC;
use crate::target_url::TargetUrl;

pub(crate) use dates::told as told_dates;
pub(crate) use labels::{brought, check_not_ahead, is_ours};
pub use source::{Origin, Source};
#[cfg(feature = "web")]
pub(crate) use uploads::Upload;

const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// What a depositor says of an item.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its metadata.
    pub metadata: DublinCore,
    /// Its language.
    pub language: Option<Language>,
    /// What it is a translation of.
    pub translation_of: Option<String>,
    /// What it is the next edition of.
    pub next_edition_of: Option<String>,
    /// The file to open.
    pub target: Option<String>,
    /// Where to lead instead of to a file.
    pub url: Option<TargetUrl>,
    /// Who may read it.
    pub access: Access,
    /// Labels that it has already, at most one a form; without any, it gets new ones.
    pub labels: Vec<String>,
    /// Labels that its metadata have already, at most one a form; without any, they get new ones.
    pub metadata_labels: Vec<String>,
    /// When it was created elsewhere, RFC 3339: only with a label of its own.
    pub created: Option<String>,
    /// When it was last updated elsewhere, likewise.
    pub updated: Option<String>,
    /// When its metadata were last updated elsewhere, likewise; without, when it was.
    pub metadata_updated: Option<String>,
    /// With a label from elsewhere: this is the Original.
    pub original: bool,
    /// Other labels that lead to it.
    pub aliases: Vec<String>,
    /// Whether the Original may be handed over.
    pub transferable: bool,
    /// A name for the request: asked again, it is not done again.
    pub key: Option<String>,
    /// Who deposits.
    pub by: String,
    /// Whose word counts for the links that it states.
    pub authority: LinkAuthority,
}

impl Draft {
    /// An item of which nothing is said but who deposits it.
    pub fn new(by: &str) -> Self {
        Self {
            metadata: DublinCore::default(),
            language: None,
            translation_of: None,
            next_edition_of: None,
            target: None,
            url: None,
            access: Access::Public,
            labels: Vec::new(),
            metadata_labels: Vec::new(),
            created: None,
            updated: None,
            metadata_updated: None,
            original: false,
            aliases: Vec::new(),
            transferable: true,
            key: None,
            by: by.to_owned(),
            authority: LinkAuthority::Operator,
        }
    }
}

/// Files that were staged for a version.
#[derive(Debug)]
pub struct Staged {
    pub(crate) staging: Staging,
    pub(crate) files: Vec<StagedFile>,
}

/// Metadata of which no more is known than a title.
pub(crate) fn titled(title: &str) -> Result<DublinCore, ArchiveError> {
    let title = title.chars().filter(|c| !c.is_control()).collect::<String>();
    let title = Statement::new(Element::Title, None, title);
    title
        .and_then(|title| DublinCore::new(vec![title]))
        .map_err(|error| ArchiveError::Value(error.to_string()))
}

/// Told of each piece that arrives: how many bytes.
pub type Progress<'a> = &'a dyn Fn(u64);

impl Archive {
    /// Stages files, hashed as they arrive. `known` is the inventory of the version before, whose bytes need not be stored
    /// again.
    pub fn stage(
        &self,
        source: &Source,
        known: Option<&Inventory>,
        progress: Progress<'_>,
    ) -> Result<Staged, ArchiveError> {
        let content = &self.holdings.content;
        content.room()?;
        if source.meets(&self.holdings.data) {
            return Err(ArchiveError::Itself { path: source.place().to_owned() });
        }
        let mut staged = Staged { staging: content.stage()?, files: Vec::new() };
        let done = self.stage_files(source, known, progress, &mut staged);
        match done {
            Ok(()) => Ok(staged),
            Err(error) => {
                // Swept at the next opening if not now.
                let _ = content.discard(&staged.staging);
                Err(error)
            }
        }
    }

    fn stage_files(
        &self,
        source: &Source,
        known: Option<&Inventory>,
        progress: Progress<'_>,
        staged: &mut Staged,
    ) -> Result<(), ArchiveError> {
        let content = &self.holdings.content;
        let mut names = ContentNames::default();
        let mut stored = std::collections::HashSet::new();
        for file in source.files() {
            let shown = || String::from_utf8_lossy(file.name()).escape_debug().to_string();
            let path = logical(file.name()).map_err(|error| ArchiveError::Name { name: shown(), error })?;
            let name = names.name(&format!("{DOC}{path}"));
            let mut reader = file.open(progress)?;
            let put = content.put(&staged.staging, &name, &mut reader);
            let digests = put.map_err(|error| file.put_error(error))?;
            file.check(&digests, reader)?;
            let have = known.is_some_and(|known| known.manifest.contains_key(&digests.sha512))
                || !stored.insert(digests.sha512.clone());
            if have {
                content.take_back(&staged.staging, &name)?;
            }
            let stored = (!have).then_some(name);
            let file = ItemFile::new(path, &digests);
            staged.files.push(StagedFile { file, sha512: digests.sha512, stored });
        }
        staged.files.sort_by(|a, b| a.file.path.cmp(&b.file.path));
        let twice = staged.files.windows(2).find(|pair| pair[0].file.path == pair[1].file.path);
        match twice {
            Some([file, _]) => Err(ArchiveError::Value(format!("{} is there twice", file.file.path))),
            _ => Ok(()),
        }
    }

    /// Makes staged files and what is said of them an item, to be committed.
    pub fn prepare_deposit(&mut self, staged: Staged, draft: Draft) -> Result<Prepared, ArchiveError> {
        let content_error = |archive: &Self, staging: &Staging, error| {
            let _ = archive.holdings.content.discard(staging);
            error
        };
        let given = self.given_labels(&draft).and_then(|(labels, state)| {
            Ok((labels, state, self.given_metadata_labels(&draft)?, dates::told(&draft, self.now())?))
        });
        let (labels, state, metadata, dates) =
            given.map_err(|error| content_error(self, &staged.staging, error))?;
        let target = draft
            .target
            .map(|target| spelled_as(target, &staged.files))
            .or_else(|| default_target(&staged.files));
        Ok(Prepared {
            staging: staged.staging,
            verb: Verb::Deposit,
            base: None,
            mint: labels.is_none(),
            past: None,
            whole: None,
            authority: draft.authority,
            links: Vec::new(),
            unmoved: UnmovedClocks { metadata: dates.metadata_updated, ..UnmovedClocks::default() },
            item: Item {
                format: FORMAT,
                labels: labels.unwrap_or_default(),
                aliases: draft.aliases,
                metadata,
                transferable: draft.transferable,
                created: dates.created,
                updated: dates.updated,
                data_updated: None,
                metadata_updated: None,
                language: draft.language,
                translation_of: draft.translation_of,
                next_edition_of: draft.next_edition_of,
                target,
                url: draft.url,
                access: draft.access,
                files: Vec::new(),
                removed: None,
            },
            metadata: draft.metadata,
            files: staged.files,
            state,
            epoch: 1,
            by: draft.by,
            note: None,
            key: draft.key,
            source: None,
        })
    }

    /// Mints what changes need, in one call: of each new item one for it, unless it has one, and one for its metadata.
    pub(crate) fn mint_labels(&mut self, changes: &mut [Prepared]) -> Result<(), ArchiveError> {
        // Metadata that have a label already keep it (clause 2.2).
        let unnamed = |change: &Prepared| change.whole.is_none() && change.item.metadata == Labels::default();
        let need = |change: &Prepared| usize::from(change.mint) + usize::from(unnamed(change));
        let need: usize = changes.iter().map(need).sum();
        if need == 0 {
            return Ok(());
        }
        let data = self.holdings.data.clone();
        let minter = self.minter()?;
        let minted = minter.mint(request(&data, minter, need)?)?;
        let mut labels = minted.labels().map(Labels::from);
        for change in changes {
            let unnamed = unnamed(change);
            if change.mint {
                change.item.labels = labels.next().unwrap_or_default();
            }
            if unnamed {
                change.item.metadata = labels.next().unwrap_or_default();
            }
        }
        Ok(())
    }

    /// How many deposits are best committed together: as many as one sync should serve.
    pub fn batch(&mut self) -> Result<usize, ArchiveError> {
        const MOST_DEPOSITS: u64 = 256;
        let data = self.holdings.data.clone();
        let granularity = granularity(&data, self.minter()?.subsystem().edition)?;
        // A deposit takes two labels. With coarse steps nobody should wait for the labels of others
        // for more than a second.
        let epoch = Instant::new(0, 0).and_then(|zero| zero.plus(granularity));
        let step = epoch.filter(|step| step.seconds() == 0).map_or(PICOS_PER_SECOND, Instant::picos);
        // At most 256: fits.
        Ok((PICOS_PER_SECOND / step.max(1) / 2).clamp(1, MOST_DEPOSITS) as usize)
    }
}

/// A request for so many labels, at the granularity that is set for the minter of this data folder
/// (D37).
pub(crate) fn request(data: &Path, minter: &Minter, count: usize) -> Result<Request, ArchiveError> {
    let granularity = granularity(data, minter.subsystem().edition)?;
    Ok(Request { count, granularity, max_wait: LONGEST_WAIT })
}

/// A file may be named as it is on disk, or as the inventory has it.
pub(crate) fn spelled_as(target: String, files: &[StagedFile]) -> String {
    let there = |name: &str| files.iter().any(|file| file.file.path == name);
    let escaped = logical(target.as_bytes()).ok().filter(|escaped| !there(&target) && there(escaped));
    escaped.unwrap_or(target)
}

/// What the persistent URL opens, if nobody says: the page that servers open, or the first file (clause 2.2: one of them is).
pub(crate) fn default_target(files: &[StagedFile]) -> Option<String> {
    let index = ["index.html", "index.htm"];
    let index = files.iter().find(|file| index.contains(&file.file.path.as_str()));
    index.or(files.first()).map(|file| file.file.path.clone())
}

/// The Archive service, itself an item: Original, not transferable, without files (clause 2).
pub(crate) fn deposit_service(archive: &mut Archive, by: &str) -> Result<(), ArchiveError> {
    let settings = archive.holdings.settings.clone();
    let metadata = titled(&format!("Archive service {}", settings.service.primary()))?;
    let staged = archive.stage(&Source::nothing(), None, &|_| ())?;
    let draft = Draft { metadata, transferable: false, ..Draft::new(by) };
    let mut change = archive.prepare_deposit(staged, draft)?;
    change.mint = false;
    change.item.labels = settings.service;
    change.item.metadata = settings.service_metadata;
    archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>().map(drop)
}
