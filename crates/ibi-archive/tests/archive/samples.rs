//! Frozen samples: what this program wrote once, it reads for ever.

use std::fs;
use std::path::{Path, PathBuf};

use ibi_archive::keep::State;
use ibi_archive::rebuild::rebuild;

use crate::ours::{Ours, answers};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/data-1")
}

fn copied(ours: &Ours) -> PathBuf {
    let data = ours.data();
    let copy = std::process::Command::new("cp").arg("-r").arg(sample()).arg(&data).status();
    assert!(copy.unwrap().success());
    // Git keeps no empty folders, and the index is not kept.
    fs::create_dir_all(data.join("staging")).unwrap();
    data
}

/// A data folder of format 1: a folder with a translation and a second edition, a file from elsewhere, a removed one.
#[test]
fn a_data_folder_of_format_1_is_still_read() {
    let ours = Ours::new();
    let data = copied(&ours);
    let rebuilt = rebuild(&data, "tester", &|_| ()).unwrap();
    assert_eq!(rebuilt.items, 6);
    assert!(rebuilt.adopted.is_empty() && rebuilt.missing.is_empty() && rebuilt.damaged.is_empty());
    let (holdings, _) = ibi_archive::archive::open_to_read(&data).unwrap();
    let all = holdings.list("", 100).unwrap();
    let count = |state| all.iter().filter(|holding| holding.state == state).count();
    assert_eq!((count(State::Original), count(State::Copy), count(State::Deleted)), (4, 1, 1));
    assert!(!answers(&holdings).contains("Err"), "every byte is what it was");
}

#[test]
fn a_newer_data_folder_is_refused() {
    let ours = Ours::new();
    let data = copied(&ours);
    let path = data.join("archive");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("format 1", "format 2")).unwrap();
    let error = ibi_archive::archive::open_to_read(&data).err().unwrap().to_string();
    assert!(error.contains("newer program"), "{error}");
    fs::write(&path, text.replace("service", "serv1ce")).unwrap();
    let error = ibi_archive::archive::open_to_read(&data).err().unwrap().to_string();
    assert!(error.contains("damaged"), "{error}");
}
