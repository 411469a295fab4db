//! Following the feeds of Archives, and looking into what they say that cannot all be true (4.4).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Resolver, ResolverIndex, ResolverInner};
use crate::directory::ArchiveDirectory;
use crate::location_index::feed_transport::FeedTransport;
use crate::location_index::follower::{FeedSuspicion, LocationFollower, MAX_SUSPICIONS};
use crate::transport::ArchiveTransport;

/// How often Copies are looked at again whose Original's Archive was not heard from.
const COPY_RECHECK_INTERVAL: Duration = Duration::from_secs(60);

impl<A: ArchiveTransport, R: ArchiveDirectory> Resolver<A, R> {
    /// Keeps the location index up to date and reports what it answered. Never returns, if there is
    /// an index.
    pub async fn run_index(&self, client: impl FeedTransport) {
        let ResolverInner { known, clock, index, .. } = &*self.0;
        let Some(ResolverIndex { index, usage }) = index.clone() else { return };
        let (suspicions, suspected) = mpsc::channel(MAX_SUSPICIONS);
        let follower =
            LocationFollower::new(index, Arc::clone(known), client.clone(), Arc::clone(clock), suspicions);
        let reports = usage.run(Arc::clone(known), client, Arc::clone(clock));
        tokio::join!(follower.run(), reports, self.look_into(suspected));
    }

    /// Looks into what feeds say that cannot all be true.
    async fn look_into(&self, mut suspected: mpsc::Receiver<FeedSuspicion>) {
        let (mut batch, mut undecided) = (Vec::new(), Vec::new());
        loop {
            let received = suspected.recv_many(&mut batch, MAX_SUSPICIONS);
            match tokio::time::timeout(COPY_RECHECK_INTERVAL, received).await {
                Ok(0) => return,
                Ok(_) => {}
                Err(_) if undecided.is_empty() => continue,
                Err(_) => {}
            }
            for suspicion in batch.drain(..) {
                match suspicion {
                    FeedSuspicion::Originals(label) => self.check_dispute(&label).await,
                    FeedSuspicion::Copy(copy) if !undecided.contains(&copy) => undecided.push(copy),
                    FeedSuspicion::Copy(_) => {}
                }
            }
            undecided.truncate(MAX_SUSPICIONS);
            if !undecided.is_empty() {
                undecided = self.check_copies(std::mem::take(&mut undecided)).await;
            }
        }
    }
}
