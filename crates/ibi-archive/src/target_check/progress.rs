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
struct Heading {
    format: u32,
}

/// What was checked so far.
#[derive(Debug)]
pub struct CheckProgress {
    path: PathBuf,
    file: File,
    known: HashSet<(String, String)>,
    /// What an interrupted check had found.
    before: Vec<CheckedTarget>,
}

impl CheckProgress {
    /// Goes on with an interrupted check, or begins one. `restart`: begins one in any case.
    pub fn open(data: &Path, restart: bool) -> Result<Self, ArchiveError> {
        let path = data.join("service/links-check.jsonl");
        let before = match fs::read(&path) {
            Ok(bytes) if !restart => read(&bytes),
            Ok(_) => Vec::new(),
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        };
        // Written anew, so that a line that was cut off does not swallow the next.
        let mut text = line(&Heading { format: CHECK_FORMAT });
        before.iter().for_each(|checked| text.push_str(&line(checked)));
        ibi_store::service::replace(&path, text.as_bytes())?;
        let file = OpenOptions::new().append(true).open(&path).map_err(ArchiveError::io("write", &path))?;
        let known = before.iter().map(|checked| (checked.item.clone(), checked.url.clone())).collect();
        Ok(Self { path, file, known, before })
    }

    /// What an interrupted check had found.
    pub fn before(&self) -> &[CheckedTarget] {
        &self.before
    }

    /// Whether a target was checked already.
    pub(super) fn has(&self, item: &str, url: &str) -> bool {
        self.known.contains(&(item.to_owned(), url.to_owned()))
    }

    /// Notes a target. What a power cut takes of it is checked again.
    pub(super) fn note(&mut self, checked: &CheckedTarget) -> Result<(), ArchiveError> {
        self.file.write_all(line(checked).as_bytes()).map_err(ArchiveError::io("write", &self.path))
    }

    /// All is checked: the next check begins anew.
    pub(super) fn end(&self) -> Result<(), ArchiveError> {
        fs::remove_file(&self.path).map_err(ArchiveError::io("remove", &self.path))
    }
}

fn line(value: &impl Serialize) -> String {
    // Text and numbers: nothing that JSON could refuse.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Reads what was noted. What cannot be read, by a newer program or cut off, is checked again.
fn read(bytes: &[u8]) -> Vec<CheckedTarget> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let heading = lines.next().and_then(|line| serde_json::from_slice::<Heading>(line).ok());
    match heading {
        Some(Heading { format: CHECK_FORMAT }) => {
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
        CheckProgress::open(folder.path(), false).unwrap().note(&checked("a")).unwrap();
        let path = folder.path().join("service/links-check.jsonl");
        // The frozen form of a line.
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "{\"format\":1}\n{\"item\":\"a\",\"url\":\"http://a.br/\",\"outcome\":\"failed\",\"status\":404,\
             \"time\":\"2026-11-17T00:00:00Z\"}\n"
        );
        let half = [fs::read(&path).unwrap(), b"{\"item\":\"b\",".to_vec()].concat();
        fs::write(&path, half).unwrap();
        let mut progress = CheckProgress::open(folder.path(), false).unwrap();
        assert_eq!(progress.before(), [checked("a")]);
        assert!(progress.has("a", "http://a.br/") && !progress.has("b", "http://a.br/"));
        progress.note(&checked("b")).unwrap();
        let progress = CheckProgress::open(folder.path(), false).unwrap();
        assert_eq!(progress.before(), [checked("a"), checked("b")]);
        progress.end().unwrap();
        assert_eq!(CheckProgress::open(folder.path(), false).unwrap().before(), []);
        CheckProgress::open(folder.path(), false).unwrap().note(&checked("a")).unwrap();
        assert_eq!(CheckProgress::open(folder.path(), true).unwrap().before(), [], "begun anew");
    }
}
