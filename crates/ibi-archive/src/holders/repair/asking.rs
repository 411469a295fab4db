//! Others, asked what they have of an item: some at a time, and none for long.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::holders::held::Held;
use crate::holders::peer::{Peer, PeerError};

/// Archives that are asked at a time, and how long each is waited for.
const AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(20);

/// An Archive that is asked what it has of an item.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The Archive.
    pub peer: Peer,
    /// Whether nobody has said that it has the item: then it is told of only if it has, or does not answer.
    pub perhaps: bool,
}

impl From<Peer> for Asked {
    fn from(peer: Peer) -> Self {
        Self { peer, perhaps: false }
    }
}

/// What those who are asked have of an item, some at a time; each once.
pub(super) async fn ask(asked: Vec<Asked>, label: &str) -> Vec<(Asked, Result<Held, PeerError>)> {
    let mut seen = BTreeSet::new();
    let mut waiting = asked.into_iter().filter(|asked| seen.insert(asked.peer.url().to_owned())).enumerate();
    let (mut busy, mut answers) = (JoinSet::new(), Vec::new());
    loop {
        while busy.len() < AT_ONCE
            && let Some((number, asked)) = waiting.next()
        {
            let label = label.to_owned();
            busy.spawn(async move {
                let held = asked.peer.held_within(PATIENCE, &label).await;
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
