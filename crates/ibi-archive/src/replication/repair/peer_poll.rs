//! Asks peers what they have of an item, with limited concurrency and a timeout.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::replica::object_description::ObjectDescription;
use crate::replication::peer::{PeerArchive, PeerError};

/// Concurrent requests, and the timeout of each.
const MAX_CONCURRENT_POLLS: usize = 8;
const PEER_POLL_TIMEOUT: Duration = Duration::from_secs(20);

/// An Archive to ask for an item.
#[derive(Debug, Clone)]
pub struct PeerCandidate {
    /// The Archive.
    pub peer: PeerArchive,
    /// Whether nothing says that it has the item. Then it is reported only if it has it or does not
    /// answer.
    pub perhaps: bool,
}

impl From<PeerArchive> for PeerCandidate {
    fn from(peer: PeerArchive) -> Self {
        Self { peer, perhaps: false }
    }
}

/// Asks each Archive once, with limited concurrency.
pub(super) async fn poll_peers(
    asked: Vec<PeerCandidate>,
    label: &str,
) -> Vec<(PeerCandidate, Result<ObjectDescription, PeerError>)> {
    let mut seen = BTreeSet::new();
    let mut waiting = asked.into_iter().filter(|asked| seen.insert(asked.peer.url().to_owned())).enumerate();
    let (mut busy, mut answers) = (JoinSet::new(), Vec::new());
    loop {
        while busy.len() < MAX_CONCURRENT_POLLS
            && let Some((number, asked)) = waiting.next()
        {
            let label = label.to_owned();
            busy.spawn(async move {
                let held = asked.peer.describe_object_within(PEER_POLL_TIMEOUT, &label).await;
                (number, asked, held)
            });
        }
        match busy.join_next().await {
            Some(Ok(answer)) => answers.push(answer),
            Some(Err(_)) => {}
            None => break,
        }
    }
    // In the order in which they were named.
    answers.sort_by_key(|(number, ..)| *number);
    answers.into_iter().map(|(_, asked, held)| (asked, held)).collect()
}
