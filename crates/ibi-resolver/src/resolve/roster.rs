//! The Archives in the form that a resolution needs, computed once per registry state instead of
//! per request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ibi_id::Instant;
use ibi_protocol::analysis::ArchiveId;
use tokio::time::Instant as Moment;

use super::load::{ArchiveLoad, LoadSlot};
use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::location_index::{FollowedArchive, LocationIndex};
use crate::transport::ArchiveHealth;
use crate::transport::health::{BreakerPermit, HealthRecord};

/// The Archives that count: all but the retired ones (4.3).
pub(super) struct ArchiveRoster {
    source: Arc<[Arc<RegisteredArchive>]>,
    pub(super) members: Vec<RosterMember>,
}

pub(crate) struct RosterMember {
    pub(crate) archive: Arc<RegisteredArchive>,
    /// The hosts of its URLs (4.2 step 2).
    pub(super) hosts: Vec<String>,
    /// Why it is not queried.
    pub(super) absent: Option<String>,
    load: Arc<ArchiveLoad>,
    /// Whether it answers, if the transport records it.
    health: Option<HealthRecord>,
    /// The state of its location feed, if there is an index.
    pub(super) followed: Option<Arc<FollowedArchive>>,
}

/// The right to ask an Archive one question, held until it has answered.
pub(super) struct QuestionPermit {
    slot: LoadSlot,
    _breaker: Option<BreakerPermit>,
}

impl QuestionPermit {
    /// The Archive answered, with whatever result.
    pub(super) fn answered(self) {
        self.slot.answered();
    }
}

impl RosterMember {
    /// The right to ask it a question now, or why it is not asked.
    pub(super) fn admit(&self, now: Moment) -> Result<QuestionPermit, &'static str> {
        let refuse = |reason: &'static str, why| {
            let archive = self.archive.service.spelling().to_owned();
            metrics::counter!("ibi_archive_questions_refused_total", "archive" => archive, "reason" => reason)
                .increment(1);
            Err(why)
        };
        let Some(slot) = self.load.slot(now) else { return refuse("busy", "busy with earlier questions") };
        let Some(health) = &self.health else { return Ok(QuestionPermit { slot, _breaker: None }) };
        match health.admit(now) {
            Some(permit) => Ok(QuestionPermit { slot, _breaker: Some(permit) }),
            None => refuse("breaker", "not asked for a while: it did not answer the last questions"),
        }
    }
}

impl ArchiveRoster {
    fn new(
        source: Arc<[Arc<RegisteredArchive>]>,
        before: Option<&ArchiveRoster>,
        index: Option<&LocationIndex>,
        health: Option<&ArchiveHealth>,
    ) -> Self {
        let known = before.iter().flat_map(|roster| &roster.members);
        let loads: HashMap<ArchiveId, &Arc<ArchiveLoad>> =
            known.map(|member| (member.archive.id, &member.load)).collect();
        let counted = source.iter().filter(|archive| archive.standing != RegistrationStatus::Retired);
        let members = counted
            .map(|archive| RosterMember {
                hosts: archive.url_hosts(),
                absent: absence_reason(archive),
                load: loads.get(&archive.id).map_or_else(Arc::default, |&held| Arc::clone(held)),
                followed: index.map(|index| index.followed(archive.id)),
                health: health.map(|health| health.record(archive.id)),
                archive: Arc::clone(archive),
            })
            .collect();
        Self { source, members }
    }

    /// Whether the index can answer for every Archive that counts.
    pub(super) fn is_indexed(&self, index: &LocationIndex) -> bool {
        let is_current = |member: &RosterMember| {
            member.absent.is_none()
                && member.followed.as_ref().is_some_and(|followed| index.age(followed).is_some())
        };
        self.members.iter().all(is_current)
    }

    pub(super) fn archive(&self, id: ArchiveId) -> Option<&Arc<RegisteredArchive>> {
        self.members.iter().map(|member| &member.archive).find(|archive| archive.id == id)
    }
}

/// Why an Archive cannot be queried: it still counts as one that did not answer (4.3, D21).
fn absence_reason(archive: &RegisteredArchive) -> Option<String> {
    let since = || {
        let at = Instant::new(archive.changed, 0);
        at.map_or_else(String::new, |at| format!(" since {at}"))
    };
    match archive.standing {
        RegistrationStatus::OnLine | RegistrationStatus::Retired => None,
        RegistrationStatus::OffLine => Some(format!("offline{}", since())),
        RegistrationStatus::Unconfirmed => Some(format!("online{}, but not confirmed", since())),
        RegistrationStatus::New => Some("registered, but it has not come online yet".to_owned()),
    }
}

/// The roster of the latest registry state.
#[derive(Default)]
pub(super) struct RosterCache(Mutex<Option<Arc<ArchiveRoster>>>);

impl RosterCache {
    pub(super) fn of(
        &self,
        archives: Arc<[Arc<RegisteredArchive>]>,
        index: Option<&LocationIndex>,
        health: Option<&ArchiveHealth>,
    ) -> Arc<ArchiveRoster> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(roster) if Arc::ptr_eq(&roster.source, &archives) => Arc::clone(roster),
            before => {
                let roster = Arc::new(ArchiveRoster::new(archives, before.as_deref(), index, health));
                *last = Some(Arc::clone(&roster));
                roster
            }
        }
    }
}
