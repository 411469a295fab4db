//! Digests of content: SHA-512 of the whole file, for everyone, and BLAKE3 of each block of 1 MiB,
//! so that a part can be verified before it is served.

mod cpu_slots;
mod segmented;
mod sha512;

use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};

use sha2::Digest as _;

use crate::direct_writer::DIRECT_IO_ALIGNMENT;
pub use crate::text_block::hex;
use segmented::{BLOCKS_PER_BATCH, SegmentedDigest};
use sha512::{MidstateSha512, SEGMENT_BYTES};

/// The unit of verification.
pub const DIGEST_BLOCK_BYTES: usize = 1 << 20;

/// From this size on, SHA-512 is computed in parallel on another core.
const MIN_PARALLEL_BYTES: usize = 4 * DIGEST_BLOCK_BYTES;

/// Maximum number of blocks queued for the other core.
const MAX_QUEUED_BLOCKS: usize = 8;

/// Bytes hashed before the CPU slot is released to another thread.
const HASH_SLICE_BYTES: usize = DIGEST_BLOCK_BYTES / 4;

/// The digests of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDigests {
    /// Size in bytes.
    pub size: u64,
    /// SHA-512 of the whole, in hex.
    pub sha512: String,
    /// BLAKE3 of each block, concatenated.
    pub blocks: Vec<u8>,
    /// The SHA-512 midstates: the state after each segment of 4 MiB that more bytes follow. With
    /// them, the segments can be verified in parallel.
    pub stations: Vec<u8>,
}

impl ContentDigests {
    /// The digests of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        let blocks =
            bytes.chunks(DIGEST_BLOCK_BYTES).flat_map(|block| *blake3::hash(block).as_bytes()).collect();
        let mut hash = MidstateSha512::<SEGMENT_BYTES>::new();
        hash.update(bytes);
        let (sha512, stations) = hash.finish();
        Self { size: bytes.len() as u64, sha512, blocks, stations }
    }
}

/// SHA-512 in hex.
pub fn sha512(bytes: &[u8]) -> String {
    hex(&sha2::Sha512::digest(bytes))
}

/// Whether a block matches its digest.
pub fn matches_block_digest(block: &[u8], digests: &[u8], number: u64) -> bool {
    let start = usize::try_from(number).ok().and_then(|number| number.checked_mul(blake3::OUT_LEN));
    let expected = start.and_then(|start| digests.get(start..start.checked_add(blake3::OUT_LEN)?));
    expected.is_some_and(|expected| blake3::hash(block).as_bytes() == expected)
}

/// Copies in constant memory, hashing once what passes.
pub fn copy_and_digest(
    reader: &mut dyn Read,
    writer: &mut dyn Write,
) -> Result<ContentDigests, DigestCopyError> {
    copy_with_midstates(reader, writer, &[])
}

/// Copies likewise, with midstates from an untrusted source. Wrong midstates cost speed, never
/// correctness.
pub fn copy_with_midstates(
    reader: &mut dyn Read,
    writer: &mut dyn Write,
    midstates: &[u8],
) -> Result<ContentDigests, DigestCopyError> {
    let mut size = 0;
    let mut blocks = Vec::new();
    let mut first = Vec::new();
    // Most files are small: they use neither the other core nor more memory than they need.
    while first.len() < MIN_PARALLEL_BYTES {
        let filled = first.len();
        let more = (&mut *reader)
            .take(DIGEST_BLOCK_BYTES as u64)
            .read_to_end(&mut first)
            .map_err(DigestCopyError::Read)?;
        if more == 0 {
            break;
        }
        write_block(&first[filled..], writer, &mut size)?;
        hash_block(&first[filled..], &mut blocks);
        if more < DIGEST_BLOCK_BYTES {
            break;
        }
    }
    if first.len() < MIN_PARALLEL_BYTES {
        return Ok(ContentDigests { size, sha512: sha512(&first), blocks, stations: Vec::new() });
    }
    let (send, taken): (SyncSender<AlignedBlock>, Receiver<AlignedBlock>) =
        mpsc::sync_channel(MAX_QUEUED_BLOCKS);
    let (give_back, spare) = mpsc::sync_channel(MAX_QUEUED_BLOCKS + BLOCKS_PER_BATCH + 2);
    let mut hash = SegmentedDigest::new(midstates);
    // The thread that reads and writes waits for the disk too. Where SHA-512 is fast, its thread
    // does all the hashing.
    let hash_in_thread = hash.is_segmented();
    std::thread::scope(|scope| {
        let hasher = scope.spawn(move || {
            let mut blocks = Vec::new();
            hash.update(&first);
            drop(first);
            for block in taken {
                if hash_in_thread {
                    hash_block(block.bytes(), &mut blocks);
                }
                // At the end nobody receives it any more.
                hash.add_block(block, |block| drop(give_back.try_send(block)));
            }
            (hash.finish(), blocks)
        });
        loop {
            let mut block: AlignedBlock = spare.try_recv().unwrap_or_default();
            block.filled = read_full_block(reader, block.buffer_mut()).map_err(DigestCopyError::Read)?;
            if block.filled == 0 {
                break;
            }
            write_block(block.bytes(), writer, &mut size)?;
            if !hash_in_thread {
                hash_block(block.bytes(), &mut blocks);
            }
            // The receiver takes everything until we drop the sender.
            let _ = send.send(block);
        }
        drop(send);
        let ((sha512, stations), more) =
            hasher.join().map_err(|_| DigestCopyError::Read(io::ErrorKind::Other.into()))?;
        blocks.extend(more);
        Ok(ContentDigests { size, sha512, blocks, stations })
    })
}

/// Memory for a block, aligned for direct writes to a disk.
struct AlignedBlock {
    memory: Vec<u8>,
    from: usize,
    filled: usize,
}

impl Default for AlignedBlock {
    fn default() -> Self {
        let memory = vec![0; DIGEST_BLOCK_BYTES + DIRECT_IO_ALIGNMENT];
        let from = memory.as_ptr().align_offset(DIRECT_IO_ALIGNMENT).min(DIRECT_IO_ALIGNMENT);
        Self { memory, from, filled: 0 }
    }
}

impl AlignedBlock {
    fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..][..DIGEST_BLOCK_BYTES]
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.from..][..self.filled]
    }
}

/// Reads until the block is full or the input ends, in as few calls as the reader allows.
fn read_full_block(reader: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match reader.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn write_block(block: &[u8], writer: &mut dyn Write, size: &mut u64) -> Result<(), DigestCopyError> {
    writer.write_all(block).map_err(DigestCopyError::Write)?;
    *size += block.len() as u64;
    Ok(())
}

fn hash_block(block: &[u8], blocks: &mut Vec<u8>) {
    blocks.extend_from_slice(cpu_slots::run_in_slot(|| blake3::hash(block)).as_bytes());
}

/// Which side of a copy failed.
#[derive(Debug)]
pub enum DigestCopyError {
    /// The source could not be read.
    Read(io::Error),
    /// The copy could not be written.
    Write(io::Error),
}

#[cfg(test)]
mod tests;
