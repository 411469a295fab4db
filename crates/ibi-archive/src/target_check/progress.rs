//! How far a check of targets has come: `service/links-check.jsonl` in the data folder
//! (`docs/formats/service.md`).

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CheckedTarget;
use crate::ArchiveError;

/// The format of the file.
const CHECK_FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct CheckFileHeader {
    format: u32,
}

/// What was checked so far.
#[derive(Debug)]
pub struct TargetCheckProgress {
    path: PathBuf,
    file: File,
    known: HashSet<(String, String)>,
    /// The results of an interrupted check.
    before: Vec<CheckedTarget>,
}

impl TargetCheckProgress {
    /// Resumes an interrupted check, or starts one. `restart`: always starts one.
    pub fn open(data: &Path, restart: bool) -> Result<Self, ArchiveError> {
        let path = data.join("service/links-check.jsonl");
        let before = match fs::read(&path) {
            Ok(bytes) if !restart => parse_results(&bytes),
            Ok(_) => Vec::new(),
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        };
        // Rewritten, so that a truncated line does not merge with the next.
        let mut text = json_line(&CheckFileHeader { format: CHECK_FORMAT });
        before.iter().for_each(|checked| text.push_str(&json_line(checked)));
        ibi_store::small_file::replace(&path, text.as_bytes())?;
        let file = OpenOptions::new().append(true).open(&path).map_err(ArchiveError::io("write", &path))?;
        let known = before.iter().map(|checked| (checked.item.clone(), checked.url.clone())).collect();
        Ok(Self { path, file, known, before })
    }

    /// What an interrupted check had found.
    pub fn earlier_results(&self) -> &[CheckedTarget] {
        &self.before
    }

    /// Whether a target was checked already.
    pub(super) fn is_already_checked(&self, item: &str, url: &str) -> bool {
        self.known.contains(&(item.to_owned(), url.to_owned()))
    }

    /// Saves a result. What a power cut loses is checked again.
    pub(super) fn append_result(&mut self, checked: &CheckedTarget) -> Result<(), ArchiveError> {
        self.file.write_all(json_line(checked).as_bytes()).map_err(ArchiveError::io("write", &self.path))
    }

    /// Everything is checked: the next check starts from the beginning.
    pub(super) fn delete_progress_file(&self) -> Result<(), ArchiveError> {
        fs::remove_file(&self.path).map_err(ArchiveError::io("remove", &self.path))
    }
}

fn json_line(value: &impl Serialize) -> String {
    // Text and numbers: nothing that JSON could refuse.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Reads what was noted. What cannot be read, by a newer program or cut off, is checked again.
fn parse_results(bytes: &[u8]) -> Vec<CheckedTarget> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let heading = lines.next().and_then(|line| serde_json::from_slice::<CheckFileHeader>(line).ok());
    match heading {
        Some(CheckFileHeader { format: CHECK_FORMAT }) => {
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target_check::TargetOutcome;

    #[test]
    fn an_interrupted_check_is_resumed_also_after_a_line_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let checked = |item: &str| CheckedTarget {
            item: item.to_owned(),
            url: "http://a.br/".to_owned(),
            outcome: TargetOutcome::Failed,
            status: Some(404),
            note: None,
            time: "2026-11-17T00:00:00Z".to_owned(),
        };
        TargetCheckProgress::open(folder.path(), false).unwrap().append_result(&checked("a")).unwrap();
        let path = folder.path().join("service/links-check.jsonl");
        // The frozen form of a line.
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "{\"format\":1}\n{\"item\":\"a\",\"url\":\"http://a.br/\",\"outcome\":\"failed\",\"status\":404,\
             \"time\":\"2026-11-17T00:00:00Z\"}\n"
        );
        let half = [fs::read(&path).unwrap(), b"{\"item\":\"b\",".to_vec()].concat();
        fs::write(&path, half).unwrap();
        let mut progress = TargetCheckProgress::open(folder.path(), false).unwrap();
        assert_eq!(progress.earlier_results(), [checked("a")]);
        assert!(
            progress.is_already_checked("a", "http://a.br/")
                && !progress.is_already_checked("b", "http://a.br/")
        );
        progress.append_result(&checked("b")).unwrap();
        let progress = TargetCheckProgress::open(folder.path(), false).unwrap();
        assert_eq!(progress.earlier_results(), [checked("a"), checked("b")]);
        progress.delete_progress_file().unwrap();
        assert_eq!(TargetCheckProgress::open(folder.path(), false).unwrap().earlier_results(), []);
        TargetCheckProgress::open(folder.path(), false).unwrap().append_result(&checked("a")).unwrap();
        assert_eq!(
            TargetCheckProgress::open(folder.path(), true).unwrap().earlier_results(),
            [],
            "begun anew"
        );
    }
}
