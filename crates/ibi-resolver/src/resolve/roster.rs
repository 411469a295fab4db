//! The Archives in the form that a resolution needs, computed once per registry state instead of
//! per request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ibi_id::Instant;
use ibi_protocol::analysis::ArchiveId;

use super::load::ArchiveLoad;
use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::location_index::{FollowedArchive, LocationIndex};

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
    pub(super) load: Arc<ArchiveLoad>,
    /// The state of its location feed, if there is an index.
    pub(super) followed: Option<Arc<FollowedArchive>>,
}

impl ArchiveRoster {
    fn new(
        source: Arc<[Arc<RegisteredArchive>]>,
        before: Option<&ArchiveRoster>,
        index: Option<&LocationIndex>,
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
    ) -> Arc<ArchiveRoster> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(roster) if Arc::ptr_eq(&roster.source, &archives) => Arc::clone(roster),
            before => {
                let roster = Arc::new(ArchiveRoster::new(archives, before.as_deref(), index));
                *last = Some(Arc::clone(&roster));
                roster
            }
        }
    }
}
