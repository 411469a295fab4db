//! All labels that were ever printed, and what else is counted.

use std::collections::HashSet;
use std::fmt;

#[derive(Default)]
pub struct Ledger {
    seen: HashSet<String>,
    pub labels: usize,
    pub duplicates: usize,
    pub starts: usize,
    /// Starts with the clock stepped by at most 3 s, and those of them that gave labels.
    pub near: usize,
    pub near_gave: usize,
    pub recoveries: usize,
    /// Things that must not happen, whatever else does.
    pub wrongs: Vec<String>,
}

impl Ledger {
    /// Takes down what a process printed. A last line that was cut off is no label.
    pub fn take(&mut self, printed: &str) -> usize {
        let whole = printed.rfind('\n').map_or("", |end| &printed[..=end]);
        let mut count = 0;
        for label in whole.lines().flat_map(|line| line.split('\t')) {
            count += 1;
            if !self.seen.insert(label.to_owned()) {
                self.duplicates += 1;
            }
        }
        self.labels += count;
        count
    }

    pub fn holds(&self) -> bool {
        self.duplicates == 0
            && self.labels > 0
            && self.near_gave * 10 >= self.near * 9
            && self.wrongs.is_empty()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} labels in {} starts, {} printed twice", self.labels, self.starts, self.duplicates)?;
        if self.near > 0 {
            write!(f, "; {} of {} starts within 3 s gave labels", self.near_gave, self.near)?;
        }
        write!(f, "; {} recoveries", self.recoveries)?;
        self.wrongs.iter().try_for_each(|wrong| write!(f, "\n  WRONG: {wrong}"))
    }
}
