//! Looks for two Archives that answer Original at the same time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Federation;
use super::count::Wrong;
use super::node::Stand;

/// Between two looks: who asks all the time slows down what it looks for.
const PAUSE: Duration = Duration::from_millis(20);

impl Federation {
    pub(super) fn watch(&self) {
        let mut looks = 0;
        while !self.over.load(Ordering::Relaxed) {
            looks += 1;
            // As many looks as operations go on: half of them at what those care for.
            let operation = self.begun.load(Ordering::Relaxed);
            let mut chance = self.chance(usize::MAX / 2 + looks);
            let item = self.pick(operation, &mut chance);
            self.look(&self.path(item));
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks all for one item.
    pub(super) fn look(&self, path: &str) {
        self.with(|count| count.looks += 1);
        let originals = || -> Vec<(usize, Stand)> {
            let stands = self.nodes.iter().enumerate().map(|(number, node)| (number, node.stand(path)));
            let stands = stands.filter_map(|(number, stand)| Some((number, stand?)));
            stands.filter(|(_, stand)| stand.state == "Original").collect()
        };
        let first = originals();
        if first.len() < 2 {
            return;
        }
        // It may have been handed over between two questions. But an Archive is the Original in an
        // epoch once, without interruption: one that still is in the same epoch was so when the
        // others answered.
        let second = originals();
        let still = |(number, stand): &&(usize, Stand)| {
            second.iter().any(|(other, later)| other == number && later.epoch == stand.epoch)
        };
        let both: Vec<_> = first.iter().filter(still).collect();
        if both.len() > 1 {
            let told: Vec<String> =
                both.iter().map(|(number, stand)| format!("{number}: {}", stand.whole)).collect();
            self.wrong(Wrong::SeenTwice, format!("{path}: {}", told.join("; ")));
        }
    }
}
