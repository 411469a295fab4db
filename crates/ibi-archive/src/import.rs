//! Imports trees of uniform repositories, in the layout used since 1995: `<rep>/doc/…` (000 §4, 001
//! §5; `docs/formats/plain-tree.md`). [`survey()`] reports what a tree holds; [`Archive::import`]
//! creates items from it, a few per call.

mod existing_item;
mod metadata_repository;
mod survey;

use std::path::PathBuf;

use ibi_id::{Instant, Label};

use crate::ArchiveError;
use crate::archive::Archive;
use crate::deposit::{ByteProgress, DepositRequest, DepositSource, title_only_metadata};
use crate::dublin_core::{DublinCore, Element};
use crate::language::Language;
use crate::prepared_change::PreparedChange;

pub use metadata_repository::{MetadataRecord, read_record};
pub use survey::{SurveyNote, TreeSurvey, survey};

/// Commit the batch once this many bytes are staged.
const IMPORT_BATCH_BYTES: u64 = 256 << 20;

/// A repository of a tree that is to be imported as an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRepository {
    /// Its label, as spelled by the names of its folders.
    pub label: String,
    /// Its folder, which contains `doc`.
    pub folder: PathBuf,
    /// Its metadata repository, if the tree has one.
    pub metadata: Option<TreeMetadata>,
    /// Names beside `doc` that are not imported.
    pub left_out: Vec<String>,
    /// The tree has the same identifier in another spelling. Both are kept (clause 1.3).
    pub spelled_twice: bool,
}

/// A metadata repository of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeMetadata {
    /// Its label.
    pub label: String,
    /// Its content.
    pub record: DublinCore,
}

/// A metadata repository whose item is not in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateMetadata {
    /// The metadata repository.
    pub metadata: TreeMetadata,
    /// The canonical spellings of the labels that its record names.
    pub names: Vec<String>,
}

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Dry run: only check whether the import would succeed.
    pub dry: bool,
    /// Declare the items Originals.
    pub original: bool,
    /// Who does it.
    pub by: String,
}

/// The outcome for a repository.
#[derive(Debug)]
pub enum ImportOutcome {
    /// Imported as a new item.
    Imported {
        /// The path of its object.
        path: String,
    },
    /// The item already existed: from an earlier run or from elsewhere.
    Already {
        /// The path of its object.
        path: String,
    },
    /// The item already existed and now has the metadata of the tree.
    Described {
        /// The path of its object.
        path: String,
    },
    /// The item was a Copy here and is now the Original.
    Declared {
        /// The path of its object.
        path: String,
    },
    /// Dry run: it could be imported, or updated from the tree.
    Possible,
    /// It cannot be imported.
    Refused(ArchiveError),
}

/// The outcome for a repository, and its size.
#[derive(Debug)]
pub struct ImportReport {
    /// The outcome.
    pub outcome: ImportOutcome,
    /// Further details.
    pub details: ImportDetails,
}

/// Details of a repository, whatever the outcome.
#[derive(Debug, Default)]
pub struct ImportDetails {
    /// Number of files, if it was not here already.
    pub files: u64,
    /// Total size of these files, in bytes.
    pub bytes: u64,
    /// The label that its metadata has here, or brings along.
    pub metadata: Option<String>,
    /// A note for the operator.
    pub note: Option<String>,
}

/// Called before an item is declared the Original, to check that no other Archive has it. The error
/// says why it may not be.
pub type OriginalClaimCheck<'a> = dyn FnMut(&str) -> Result<(), ArchiveError> + 'a;

/// A repository during the import.
enum ImportStep {
    Done(ImportOutcome),
    Staged(Box<PreparedChange>),
    /// A new version with metadata that was found after the item.
    Describing(Box<PreparedChange>),
}

impl Archive {
    /// Imports repositories as items, in one commit; items that are already here are not imported
    /// again. Handles as many repositories as fit one commit, at least one, and returns a report
    /// for each, in order.
    pub fn import(
        &mut self,
        repositories: &[TreeRepository],
        options: &ImportOptions,
        claim: &mut OriginalClaimCheck<'_>,
        progress: ByteProgress<'_>,
    ) -> Result<Vec<ImportReport>, ArchiveError> {
        let most = if options.dry { repositories.len() } else { self.batch_size()? };
        let (mut steps, mut staged, mut staged_bytes) = (Vec::new(), 0, 0);
        for repository in repositories {
            if staged >= most || staged_bytes >= IMPORT_BATCH_BYTES {
                break;
            }
            let mut details = ImportDetails::default();
            let step = self.import_step(repository, options, claim, progress, &mut details);
            let step = step.unwrap_or_else(|error| ImportStep::Done(ImportOutcome::Refused(error)));
            if !matches!(step, ImportStep::Done(_)) {
                staged += 1;
                staged_bytes += details.bytes;
            }
            steps.push((step, details));
        }
        let mut changes = Vec::new();
        let mut waiting = Vec::new();
        for (step, details) in steps {
            let (outcome, describes) = match step {
                ImportStep::Done(outcome) => (Some(outcome), false),
                ImportStep::Staged(change) => {
                    changes.push(*change);
                    (None, false)
                }
                ImportStep::Describing(change) => {
                    changes.push(*change);
                    (None, true)
                }
            };
            waiting.push((outcome, describes, details));
        }
        let mut results = self.commit(changes).into_iter();
        let mut committed = |describes: bool| match results.next() {
            Some(Ok(path)) if describes => ImportOutcome::Described { path },
            Some(Ok(path)) => ImportOutcome::Imported { path },
            Some(Err(error)) => ImportOutcome::Refused(error),
            // Unreachable: `commit` returns one result per change.
            None => ImportOutcome::Refused(ArchiveError::Stopped),
        };
        let reports = waiting.into_iter().map(|(outcome, describes, details)| {
            let outcome = outcome.unwrap_or_else(|| committed(describes));
            ImportReport { outcome, details }
        });
        let reports = reports.collect();
        if self.stopped { Err(ArchiveError::Stopped) } else { Ok(reports) }
    }

    fn import_step(
        &mut self,
        repository: &TreeRepository,
        options: &ImportOptions,
        claim: &mut OriginalClaimCheck<'_>,
        progress: ByteProgress<'_>,
        details: &mut ImportDetails,
    ) -> Result<ImportStep, ArchiveError> {
        details.metadata = repository.metadata.as_ref().map(|metadata| metadata.label.clone());
        if let Some(step) = self.existing_item_step(repository, options, claim, details)? {
            return Ok(step);
        }
        let source = DepositSource::plain_folder(&repository.folder.join("doc"))?;
        (details.files, details.bytes) = (source.files().len() as u64, source.size());
        let mut draft = self.import_draft(repository, &source, options)?;
        if matches!(self.given_labels(&draft), Err(ArchiveError::OriginalAnyway)) {
            // Minted here and never used: the item is the Original without a declaration.
            draft.original = false;
        } else if options.original && source.files().is_empty() {
            draft.original = false;
            details.note = Some(existing_item::STAYS_COPY_NOTE.to_owned());
        } else if options.original {
            claim(&repository.label)?;
        }
        if options.dry {
            self.check_draft(&source, &draft)?;
            return Ok(ImportStep::Done(ImportOutcome::Possible));
        }
        let staged = self.stage(&source, None, progress)?;
        Ok(ImportStep::Staged(Box::new(self.prepare_deposit(staged, draft)?)))
    }

    fn import_draft(
        &self,
        repository: &TreeRepository,
        source: &DepositSource,
        options: &ImportOptions,
    ) -> Result<DepositRequest, ArchiveError> {
        let metadata = repository.metadata.as_ref();
        let record = match metadata {
            Some(metadata) => metadata.record.clone(),
            None => title_only_metadata(&repository.label)?,
        };
        let (created, updated) = self.tree_dates(&repository.label, source);
        Ok(DepositRequest {
            language: single_language(&record),
            metadata: record,
            labels: vec![repository.label.clone()],
            metadata_labels: metadata.iter().map(|metadata| metadata.label.clone()).collect(),
            created,
            updated,
            original: options.original,
            ..DepositRequest::new(&options.by)
        })
    }

    /// The label gives the date of creation, the newest file the date of the last update: nothing
    /// else is known. Dates in the future are ignored.
    fn tree_dates(&self, label: &str, source: &DepositSource) -> (Option<String>, Option<String>) {
        let now = self.now();
        let whole = |at: Instant| Instant::new(at.seconds(), 0).unwrap_or(at);
        let created = Label::parse(label).ok().map(|label| whole(label.instant())).filter(|at| *at <= now);
        let modified = source.files().iter().filter_map(|file| file.modified()).max();
        let updated = modified.and_then(|at| Instant::new(at, 0)).filter(|at| *at <= now);
        let updated = updated.map(|at| created.map_or(at, |created| at.max(created)));
        (created.map(|at| at.to_string()), updated.map(|at| at.to_string()))
    }
}

/// The language of the item, if its metadata names exactly one.
fn single_language(record: &DublinCore) -> Option<Language> {
    let mut named = record.of(Element::Language).map(|statement| statement.value().parse::<Language>().ok());
    let first = named.next().flatten();
    first.filter(|_| named.next().is_none())
}
