//! Hashes a sequence of blocks, several segments in parallel where midstates are given.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::sha512::{LANES, MidstateSha512, SEGMENT_BYTES};
use super::{AlignedBlock, DIGEST_BLOCK_BYTES, HASH_SLICE_BYTES, cpu_slots};

/// Number of blocks in the segments that are hashed in parallel.
pub(super) const BLOCKS_PER_BATCH: usize = LANES * SEGMENT_BYTES / DIGEST_BLOCK_BYTES;

/// Maximum number of hashes that may buffer that many blocks at a time. Others process each block
/// as it comes.
const MAX_SEGMENTED_HASHES: usize = 2;

static ACTIVE_SEGMENTED_HASHES: AtomicUsize = AtomicUsize::new(0);

/// Permission to buffer blocks.
struct SegmentedHashPermit;

impl SegmentedHashPermit {
    fn try_acquire() -> Option<Self> {
        let taken = ACTIVE_SEGMENTED_HASHES.fetch_update(Ordering::AcqRel, Ordering::Acquire, |active| {
            (active < MAX_SEGMENTED_HASHES).then_some(active + 1)
        });
        taken.ok().map(|_| Self)
    }
}

impl Drop for SegmentedHashPermit {
    fn drop(&mut self) {
        ACTIVE_SEGMENTED_HASHES.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(super) struct SegmentedDigest<'a> {
    hash: MidstateSha512<SEGMENT_BYTES>,
    midstates: &'a [u8],
    permit: Option<SegmentedHashPermit>,
    buffered: Vec<AlignedBlock>,
}

impl<'a> SegmentedDigest<'a> {
    pub(super) fn new(midstates: &'a [u8]) -> Self {
        let permit = if midstates.is_empty() { None } else { SegmentedHashPermit::try_acquire() };
        Self { hash: MidstateSha512::new(), midstates, permit, buffered: Vec::new() }
    }

    /// Whether several segments may be hashed in parallel.
    pub(super) fn is_segmented(&self) -> bool {
        self.permit.is_some()
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        bytes.chunks(HASH_SLICE_BYTES).for_each(|part| cpu_slots::run_in_slot(|| self.hash.update(part)));
    }

    /// Takes a block, and returns finished blocks through `give_back`.
    pub(super) fn add_block(&mut self, block: AlignedBlock, mut give_back: impl FnMut(AlignedBlock)) {
        let is_whole = block.filled == DIGEST_BLOCK_BYTES;
        let can_start = self.permit.is_some() && is_whole && self.hash.can_hash_segments(self.midstates);
        if self.buffered.is_empty() && !can_start {
            self.update(block.bytes());
            return give_back(block);
        }
        self.buffered.push(block);
        if !is_whole {
            // The last block.
            self.hash_sequentially(give_back);
        } else if self.buffered.len() == BLOCKS_PER_BATCH {
            let parts: Vec<&[u8]> = self.buffered.iter().map(AlignedBlock::bytes).collect();
            let blocks_per_lane = BLOCKS_PER_BATCH / LANES;
            self.hash.hash_segments(
                std::array::from_fn(|lane| &parts[lane * blocks_per_lane..][..blocks_per_lane]),
                self.midstates,
            );
            self.buffered.drain(..).for_each(give_back);
        }
    }

    fn hash_sequentially(&mut self, mut give_back: impl FnMut(AlignedBlock)) {
        for block in std::mem::take(&mut self.buffered) {
            self.update(block.bytes());
            give_back(block);
        }
    }

    /// SHA-512 of all blocks, in hex, and the midstates.
    pub(super) fn finish(mut self) -> (String, Vec<u8>) {
        self.hash_sequentially(drop);
        self.hash.finish()
    }
}
