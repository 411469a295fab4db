//! Surveys a plain tree: its repositories, which of them are metadata of which, and what is not a
//! repository. Trees are untrusted: links are not followed, nothing is run, and what cannot be read
//! is reported and skipped.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ibi_id::{Form, Label};

use crate::ArchiveError;
use crate::import::metadata_repository::{METADATA_PROGRAM, MetadataRecord, is_record_name, read_record};
use crate::import::{LateMetadata, TreeMetadata, TreeRepository};
use crate::item::LabelKey;
use crate::plain_tree::STAMP_FILE;

/// Limit on the bytes of a record.
const MAX_SURVEYED_RECORD_BYTES: u64 = 4 << 20;
/// Limit on notes; more are counted.
const MAX_SURVEY_NOTES: usize = 100_000;
/// Limit on recorded folders with a `doc`, which show where the tree begins.
const MAX_DOC_PLACES: usize = 100;
/// Limit on reported names beside `doc` in a repository.
const MAX_LEFT_OUT_NAMES: usize = 20;

/// What a tree holds.
#[derive(Debug, Default)]
pub struct TreeSurvey {
    /// The repositories that are to become items, in order of their labels.
    pub repositories: Vec<TreeRepository>,
    /// Metadata whose items are not in the tree.
    pub late: Vec<LateMetadata>,
    /// Where the tree begins, if what was given lies within it and holds no repository by itself.
    pub begins_at: Option<PathBuf>,
    /// What is not a repository, or cannot be read.
    pub notes: Vec<SurveyNote>,
    /// Number of notes over the limit.
    pub more_notes: u64,
    /// Files that lie outside of repositories.
    pub stray_files: u64,
    /// Places that have a `doc` where none is looked for; a few.
    places_with_doc: Vec<String>,
}

/// Something that is not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyNote {
    /// Its path in the tree.
    pub place: String,
    /// The reason.
    pub reason: String,
    /// Whether this is an error; otherwise it is only skipped.
    pub refused: bool,
}

/// A repository as it was found.
struct FoundRepository {
    label: String,
    folder: PathBuf,
    left_out: Vec<String>,
    record: FoundRecord,
}

enum FoundRecord {
    /// It is data.
    None,
    /// It has the program that shows metadata, and nothing to read.
    OnlyProgram,
    Read(MetadataRecord),
}

/// Surveys a tree. Calls `progress` for each repository found.
pub fn survey(root: &Path, progress: &dyn Fn()) -> Result<TreeSurvey, ArchiveError> {
    let mut survey = TreeSurvey::default();
    let mut found = Vec::new();
    let root_entries = fs::read_dir(root).map_err(ArchiveError::io("read", root))?;
    let first = survey.collect_folders(root_entries, "");
    for (host, path) in first {
        for (word, path) in survey.list_folders(&path, &host) {
            // A folder of a host may be spelled like an opaque label: then it has no `doc`.
            if Label::parse(&word).is_ok_and(|label| label.form() != Form::Repository)
                && fs::symlink_metadata(path.join("doc")).is_ok()
            {
                survey.inspect_repository(word.clone(), path, &mut found, progress);
                continue;
            }
            for (year, path) in survey.list_folders(&path, &word) {
                for (date, path) in survey.list_folders(&path, &year) {
                    survey.inspect_repository(date, path, &mut found, progress);
                }
            }
        }
    }
    if found.is_empty() {
        survey.begins_at = survey.places_with_doc.iter().find_map(|place| tree_root_above(root, place));
    }
    survey.attach_metadata(found);
    Ok(survey)
}

/// Where a tree begins in which a folder with a `doc`, at this place below a root, is a repository.
fn tree_root_above(root: &Path, place: &str) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let (mut label, mut at) = (place.to_owned(), &*root);
    // A label has at most four folders.
    for _ in 0..4 {
        let name = at.file_name()?.to_str()?;
        label = if label.is_empty() { name.to_owned() } else { format!("{name}/{label}") };
        at = at.parent()?;
        if Label::parse(&label).is_ok() {
            return Some(at.to_owned());
        }
    }
    None
}

impl TreeSurvey {
    fn add_note(&mut self, place: &str, reason: impl Into<String>, refused: bool) {
        let (place, reason) = (place.to_owned(), reason.into());
        if self.notes.len() < MAX_SURVEY_NOTES {
            self.notes.push(SurveyNote { place, reason, refused });
        } else {
            self.more_notes += 1;
        }
    }

    fn list_folders(&mut self, path: &Path, place: &str) -> BTreeMap<String, PathBuf> {
        match fs::read_dir(path) {
            Ok(entries) => self.collect_folders(entries, place),
            Err(error) => {
                self.add_note(place, format!("cannot be read: {error}"), true);
                BTreeMap::new()
            }
        }
    }

    /// The folders among entries, by their places in the tree.
    fn collect_folders(&mut self, entries: fs::ReadDir, above: &str) -> BTreeMap<String, PathBuf> {
        let mut folders = BTreeMap::new();
        for entry in entries {
            let (entry, kind) = match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) => (entry, kind),
                Err(error) => {
                    self.add_note(above, format!("cannot be read: {error}"), true);
                    continue;
                }
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let place = if above.is_empty() { name.clone() } else { format!("{above}/{name}") };
            if kind.is_symlink() {
                self.add_note(&place, "a symbolic link: links are not followed", false);
            } else if !kind.is_dir() {
                self.stray_files += 1;
            } else if entry.file_name().to_str().is_none() {
                self.add_note(&place, "its name is not UTF-8: no label has such a name", false);
            } else if !name.starts_with('.') {
                if name == "doc" && self.places_with_doc.len() < MAX_DOC_PLACES {
                    self.places_with_doc.push(above.to_owned());
                }
                folders.insert(place, entry.path());
            }
        }
        folders
    }

    /// Looks at a folder that should be a repository.
    fn inspect_repository(
        &mut self,
        place: String,
        folder: PathBuf,
        found: &mut Vec<FoundRepository>,
        progress: &dyn Fn(),
    ) {
        let doc = folder.join("doc");
        let has_doc = match fs::symlink_metadata(&doc) {
            Ok(metadata) if metadata.is_symlink() => {
                return self.add_note(&place, "its `doc` is a symbolic link: links are not followed", true);
            }
            Ok(metadata) => metadata.is_dir(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return self.add_note(&place, format!("cannot be read: {error}"), true),
        };
        if let Err(error) = Label::parse(&place) {
            return self.add_note(&place, format!("folder name is not a valid label: {error}"), has_doc);
        }
        if !has_doc {
            return self.add_note(&place, "it has no folder `doc`", false);
        }
        let (mut left_out, doc_entries) = match (names_in(&folder), first_doc_entries(&doc)) {
            (Ok(names), Ok(entries)) => (names, entries),
            (Err(error), _) | (_, Err(error)) => {
                return self.add_note(&place, format!("cannot be read: {error}"), true);
            }
        };
        left_out.retain(|name| name != "doc" && name != STAMP_FILE);
        let record = find_record(&place, &doc_entries);
        progress();
        found.push(FoundRepository { label: place, folder, left_out, record });
    }

    /// Matches metadata repositories with their items.
    fn attach_metadata(&mut self, found: Vec<FoundRepository>) {
        let canonical = |label: &str| LabelKey::parse(label).map(|label| label.canonical).unwrap_or_default();
        let mut items: HashMap<String, Vec<usize>> = HashMap::new();
        let mut repositories = Vec::new();
        let mut records = Vec::new();
        for FoundRepository { label, folder, left_out, record } in found {
            match record {
                FoundRecord::None => {
                    items.entry(canonical(&label)).or_default().push(repositories.len());
                    let (metadata, spelled_twice) = (None, false);
                    repositories.push(TreeRepository { label, folder, metadata, left_out, spelled_twice });
                }
                FoundRecord::OnlyProgram => {
                    let reason = format!(
                        "a metadata repository with a program and no record: save what `doc/{METADATA_PROGRAM}?choice=oai_dc` showed as \
                         doc/oai_dc.xml"
                    );
                    self.add_note(&label, reason, true);
                }
                FoundRecord::Read(record) => records.push((label, record)),
            }
        }
        for same in items.values().filter(|same| same.len() > 1) {
            same.iter().for_each(|&index| repositories[index].spelled_twice = true);
        }
        for (label, MetadataRecord { record, names }) in records {
            let mut targets = names.iter().filter_map(|name| items.get(name)).flatten();
            let reason = match (targets.next(), targets.next()) {
                (Some(&index), None) if repositories[index].metadata.is_none() => {
                    repositories[index].metadata = Some(TreeMetadata { label, record });
                    continue;
                }
                (Some(&index), None) => {
                    format!("{} has metadata already, those of another repository", repositories[index].label)
                }
                (Some(_), Some(_)) => "its record names several repositories of this tree".to_owned(),
                (None, _) => {
                    let metadata = TreeMetadata { label, record };
                    self.late.push(LateMetadata { metadata, names });
                    continue;
                }
            };
            self.add_note(&label, reason, true);
        }
        self.repositories = repositories;
    }
}

/// What lies in a folder, by name, in order.
fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.take(MAX_LEFT_OUT_NAMES + 1);
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// As much of what lies in `doc` as a metadata repository has at most, and one more.
fn first_doc_entries(doc: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(doc)?.take(3).collect()
}

/// The record of a metadata repository: the only file of its `doc`, apart from the program that
/// shows it.
fn find_record(label: &str, entries: &[DirEntry]) -> FoundRecord {
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    if entries.is_empty() || !entries.iter().all(is_file) {
        return FoundRecord::None;
    }
    let is_program = |entry: &&DirEntry| entry.file_name() == METADATA_PROGRAM;
    let others: Vec<&DirEntry> = entries.iter().filter(|entry| !is_program(entry)).collect();
    let record = match others[..] {
        [] => return FoundRecord::OnlyProgram,
        [one] if entries.len() <= 2 && one.file_name().to_str().is_some_and(is_record_name) => one,
        _ => return FoundRecord::None,
    };
    let text = read_bounded(&record.path()).ok().flatten();
    match text.and_then(|text| read_record(label, &text)) {
        Some(record) => FoundRecord::Read(record),
        None => FoundRecord::None,
    }
}

/// A short text; nothing if it is longer, or none.
fn read_bounded(path: &Path) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_SURVEYED_RECORD_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_SURVEYED_RECORD_BYTES)
        .then_some(bytes)
        .and_then(|bytes| String::from_utf8(bytes).ok()))
}
