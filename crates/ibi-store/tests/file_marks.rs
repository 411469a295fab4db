//! The minter's state file: conformance, damage, locks, and the frozen sample.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use ibi_store::conformance::{first_mark, marks, next_mark};
use ibi_store::{
    DistributorEdition, FileMarkStorage, MarkDamage, MarkStorage as _, MarkStorageError, MemoryMarkStorage,
    Subsystem,
};
use tempfile::TempDir;

/// A subsystem whose prefixes are unique to this test and this run. Its claims are removed on drop.
struct Ours(Subsystem);

impl std::ops::Deref for Ours {
    type Target = Subsystem;

    fn deref(&self) -> &Subsystem {
        &self.0
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        for folder in ["/run/lock", "/var/tmp"] {
            for prefix in [&self.0.rep, &self.0.ibip].into_iter().flatten() {
                let _ = fs::remove_file(format!("{folder}/ibi-{}", prefix.replace('/', "+")));
            }
        }
    }
}

fn subsystem() -> Ours {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let unique = format!("{:016x}{:08x}{number:08x}", std::process::id(), 7);
    Ours(Subsystem {
        id: unique.clone(),
        rep: Some(format!("test/{unique}")),
        ibip: Some(format!("T{unique}")),
        edition: DistributorEdition::Rtc2015,
    })
}

fn start(folder: &Path, subsystem: &Subsystem) -> FileMarkStorage {
    FileMarkStorage::start(folder, subsystem, |_| first_mark()).unwrap()
}

fn open(folder: &Path) -> FileMarkStorage {
    let (state, opening) = FileMarkStorage::open(folder).unwrap();
    opening.accept_mark(state.mark.unwrap()).unwrap()
}

#[test]
fn mark_stores_conform() {
    marks(MemoryMarkStorage::new(first_mark()), |store| store);
    let (folder, ours) = (TempDir::new().unwrap(), subsystem());
    marks(start(folder.path(), &ours), |store| {
        drop(store);
        open(folder.path())
    });
}

#[test]
fn a_prefix_is_started_once() {
    let (folder, ours) = (TempDir::new().unwrap(), subsystem());
    let store = start(folder.path(), &ours);
    let again = || FileMarkStorage::start(folder.path(), &subsystem(), |_| first_mark());
    assert!(matches!(again(), Err(MarkStorageError::AlreadyStarted { .. })), "while it runs");
    drop(store);
    assert!(matches!(again(), Err(MarkStorageError::AlreadyStarted { .. })), "and after");
    let empty = TempDir::new().unwrap();
    assert!(matches!(FileMarkStorage::open(empty.path()), Err(MarkStorageError::NotStarted { .. })));
    fs::remove_file(folder.path().join("minter/state")).unwrap();
    assert!(matches!(FileMarkStorage::open(folder.path()), Err(MarkStorageError::Missing { .. })));
}

#[test]
fn there_is_one_holder_at_a_time_and_errors_name_it() {
    let (folder, ours) = (TempDir::new().unwrap(), subsystem());
    let store = start(folder.path(), &ours);
    let Err(MarkStorageError::Held { holder, .. }) = FileMarkStorage::open(folder.path()) else {
        panic!("not held")
    };
    assert_eq!(holder.process, Some(std::process::id()));
    drop(store);
    drop(open(folder.path()));
}

#[test]
fn two_folders_with_one_prefix_are_refused() {
    let (folder, other, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap(), subsystem());
    let store = start(folder.path(), &ours);
    let same = |rep: bool| Subsystem {
        id: "f".repeat(32),
        rep: ours.rep.clone().filter(|_| rep),
        ibip: ours.ibip.clone().filter(|_| !rep),
        edition: DistributorEdition::Rtc2015,
    };
    for rep in [true, false] {
        let second = FileMarkStorage::start(other.path(), &same(rep), |_| first_mark());
        assert!(matches!(second, Err(MarkStorageError::Held { .. })), "while the first runs");
    }
    drop(store);
    let second = FileMarkStorage::start(other.path(), &same(true), |_| first_mark());
    let Err(MarkStorageError::OtherFolder { folder: named, .. }) = second else { panic!("not refused") };
    assert_eq!(named, folder.path().canonicalize().unwrap(), "and when it does not");
    // A deleted folder holds no claim, but the dates that it issued in this boot are still
    // recorded.
    drop(folder);
    let mut remembered = None;
    FileMarkStorage::start(other.path(), &same(true), |claims| {
        remembered = Some(claims.issued_ranges().count());
        first_mark()
    })
    .unwrap();
    assert_eq!(remembered, Some(0), "its only mark gave nothing out");
}

#[test]
fn a_copy_of_a_folder_is_refused_until_it_takes_over() {
    let (folder, copy, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap(), subsystem());
    drop(start(folder.path(), &ours));
    fs::create_dir(copy.path().join("minter")).unwrap();
    fs::copy(folder.path().join("minter/state"), copy.path().join("minter/state")).unwrap();
    assert!(matches!(FileMarkStorage::open(copy.path()), Err(MarkStorageError::Copy { .. })));
    let (state, opening) = FileMarkStorage::open_to_recover(copy.path()).unwrap();
    assert!(!state.same_file, "it is told from the file it was copied from");
    drop(opening.replace(&state.subsystem, next_mark(&state.mark.unwrap())).unwrap());
    assert!(
        matches!(FileMarkStorage::open(folder.path()), Err(MarkStorageError::Copy { .. })),
        "the first gives way"
    );
    drop(open(copy.path()));
}

#[test]
fn a_restored_older_state_is_detected() {
    let (folder, ours) = (TempDir::new().unwrap(), subsystem());
    let path = folder.path().join("minter/state");
    let mut store = start(folder.path(), &ours);
    let backup = fs::read(&path).unwrap();
    store.advance(next_mark(store.mark())).unwrap();
    store.advance(next_mark(store.mark())).unwrap();
    let last = store.mark().clone();
    drop(store);
    // Written into the same file: same inode, same birth time.
    fs::write(&path, backup).unwrap();
    let (state, opening) = FileMarkStorage::open(folder.path()).unwrap();
    assert_eq!(state.mark.unwrap().sequence, 1);
    let witness = opening.claims().witness().unwrap();
    assert_eq!((witness.sequence, &witness.used), (last.sequence, &last.used));
}

#[test]
fn every_changed_byte_is_detected_or_harmless() {
    let (folder, ours) = (TempDir::new().unwrap(), subsystem());
    let path = folder.path().join("minter/state");
    let mut store = start(folder.path(), &ours);
    for _ in 0..5 {
        store.advance(next_mark(store.mark())).unwrap();
    }
    let mark = store.mark().clone();
    drop(store);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        match FileMarkStorage::read_current(folder.path()) {
            Ok(state) => {
                assert_eq!(state.subsystem, *ours, "byte {at}");
                match state.mark {
                    // The newest mark, never an older one without a warning.
                    Ok(found) => assert_eq!(found, mark, "byte {at}"),
                    Err(MarkDamage { readable }) => {
                        assert_eq!(readable.len(), 1, "one byte harms one mark: {at}");
                        assert!(mark.sequence - readable[0].sequence <= 1, "byte {at}");
                    }
                }
            }
            Err(MarkStorageError::Damaged { .. } | MarkStorageError::NewerFormat { .. }) => {
                assert!(at < 4096, "byte {at}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    for length in (0..whole.len()).step_by(97) {
        fs::write(&path, &whole[..length]).unwrap();
        match FileMarkStorage::read_current(folder.path()) {
            Ok(state) => assert!(state.mark.is_err(), "cut to {length}"),
            Err(error) => assert!(matches!(error, MarkStorageError::Damaged { .. }), "{error}"),
        }
    }
}

#[test]
fn the_frozen_sample_is_still_read() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("minter")).unwrap();
    let sample = include_bytes!("samples/minter-state-1");
    fs::write(folder.path().join("minter/state"), sample).unwrap();
    let state = FileMarkStorage::read_current(folder.path()).unwrap();
    assert_eq!(state.subsystem.rep.as_deref(), Some("inpe.br/archive"));
    assert_eq!(state.subsystem.ibip.as_deref(), Some("8JMKD3MGP8W"));
    let mark = state.mark.unwrap();
    assert_eq!((mark.sequence, mark.last.to_string().as_str()), (4, "2026-11-15T21:26:43.1981Z"));
    assert_eq!(mark.used.len(), 1);
    let newer = sample.to_vec();
    let newer = [b"ibi minter state, format 2".as_slice(), &newer[26..]].concat();
    fs::write(folder.path().join("minter/state"), newer).unwrap();
    assert!(matches!(
        FileMarkStorage::read_current(folder.path()),
        Err(MarkStorageError::NewerFormat { .. })
    ));
}
