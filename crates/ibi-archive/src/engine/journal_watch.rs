//! Reads the whole journal periodically while the Archive is online, so that damage in old lines is
//! reported while a backup still has them (`docs/formats/journal.md`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::ArchiveEngine;
use crate::ArchiveError;
use crate::archive::{Archive, find_damage};
use crate::salvage::is_damaged_journal;

/// Delay from startup to the first check.
const FIRST_JOURNAL_CHECK_DELAY: Duration = Duration::from_secs(10);

const JOURNAL_CHECK_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs as long as the Archive is online.
pub async fn watch_journal(desk: Arc<ArchiveEngine>) {
    let mut delay = FIRST_JOURNAL_CHECK_DELAY;
    loop {
        tokio::time::sleep(delay).await;
        delay = JOURNAL_CHECK_INTERVAL;
        let looking = Arc::clone(&desk);
        let found = tokio::task::spawn_blocking(move || find_journal_damage(&looking)).await;
        let confirmed = match found {
            Ok(Ok(None)) | Err(_) => continue,
            // A command may have repaired it since: the writer checks again.
            Ok(Ok(Some(_))) => desk.with_archive(Archive::confirm_damage).await,
            Ok(Err(error)) => Err(error),
        };
        match confirmed {
            Ok(line) => desk.journal_damage.report(line),
            Err(error) => tracing::error!(%error, "the journal could not be checked"),
        }
    }
}

fn find_journal_damage(desk: &ArchiveEngine) -> Result<Option<u64>, ArchiveError> {
    let followed = desk.read()?.records.position()?;
    find_damage(desk.data(), followed)
}

/// Whether the journal is known to be damaged.
#[derive(Debug, Default)]
pub(super) struct JournalDamageFlag(AtomicBool);

impl JournalDamageFlag {
    /// Sets the flag and logs damage for the operator.
    pub(super) fn report(&self, line: Option<u64>) {
        self.set(line.is_some());
        if let Some(line) = line {
            tracing::error!(
                line = line + 1,
                "the journal is damaged: writes disabled until `ibi archive salvage` has recovered it, \
                 reads continue"
            );
        }
    }

    /// Sets the flag if the Archive failed to open because of journal damage.
    pub(super) fn note_failure(&self, error: &ArchiveError) {
        let error = match error {
            ArchiveError::Batch(error) => error,
            error => error,
        };
        if is_damaged_journal(error) {
            self.set(true);
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, is_damaged: bool) {
        self.0.store(is_damaged, Ordering::Release);
        metrics::gauge!("ibi_journal_damaged").set(f64::from(u8::from(is_damaged)));
    }
}
