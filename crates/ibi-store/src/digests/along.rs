//! Blocks that come one after the other, hashed several stretches at once where stations are said.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::sha512::{LANES, STRETCH, Sha512};
use super::{AT_A_TIME, BLOCK, Block, turns};

/// Blocks of the stretches that are hashed at once.
pub(super) const TOGETHER: usize = LANES * STRETCH / BLOCK;

/// How many may wait for so many blocks at a time; others take each as it comes.
const MOST: usize = 2;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// One of those who may.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let taken = WAITING.fetch_update(Ordering::AcqRel, Ordering::Acquire, |waiting| {
            (waiting < MOST).then_some(waiting + 1)
        });
        taken.ok().map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(super) struct Along<'a> {
    hash: Sha512<STRETCH>,
    said: &'a [u8],
    place: Option<Place>,
    waiting: Vec<Block>,
}

impl<'a> Along<'a> {
    pub(super) fn new(said: &'a [u8]) -> Self {
        let place = if said.is_empty() { None } else { Place::take() };
        Self { hash: Sha512::new(), said, place, waiting: Vec::new() }
    }

    /// Whether several stretches may be hashed at once.
    pub(super) fn goes_along(&self) -> bool {
        self.place.is_some()
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        bytes.chunks(AT_A_TIME).for_each(|part| turns::take(|| self.hash.update(part)));
    }

    /// Takes a block, and gives back those that it is done with.
    pub(super) fn take(&mut self, block: Block, mut give_back: impl FnMut(Block)) {
        let is_whole = block.filled == BLOCK;
        let begins = self.place.is_some() && is_whole && self.hash.can_go_along(self.said);
        if self.waiting.is_empty() && !begins {
            self.update(block.bytes());
            return give_back(block);
        }
        self.waiting.push(block);
        if !is_whole {
            // The last one.
            self.one_by_one(give_back);
        } else if self.waiting.len() == TOGETHER {
            let parts: Vec<&[u8]> = self.waiting.iter().map(Block::bytes).collect();
            let of_one = TOGETHER / LANES;
            self.hash.stretches(std::array::from_fn(|lane| &parts[lane * of_one..][..of_one]), self.said);
            self.waiting.drain(..).for_each(give_back);
        }
    }

    fn one_by_one(&mut self, mut give_back: impl FnMut(Block)) {
        for block in std::mem::take(&mut self.waiting) {
            self.update(block.bytes());
            give_back(block);
        }
    }

    /// SHA-512 of all that was taken, in hex, and its stations.
    pub(super) fn finish(mut self) -> (String, Vec<u8>) {
        self.one_by_one(drop);
        self.hash.finish()
    }
}
