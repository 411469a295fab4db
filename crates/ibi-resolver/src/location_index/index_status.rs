//! What the index knows of each Archive, and how it follows it, for operators.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ibi_protocol::analysis::ArchiveId;
use ibi_store::StorageError;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{FollowedArchive, LocationIndex};
use crate::archive::{RegisteredArchive, RegistrationStatus};

/// The state of the index (`docs/formats/live-status.md`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexStatus {
    /// The Archives, without the retired ones.
    pub archives: Vec<ArchiveIndexStatus>,
    /// The number of different labels.
    pub labels: u64,
    /// The number of items.
    pub items: u64,
    /// The size of the index's file.
    pub bytes: u64,
}

/// The state of one Archive in the index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArchiveIndexStatus {
    /// The label of its service.
    pub service: String,
    /// Whether its feed is followed: it is online and has given a token. Others are asked.
    pub followed: bool,
    /// Whether the index answers for it now. If not, it is asked.
    pub current: bool,
    /// The position in its feed.
    pub position: Option<String>,
    /// The number of the change at that position.
    pub sequence: Option<u64>,
    /// How long ago its feed was complete, in seconds; `None` if it was not since the start.
    pub age_seconds: Option<f64>,
    /// The number of its items.
    pub items: u64,
    /// The number of its labels.
    pub labels: u64,
    /// The bytes of both in the index.
    pub bytes: u64,
    /// Why its feed could not be read the last time, if it could not.
    pub error: Option<String>,
}

impl LocationIndex {
    /// The state of the index.
    pub fn status<'a>(
        &self,
        archives: impl Iterator<Item = &'a RegisteredArchive>,
    ) -> Result<IndexStatus, StorageError> {
        let mut status = IndexStatus {
            labels: self.label_count()?,
            bytes: self.0.store.file_bytes(),
            ..IndexStatus::default()
        };
        for archive in archives.filter(|archive| archive.standing != RegistrationStatus::Retired) {
            let stored = self.followed_record(archive.id)?;
            let followed = self.followed(archive.id);
            status.items += stored.items;
            status.archives.push(ArchiveIndexStatus {
                service: archive.service.spelling().to_owned(),
                followed: archive.standing == RegistrationStatus::OnLine && !stored.token.is_empty(),
                current: self.age(&followed).is_some(),
                sequence: stored.position.split('-').next().and_then(|number| number.parse().ok()),
                position: Some(stored.position).filter(|position| !position.is_empty()),
                age_seconds: self.lag(&followed).map(|lag| lag.as_secs_f64()),
                items: stored.items,
                labels: stored.labels,
                bytes: stored.bytes,
                error: followed.error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            });
        }
        Ok(status)
    }

    /// How long ago an Archive's feed was complete, also if that is too long ago to be used.
    pub(crate) fn lag(&self, followed: &FollowedArchive) -> Option<Duration> {
        let heard = followed.heard.load(Ordering::Acquire);
        let lag = self.micros(Instant::now()).saturating_sub(heard);
        // To the millisecond: more digits mean nothing.
        (heard > 0).then(|| Duration::from_millis(lag / 1000))
    }

    /// Records whether an Archive's feed could be read.
    pub(crate) fn record_feed_result(&self, id: ArchiveId, error: Option<&str>) {
        let followed = self.followed(id);
        *followed.error.lock().unwrap_or_else(PoisonError::into_inner) = error.map(str::to_owned);
    }
}
