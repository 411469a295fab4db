//! Bringing in trees of uniform repositories, as they were laid out since 1995: `<rep>/doc/…` (000
//! §4, 001 §5; `docs/formats/plain-tree.md`). [`survey()`] says what a tree holds;
//! [`Archive::import`] makes items of it, a few at a time.

mod held;
mod metadata_repository;
mod survey;

use std::path::PathBuf;

use ibi_id::{Instant, Label};

use crate::ArchiveError;
use crate::archive::Archive;
use crate::commit::Prepared;
use crate::deposit::{Draft, Progress, Source, titled};
use crate::dublin_core::{DublinCore, Element};
use crate::language::Language;

pub use metadata_repository::{MetadataRecord, read_record};
pub use survey::{SurveyNote, TreeSurvey, survey};

/// Staged bytes after which what is staged is committed.
const BATCH_BYTES: u64 = 256 << 20;

/// A repository of a tree that is to become an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRepository {
    /// Its label, as the names of its folders spell it.
    pub label: String,
    /// Its folder, in which `doc` is.
    pub folder: PathBuf,
    /// The repository of its metadata, if there is one beside it.
    pub metadata: Option<TreeMetadata>,
    /// What lies beside `doc`, and is not brought in.
    pub left_out: Vec<String>,
    /// The same identifier is in the tree in another spelling: both are kept (clause 1.3).
    pub spelled_twice: bool,
}

/// A metadata repository of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeMetadata {
    /// Its label.
    pub label: String,
    /// What its record says.
    pub record: DublinCore,
}

/// A metadata repository of a tree that its item is not in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateMetadata {
    /// It.
    pub metadata: TreeMetadata,
    /// The canonical spellings of the labels that its record names.
    pub names: Vec<String>,
}

/// How a tree is brought in.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Only look whether it could be.
    pub dry: bool,
    /// Declare the items Originals.
    pub original: bool,
    /// Who does it.
    pub by: String,
}

/// What became of a repository.
#[derive(Debug)]
pub enum ImportOutcome {
    /// It is an item now.
    Imported {
        /// The path of its object.
        path: String,
    },
    /// It was an item already: since an earlier run, or from elsewhere.
    Already {
        /// The path of its object.
        path: String,
    },
    /// It was an item already, and has the metadata of the tree now.
    Described {
        /// The path of its object.
        path: String,
    },
    /// It was here as a Copy, and is the Original now.
    Declared {
        /// The path of its object.
        path: String,
    },
    /// It could be brought in, or be given what the tree has of it.
    Possible,
    /// It cannot be.
    Refused(ArchiveError),
}

/// What was done with a repository, and how much it holds.
#[derive(Debug)]
pub struct ImportReport {
    /// What became of it.
    pub outcome: ImportOutcome,
    /// What else is told of it.
    pub details: ImportDetails,
}

/// What is told of a repository, whatever became of it.
#[derive(Debug, Default)]
pub struct ImportDetails {
    /// Its files, if it was not here already.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The label that its metadata have here, or bring along.
    pub metadata: Option<String>,
    /// What has to be known besides.
    pub note: Option<String>,
}

/// Asked, before an item is declared the Original, whether any other Archive has it: why it may not
/// be.
pub type AskClaim<'a> = dyn FnMut(&str) -> Result<(), ArchiveError> + 'a;

/// A repository on its way in.
enum ImportStep {
    Done(ImportOutcome),
    Staged(Box<Prepared>),
    /// A new version with metadata that came after the item.
    Describing(Box<Prepared>),
}

impl Archive {
    /// Makes items of repositories, committed together; nothing that is here already is brought in
    /// again. Handles as many as fit one commit, at least one, and tells of each, in order.
    pub fn import(
        &mut self,
        repositories: &[TreeRepository],
        options: &ImportOptions,
        claim: &mut AskClaim<'_>,
        progress: Progress<'_>,
    ) -> Result<Vec<ImportReport>, ArchiveError> {
        let most = if options.dry { repositories.len() } else { self.batch()? };
        let (mut steps, mut staged, mut staged_bytes) = (Vec::new(), 0, 0);
        for repository in repositories {
            if staged >= most || staged_bytes >= BATCH_BYTES {
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
            // One result a change: not so.
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
        claim: &mut AskClaim<'_>,
        progress: Progress<'_>,
        details: &mut ImportDetails,
    ) -> Result<ImportStep, ArchiveError> {
        details.metadata = repository.metadata.as_ref().map(|metadata| metadata.label.clone());
        if let Some(step) = self.held_step(repository, options, claim, details)? {
            return Ok(step);
        }
        let source = Source::plain_folder(&repository.folder.join("doc"))?;
        (details.files, details.bytes) = (source.files().len() as u64, source.size());
        let mut draft = self.import_draft(repository, &source, options)?;
        if matches!(self.given_labels(&draft), Err(ArchiveError::OriginalAnyway)) {
            // Minted here and never used: it is the Original without being declared one.
            draft.original = false;
        } else if options.original && source.files().is_empty() {
            draft.original = false;
            details.note = Some(held::STAYS_A_COPY.to_owned());
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
        source: &Source,
        options: &ImportOptions,
    ) -> Result<Draft, ArchiveError> {
        let metadata = repository.metadata.as_ref();
        let record = match metadata {
            Some(metadata) => metadata.record.clone(),
            None => titled(&repository.label)?,
        };
        let (created, updated) = self.tree_dates(&repository.label, source);
        Ok(Draft {
            language: language(&record),
            metadata: record,
            labels: vec![repository.label.clone()],
            metadata_labels: metadata.iter().map(|metadata| metadata.label.clone()).collect(),
            created,
            updated,
            original: options.original,
            ..Draft::new(&options.by)
        })
    }

    /// The label tells when it was assigned, the files when the last of them was changed: more is
    /// not known. What lies in the future tells nothing.
    fn tree_dates(&self, label: &str, source: &Source) -> (Option<String>, Option<String>) {
        let now = self.now();
        let whole = |at: Instant| Instant::new(at.seconds(), 0).unwrap_or(at);
        let created = Label::parse(label).ok().map(|label| whole(label.instant())).filter(|at| *at <= now);
        let modified = source.files().iter().filter_map(|file| file.modified()).max();
        let updated = modified.and_then(|at| Instant::new(at, 0)).filter(|at| *at <= now);
        let updated = updated.map(|at| created.map_or(at, |created| at.max(created)));
        (created.map(|at| at.to_string()), updated.map(|at| at.to_string()))
    }
}

/// The language of an item whose metadata name one, and only one.
fn language(record: &DublinCore) -> Option<Language> {
    let mut named = record.of(Element::Language).map(|statement| statement.value().parse::<Language>().ok());
    let first = named.next().flatten();
    first.filter(|_| named.next().is_none())
}
