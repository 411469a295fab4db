//! The Archives as a resolution needs them: worked out once for each state of the registry, not for each question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ibi_id::Instant;
use ibi_protocol::analysis::ArchiveId;

use super::load::Load;
use crate::archive::{Archive, Standing};

/// The Archives that count: all but the retired (4.3).
pub(super) struct Roster {
    source: Arc<[Arc<Archive>]>,
    pub(super) members: Vec<Member>,
}

pub(crate) struct Member {
    pub(crate) archive: Arc<Archive>,
    /// Where its URLs may be (4.2 step 2).
    pub(super) hosts: Vec<String>,
    /// Why it is not asked.
    pub(super) absent: Option<String>,
    pub(super) load: Arc<Load>,
}

impl Roster {
    fn new(source: Arc<[Arc<Archive>]>, before: Option<&Roster>) -> Self {
        let known = before.iter().flat_map(|roster| &roster.members);
        let loads: HashMap<ArchiveId, &Arc<Load>> =
            known.map(|member| (member.archive.id, &member.load)).collect();
        let counted = source.iter().filter(|archive| archive.standing != Standing::Retired);
        let members = counted
            .map(|archive| Member {
                hosts: archive.url_hosts(),
                absent: absent(archive),
                load: loads.get(&archive.id).map_or_else(Arc::default, |&held| Arc::clone(held)),
                archive: Arc::clone(archive),
            })
            .collect();
        Self { source, members }
    }

    pub(super) fn archive(&self, id: ArchiveId) -> Option<&Arc<Archive>> {
        self.members.iter().map(|member| &member.archive).find(|archive| archive.id == id)
    }
}

/// Why an Archive cannot be asked: it still counts as one that did not answer (4.3, D21).
fn absent(archive: &Archive) -> Option<String> {
    let since = || {
        let at = Instant::new(archive.changed, 0);
        at.map_or_else(String::new, |at| format!(" since {at}"))
    };
    match archive.standing {
        Standing::OnLine | Standing::Retired => None,
        Standing::OffLine => Some(format!("off line{}", since())),
        Standing::Unconfirmed => Some(format!("on line{}, but not confirmed", since())),
        Standing::New => Some("registered, but it has not come on line yet".to_owned()),
    }
}

/// The roster of the registry's last state.
#[derive(Default)]
pub(super) struct Rosters(Mutex<Option<Arc<Roster>>>);

impl Rosters {
    pub(super) fn of(&self, archives: Arc<[Arc<Archive>]>) -> Arc<Roster> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(roster) if Arc::ptr_eq(&roster.source, &archives) => Arc::clone(roster),
            before => {
                let roster = Arc::new(Roster::new(archives, before.as_deref()));
                *last = Some(Arc::clone(&roster));
                roster
            }
        }
    }
}
