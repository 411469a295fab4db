//! A queue of hints to verify, fair among senders.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::links::report::LinkHint;

/// Maximum number of queued hints of all senders together.
const MAX_WAITING_HINTS: usize = 1000;

/// Hints in order of arrival, round-robin by sender.
#[derive(Debug, Default)]
pub(super) struct LinkHintQueue {
    senders: VecDeque<(IpAddr, VecDeque<LinkHint>)>,
    count: usize,
}

impl LinkHintQueue {
    /// Queues a hint; returns whether there was room. When full, the sender with the most hints
    /// loses its latest, if the new sender has fewer.
    pub(super) fn push(&mut self, sender: IpAddr, hint: LinkHint) -> bool {
        if self.senders.iter().any(|(_, hints)| hints.contains(&hint)) {
            return true;
        }
        let own = self.senders.iter().find(|(known, _)| *known == sender).map_or(0, |(_, hints)| hints.len());
        if self.count >= MAX_WAITING_HINTS {
            let largest = self.senders.iter_mut().max_by_key(|(_, hints)| hints.len());
            let Some((_, hints)) = largest.filter(|(_, hints)| hints.len() > own + 1) else { return false };
            hints.pop_back();
            self.count -= 1;
        }
        self.count += 1;
        match self.senders.iter_mut().find(|(known, _)| *known == sender) {
            Some((_, hints)) => hints.push_back(hint),
            None => self.senders.push_back((sender, VecDeque::from([hint]))),
        }
        true
    }

    /// The next hint, of the sender whose turn it is.
    pub(super) fn pop(&mut self) -> Option<LinkHint> {
        let (sender, mut hints) = self.senders.pop_front()?;
        let hint = hints.pop_front()?;
        self.count -= 1;
        if !hints.is_empty() {
            self.senders.push_back((sender, hints));
        }
        Some(hint)
    }
}

#[cfg(test)]
mod tests {
    use ibi_store::journal::LinkKind;

    use super::*;

    fn hint(number: usize) -> LinkHint {
        let newer = format!("a.br/b/2026/01.01.00.00.{number}");
        LinkHint { kind: LinkKind::Edition, older: "a.br/b/2026/01.01".to_owned(), newer, decided: None }
    }

    /// Regression: one sender filled the queue, and all others were rejected.
    #[test]
    fn one_sender_keeps_nobody_else_out() {
        let (flooder, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let mut waiting = LinkHintQueue::default();
        let taken = (0..5000).filter(|number| waiting.push(flooder, hint(*number))).count();
        assert_eq!(taken, MAX_WAITING_HINTS);
        for number in 5000..5400 {
            assert!(waiting.push(other, hint(number)), "{number}");
        }
        assert_eq!(waiting.count, MAX_WAITING_HINTS);
        // Senders take turns, each in its own order.
        let first: Vec<_> = std::iter::from_fn(|| waiting.pop()).take(4).collect();
        assert_eq!(first, [hint(0), hint(5000), hint(1), hint(5001)]);
        assert_eq!(std::iter::from_fn(|| waiting.pop()).count(), MAX_WAITING_HINTS - 4);
    }
}
