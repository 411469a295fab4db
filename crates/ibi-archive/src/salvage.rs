//! Repairs a journal with damaged lines from all sources: its own bytes, a backup, the index, the
//! tree (`docs/formats/journal.md`). The damaged file is kept beside it.
//!
//! A lost line may have recorded that an Original went to another Archive or came from one. While
//! the tree does not explain a lost line, the Archive is in doubt, like a restored one: its
//! transferable Originals answer Copy until the operator confirms (clause 2.1).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ibi_store::journal::{JournalPosition, State};
use ibi_store::journal_salvage::{JournalLineSource, salvage as salvage_journal};
use ibi_store::{IndexStorage as _, SqliteIndex, StorageError};

use crate::archive::{ArchiveSettings, current_second, index_path, lock_data_folder, remove_if_exists};
use crate::backup::{mark_in_doubt, sync, unmark_salvaged};
use crate::rebuild::{OwnDeposits, RebuildReport, rebuild_locked};
use crate::{ArchiveError, backup};
use ibi_mint::clock::SystemClock;

/// The old index during a salvage: a source until the new journal is in place.
const OLD_INDEX_FILE: &str = "index.before-salvage";

/// The result of a salvage.
#[derive(Debug)]
pub struct SalvageReport {
    /// Each unreadable line, by its change number, with the source that it was recovered from.
    pub lines: BTreeMap<u64, JournalLineSource>,
    /// Whether the journal's title was damaged.
    pub title: bool,
    /// The number of unreadable lines at the end that were never acknowledged, and are left out.
    pub unacknowledged: u64,
    /// Where the damaged journal was kept; `None` if the journal was intact.
    pub kept: Option<PathBuf>,
    /// Items known only from the tree, with their state from now on.
    pub from_tree: Vec<(String, State)>,
    /// Whether Originals answer Copy until the operator confirms.
    pub in_doubt: bool,
    /// The rebuilt index; `None` if there was nothing to do.
    pub rebuilt: Option<RebuildReport>,
}

/// Recovers the damaged journal lines of a data folder, with the help of a backup if given.
pub fn salvage(
    data: &Path,
    backup: Option<&Path>,
    by: &str,
    progress: &dyn Fn(u64),
) -> Result<SalvageReport, ArchiveError> {
    if ArchiveSettings::read(data)?.is_none() {
        return Err(ArchiveError::NoArchive { data: data.to_owned() });
    }
    let _lock = lock_data_folder(data)?;
    let before = data.join(OLD_INDEX_FILE);
    let old_index = [index_path(data), before.clone()].iter().find_map(|path| SqliteIndex::open(path).ok());
    let followed = old_index.as_ref().map_or(Ok(JournalPosition::START), SqliteIndex::position)?;
    let found = salvage_journal(data, old_index.as_ref(), backup)?;
    let is_interrupted = before.exists() && !index_path(data).exists();
    let Some(found) = found else {
        let mut salvage = SalvageReport {
            lines: BTreeMap::new(),
            title: false,
            unacknowledged: 0,
            kept: None,
            from_tree: Vec::new(),
            in_doubt: backup::is_restored(data),
            rebuilt: None,
        };
        if is_interrupted {
            let own = OwnDeposits::of(data)?;
            salvage.finish(data, by, followed, &own, progress)?;
        }
        remove_if_exists(&before)?;
        return Ok(salvage);
    };
    let lost = found.lines.values().filter(|source| **source == JournalLineSource::Lost).count();
    let was_in_doubt = backup::is_restored(data);
    // Before the journal is replaced: whatever happens next, the Archive must not claim more than
    // it knows.
    if lost > 0 && !was_in_doubt {
        mark_in_doubt(data, "salvaged: lines of the journal are lost")?;
    }
    drop(old_index);
    put_index_aside(data, &before)?;
    let kept = free_journal_path(data)?;
    found.install(&kept)?;
    let mut salvage = SalvageReport {
        lines: found.lines,
        title: found.title,
        unacknowledged: found.unacknowledged,
        kept: Some(kept),
        from_tree: Vec::new(),
        in_doubt: lost > 0 || was_in_doubt,
        rebuilt: None,
    };
    let own = OwnDeposits::of(data)?;
    salvage.finish(data, by, followed, &own, progress)?;
    let explained = salvage.from_tree.len() + count_explained_gaps(data, &salvage)?;
    if lost > 0 && !was_in_doubt && explained >= lost {
        unmark_salvaged(data)?;
        salvage.in_doubt = false;
    }
    remove_if_exists(&before)?;
    sync(data)?;
    Ok(salvage)
}

impl SalvageReport {
    fn finish(
        &mut self,
        data: &Path,
        by: &str,
        followed: JournalPosition,
        own: &OwnDeposits,
        progress: &dyn Fn(u64),
    ) -> Result<(), ArchiveError> {
        let rebuilt = rebuild_locked(data, by, followed, Some(own), progress)?;
        let records = SqliteIndex::open(&index_path(data))?;
        for path in &rebuilt.adopted {
            let state = records.item(path)?.map_or(State::Copy, |record| record.state);
            self.from_tree.push((path.clone(), state));
        }
        self.rebuilt = Some(rebuilt);
        Ok(())
    }
}

/// Counts lost lines that are explained: a later version of the item has its own line with the
/// current state.
fn count_explained_gaps(data: &Path, salvage: &SalvageReport) -> Result<usize, ArchiveError> {
    let gaps = SqliteIndex::open(&index_path(data))?.gaps_in_history()?;
    let is_adopted = |path: &String| salvage.from_tree.iter().any(|(adopted, _)| adopted == path);
    Ok(gaps.iter().filter(|path| !is_adopted(path)).count())
}

/// Moves the index aside, because its position refers to the damaged journal. Without an index, a
/// note takes its place and marks an unfinished salvage.
fn put_index_aside(data: &Path, before: &Path) -> Result<(), ArchiveError> {
    let path = index_path(data);
    if !path.exists() {
        if !before.exists() {
            ibi_store::small_file::replace(before, b"there was no index\n")?;
        }
        return Ok(());
    }
    SqliteIndex::checkpoint_wal(&path);
    fs::rename(&path, before).map_err(ArchiveError::io("rename", &path))?;
    for name in ["index.sqlite-wal", "index.sqlite-shm"] {
        remove_if_exists(&data.join(name))?;
    }
    sync(data)
}

/// An unused name for the damaged journal.
fn free_journal_path(data: &Path) -> Result<PathBuf, ArchiveError> {
    let time = current_second(&SystemClock::new()).to_string().replace(':', "");
    let names = (0_u32..).map(|number| match number {
        0 => data.join(format!("journal.damaged-{time}")),
        number => data.join(format!("journal.damaged-{time}-{number}")),
    });
    let mut names = names.take(1000);
    names.find(|name| name.symlink_metadata().is_err()).ok_or_else(|| {
        ArchiveError::Value(format!("{} has too many damaged journals: move them away", data.display()))
    })
}

/// Whether an error means that the journal is damaged and needs a salvage.
pub(crate) fn is_damaged_journal(error: &ArchiveError) -> bool {
    matches!(
        error,
        ArchiveError::Storage(StorageError::DamagedJournal { .. } | StorageError::JournalBehind { .. })
    )
}
