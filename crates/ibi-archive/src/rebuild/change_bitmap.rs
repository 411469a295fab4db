//! Which changes were seen: a bit each, for there may be many millions.

#[derive(Debug, Default)]
pub(super) struct ChangeBitmap(Vec<u64>);

impl ChangeBitmap {
    pub(super) fn add(&mut self, change: u64) {
        let (at, bit) = bit_position(change);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= bit;
    }

    pub(super) fn has(&self, change: u64) -> bool {
        let (at, bit) = bit_position(change);
        self.0.get(at).is_some_and(|bits| bits & bit != 0)
    }
}

/// Changes are numbered one by one from 1 on, so that the last one says how many there are.
fn bit_position(change: u64) -> (usize, u64) {
    ((change / 64) as usize, 1 << (change % 64))
}
