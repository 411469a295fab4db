//! Deposits: files are staged and hashed as they arrive, labels are assigned, and the item is
//! committed.

mod bag;
mod dates;
mod labels;
mod source;
#[cfg(feature = "web")]
mod uploads;

use std::path::Path;

use ibi_id::Instant;
use ibi_store::StagingId;
use ibi_store::journal::Verb;
use ibi_store::ocfl::{ContentNames, Inventory, logical_path};

use crate::ArchiveError;
use crate::access::AccessRule;
use crate::archive::Archive;
use crate::dublin_core::{DublinCore, Element, MetadataStatement};
use crate::item::{ITEM_FORMAT, ItemDescription, ItemFile, ItemLabels};
use crate::language::Language;
use crate::links::LinkAuthority;
use crate::media_type::MediaTypeReader;
use crate::object::DOC_FOLDER;
use crate::ownership::LOCAL_OPERATOR;
use crate::prepared_change::{PreparedChange, StagedFile, UnmovedClocks};
use crate::target_url::TargetUrl;
use ibi_mint::{MAX_MINT_WAIT, MintRequest, Minter, granularity};

pub(crate) use dates::parse_deposit_dates as told_dates;
pub(crate) use labels::{check_not_future, has_own_prefix, parse_supplied_labels};
pub use source::{DepositSource, SourceKind};
#[cfg(feature = "web")]
pub(crate) use uploads::UploadedFile;

const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// A request to deposit an item.
#[derive(Debug, Clone)]
pub struct DepositRequest {
    /// Its metadata.
    pub metadata: DublinCore,
    /// Its language.
    pub language: Option<Language>,
    /// What it is a translation of.
    pub translation_of: Option<String>,
    /// What it is the next edition of.
    pub next_edition_of: Option<String>,
    /// The file that the persistent URL opens.
    pub target: Option<String>,
    /// A redirect target, instead of a file.
    pub url: Option<TargetUrl>,
    /// The access rule of its files.
    pub access: AccessRule,
    /// Existing labels, at most one per form. If empty, labels are minted.
    pub labels: Vec<String>,
    /// Existing labels of its metadata, at most one per form. If empty, labels are minted.
    pub metadata_labels: Vec<String>,
    /// When it was created elsewhere, RFC 3339. Only with an existing label.
    pub created: Option<String>,
    /// When it was last updated elsewhere. Only with an existing label.
    pub updated: Option<String>,
    /// When its metadata was created elsewhere; defaults to `created`. Only with an existing label.
    pub metadata_created: Option<String>,
    /// When its metadata was last updated elsewhere; defaults to `updated`. Only with an existing
    /// label.
    pub metadata_updated: Option<String>,
    /// Declares the item the Original. Only with a label from elsewhere.
    pub original: bool,
    /// Its other labels.
    pub aliases: Vec<String>,
    /// Whether the Original may be handed over.
    pub transferable: bool,
    /// Idempotency key: a repeated request is not executed again.
    pub key: Option<String>,
    /// The name of the depositor.
    pub by: String,
    /// The authority for the links that it states.
    pub authority: LinkAuthority,
}

impl DepositRequest {
    /// A request with only the depositor's name set.
    pub fn new(by: &str) -> Self {
        Self {
            metadata: DublinCore::default(),
            language: None,
            translation_of: None,
            next_edition_of: None,
            target: None,
            url: None,
            access: AccessRule::Public,
            labels: Vec::new(),
            metadata_labels: Vec::new(),
            created: None,
            updated: None,
            metadata_created: None,
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
pub struct StagedContent {
    pub(crate) staging: StagingId,
    pub(crate) files: Vec<StagedFile>,
}

/// Metadata with only a title.
pub(crate) fn title_only_metadata(title: &str) -> Result<DublinCore, ArchiveError> {
    let title = title.chars().filter(|c| !c.is_control()).collect::<String>();
    let title = MetadataStatement::new(Element::Title, None, title);
    title
        .and_then(|title| DublinCore::new(vec![title]))
        .map_err(|error| ArchiveError::Value(error.to_string()))
}

/// Called with the number of bytes of each chunk that arrives.
pub type ByteProgress<'a> = &'a dyn Fn(u64);

impl Archive {
    /// Stages files, hashing them as they arrive. `known` is the inventory of the previous version,
    /// whose bytes need not be stored again.
    pub fn stage(
        &self,
        source: &DepositSource,
        known: Option<&Inventory>,
        progress: ByteProgress<'_>,
    ) -> Result<StagedContent, ArchiveError> {
        let content = &self.holdings.content;
        content.check_space()?;
        if source.overlaps(&self.holdings.data) {
            return Err(ArchiveError::OverlapsDataFolder { path: source.place().to_owned() });
        }
        let mut staged = StagedContent { staging: content.begin_staging()?, files: Vec::new() };
        let done = self.stage_files(source, known, progress, &mut staged);
        match done {
            Ok(()) => Ok(staged),
            Err(error) => {
                // If this fails, the next opening clears the staging area.
                let _ = content.discard(&staged.staging);
                Err(error)
            }
        }
    }

    fn stage_files(
        &self,
        source: &DepositSource,
        known: Option<&Inventory>,
        progress: ByteProgress<'_>,
        staged: &mut StagedContent,
    ) -> Result<(), ArchiveError> {
        let content = &self.holdings.content;
        let mut names = ContentNames::default();
        let mut stored = std::collections::HashSet::new();
        for file in source.files() {
            let shown = || String::from_utf8_lossy(file.name()).escape_debug().to_string();
            let path =
                logical_path(file.name()).map_err(|error| ArchiveError::Name { name: shown(), error })?;
            let name = names.name(&format!("{DOC_FOLDER}{path}"));
            let mut reader = MediaTypeReader::new(&path, file.open(progress)?);
            let put = content.stage_file(&staged.staging, &name, &mut reader);
            let digests = put.map_err(|error| file.source_error(error))?;
            let (reading, media) = reader.finish();
            file.check(&digests, reading)?;
            let have = known.is_some_and(|known| known.manifest.contains_key(&digests.sha512))
                || !stored.insert(digests.sha512.clone());
            if have {
                content.unstage_file(&staged.staging, &name)?;
            }
            let stored = (!have).then_some(name);
            let file = ItemFile::new(path, media, &digests);
            staged.files.push(StagedFile { file, sha512: digests.sha512, stored });
        }
        staged.files.sort_by(|a, b| a.file.path.cmp(&b.file.path));
        let twice = staged.files.windows(2).find(|pair| pair[0].file.path == pair[1].file.path);
        match twice {
            Some([file, _]) => Err(ArchiveError::Value(format!("duplicate path {}", file.file.path))),
            _ => Ok(()),
        }
    }

    /// Turns staged files and a request into a change that is ready to commit.
    pub fn prepare_deposit(
        &mut self,
        staged: StagedContent,
        draft: DepositRequest,
    ) -> Result<PreparedChange, ArchiveError> {
        let content_error = |archive: &Self, staging: &StagingId, error| {
            let _ = archive.holdings.content.discard(staging);
            error
        };
        let given = self.given_labels(&draft).and_then(|(labels, state)| {
            Ok((
                labels,
                state,
                self.given_metadata_labels(&draft)?,
                dates::parse_deposit_dates(&draft, self.now())?,
            ))
        });
        let (labels, state, metadata, dates) =
            given.map_err(|error| content_error(self, &staged.staging, error))?;
        let target = draft
            .target
            .map(|target| resolve_target_name(target, &staged.files))
            .or_else(|| default_target(&staged.files));
        Ok(PreparedChange {
            staging: staged.staging,
            verb: Verb::Deposit,
            base: None,
            mint: labels.is_none(),
            past: None,
            whole: None,
            authority: draft.authority,
            links: Vec::new(),
            unmoved: UnmovedClocks { metadata: dates.metadata_updated, ..UnmovedClocks::default() },
            item: ItemDescription {
                format: ITEM_FORMAT,
                labels: labels.unwrap_or_default(),
                aliases: draft.aliases,
                metadata,
                transferable: draft.transferable,
                created: dates.created,
                updated: dates.updated,
                data_updated: None,
                metadata_created: dates.metadata_created,
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
            owner: Some(LOCAL_OPERATOR.to_owned()),
            note: None,
            key: draft.key,
            source: None,
            source_state: None,
        })
    }

    /// Mints all labels that the changes need, in one call: for each new item one for the item,
    /// unless it has one, and one for its metadata.
    pub(crate) fn mint_labels(&mut self, changes: &mut [PreparedChange]) -> Result<(), ArchiveError> {
        // Metadata that already has a label keeps it (clause 2.2).
        let unnamed =
            |change: &PreparedChange| change.whole.is_none() && change.item.metadata == ItemLabels::default();
        let need = |change: &PreparedChange| usize::from(change.mint) + usize::from(unnamed(change));
        let need: usize = changes.iter().map(need).sum();
        if need == 0 {
            return Ok(());
        }
        let data = self.holdings.data.clone();
        let minter = self.minter()?;
        let minted = minter.mint(mint_request(&data, minter, need)?)?;
        let mut labels = minted.labels().map(ItemLabels::from);
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

    /// The best number of deposits per commit, so that they share one sync.
    pub fn batch_size(&mut self) -> Result<usize, ArchiveError> {
        const MAX_BATCH_DEPOSITS: u64 = 256;
        let data = self.holdings.data.clone();
        let granularity = granularity(&data, self.minter()?.subsystem().edition)?;
        // A deposit takes two labels. With a coarse granularity, no deposit should wait for the
        // labels of others for more than a second.
        let epoch = Instant::new(0, 0).and_then(|zero| zero.plus(granularity));
        let step = epoch.filter(|step| step.seconds() == 0).map_or(PICOS_PER_SECOND, Instant::picos);
        // At most 256: the cast is lossless.
        Ok((PICOS_PER_SECOND / step.max(1) / 2).clamp(1, MAX_BATCH_DEPOSITS) as usize)
    }
}

/// A request for `count` labels at the granularity set for the minter of this data folder (D37).
pub(crate) fn mint_request(data: &Path, minter: &Minter, count: usize) -> Result<MintRequest, ArchiveError> {
    let granularity = granularity(data, minter.subsystem().edition)?;
    Ok(MintRequest { count, granularity, max_wait: MAX_MINT_WAIT })
}

/// Accepts the name of a file as on disk or as in the inventory.
pub(crate) fn resolve_target_name(target: String, files: &[StagedFile]) -> String {
    let there = |name: &str| files.iter().any(|file| file.file.path == name);
    let escaped = logical_path(target.as_bytes()).ok().filter(|escaped| !there(&target) && there(escaped));
    escaped.unwrap_or(target)
}

/// The default target of the persistent URL: the usual index page, or the first file (clause 2.2:
/// one of them is).
pub(crate) fn default_target(files: &[StagedFile]) -> Option<String> {
    let index = ["index.html", "index.htm"];
    let index = files.iter().find(|file| index.contains(&file.file.path.as_str()));
    index.or(files.first()).map(|file| file.file.path.clone())
}

/// The Archive service, itself an item: Original, not transferable, without files (clause 2).
pub(crate) fn deposit_service(archive: &mut Archive, by: &str) -> Result<(), ArchiveError> {
    let settings = archive.holdings.settings.clone();
    let metadata = title_only_metadata(&format!("Archive service {}", settings.service.primary()))?;
    let staged = archive.stage(&DepositSource::empty(), None, &|_| ())?;
    let draft = DepositRequest { metadata, transferable: false, ..DepositRequest::new(by) };
    let mut change = archive.prepare_deposit(staged, draft)?;
    change.mint = false;
    change.item.labels = settings.service;
    change.item.metadata = settings.service_metadata;
    archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>().map(drop)
}
