//! Digests of what is kept: SHA-512 of the whole, for everybody, and BLAKE3 of each block of 1 MiB, so that a part can be
//! checked before it is given out.

mod along;
mod sha512;
mod turns;

use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};

use sha2::Digest as _;

use crate::straight::ALIGNMENT;
pub use crate::text::hex;
use along::{Along, TOGETHER};
use sha512::{STRETCH, Sha512};

/// What is checked at a time.
pub const BLOCK: usize = 1 << 20;

/// From this size on, the SHA-512 is computed beside the rest, on another core.
const BESIDE: usize = 4 * BLOCK;

/// Blocks that may be on their way to the other core.
const AHEAD: usize = 8;

/// What is hashed before another may have its turn.
const AT_A_TIME: usize = BLOCK / 4;

/// The digests of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    /// How many bytes.
    pub size: u64,
    /// SHA-512 of all, in hex.
    pub sha512: String,
    /// BLAKE3 of each block, one after the other.
    pub blocks: Vec<u8>,
    /// What the state of SHA-512 was after each stretch of 4 MiB that more bytes follow: who has them can check the digest of the
    /// whole in several places at once.
    pub stations: Vec<u8>,
}

impl Digests {
    /// The digests of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        let blocks = bytes.chunks(BLOCK).flat_map(|block| *blake3::hash(block).as_bytes()).collect();
        let mut hash = Sha512::<STRETCH>::new();
        hash.update(bytes);
        let (sha512, stations) = hash.finish();
        Self { size: bytes.len() as u64, sha512, blocks, stations }
    }
}

/// SHA-512 in hex.
pub fn sha512(bytes: &[u8]) -> String {
    hex(&sha2::Sha512::digest(bytes))
}

/// Whether a block is what its digest says.
pub fn is_block(block: &[u8], digests: &[u8], number: u64) -> bool {
    let at = usize::try_from(number).ok().and_then(|number| number.checked_mul(blake3::OUT_LEN));
    let expected = at.and_then(|at| digests.get(at..at.checked_add(blake3::OUT_LEN)?));
    expected.is_some_and(|expected| blake3::hash(block).as_bytes() == expected)
}

/// Copies in constant memory, hashing once what passes.
pub fn copy(reader: &mut dyn Read, writer: &mut dyn Write) -> Result<Digests, CopyError> {
    copy_along(reader, writer, &[])
}

/// The same of bytes whose stations somebody has told: hashed faster if that is true, and no otherwise if it is not.
pub fn copy_along(reader: &mut dyn Read, writer: &mut dyn Write, said: &[u8]) -> Result<Digests, CopyError> {
    let mut size = 0;
    let mut blocks = Vec::new();
    let mut first = Vec::new();
    // Most files are small: they never see the other core, nor more memory than they need.
    while first.len() < BESIDE {
        let filled = first.len();
        let more = (&mut *reader).take(BLOCK as u64).read_to_end(&mut first).map_err(CopyError::Read)?;
        if more == 0 {
            break;
        }
        write_block(&first[filled..], writer, &mut size)?;
        push_block(&first[filled..], &mut blocks);
        if more < BLOCK {
            break;
        }
    }
    if first.len() < BESIDE {
        return Ok(Digests { size, sha512: sha512(&first), blocks, stations: Vec::new() });
    }
    let (send, taken): (SyncSender<Block>, Receiver<Block>) = mpsc::sync_channel(AHEAD);
    let (give_back, spare) = mpsc::sync_channel(AHEAD + TOGETHER + 2);
    let mut hash = Along::new(said);
    // Who reads and writes waits for the disk too: where SHA-512 is quick, its core does all the hashing.
    let all_beside = hash.goes_along();
    std::thread::scope(|scope| {
        let beside = scope.spawn(move || {
            let mut blocks = Vec::new();
            hash.update(&first);
            drop(first);
            for block in taken {
                if all_beside {
                    push_block(block.bytes(), &mut blocks);
                }
                // Nobody takes it back at the end.
                hash.take(block, |block| drop(give_back.try_send(block)));
            }
            (hash.finish(), blocks)
        });
        loop {
            let mut block: Block = spare.try_recv().unwrap_or_default();
            block.filled = fill(reader, block.room()).map_err(CopyError::Read)?;
            if block.filled == 0 {
                break;
            }
            write_block(block.bytes(), writer, &mut size)?;
            if !all_beside {
                push_block(block.bytes(), &mut blocks);
            }
            // It takes all that is sent, until we drop our end.
            let _ = send.send(block);
        }
        drop(send);
        let ((sha512, stations), more) =
            beside.join().map_err(|_| CopyError::Read(io::ErrorKind::Other.into()))?;
        blocks.extend(more);
        Ok(Digests { size, sha512, blocks, stations })
    })
}

/// Memory for a block, which lies so that it can be written straight to a disk.
struct Block {
    memory: Vec<u8>,
    from: usize,
    filled: usize,
}

impl Default for Block {
    fn default() -> Self {
        let memory = vec![0; BLOCK + ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { memory, from, filled: 0 }
    }
}

impl Block {
    fn room(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..][..BLOCK]
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.from..][..self.filled]
    }
}

/// Reads until the block is full or nothing more comes: in as few calls as the reader lets.
fn fill(reader: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
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

fn write_block(block: &[u8], writer: &mut dyn Write, size: &mut u64) -> Result<(), CopyError> {
    writer.write_all(block).map_err(CopyError::Write)?;
    *size += block.len() as u64;
    Ok(())
}

fn push_block(block: &[u8], blocks: &mut Vec<u8>) {
    blocks.extend_from_slice(turns::take(|| blake3::hash(block)).as_bytes());
}

/// Which side of a copy failed.
#[derive(Debug)]
pub enum CopyError {
    /// What was to be copied could not be read.
    Read(io::Error),
    /// The copy could not be written.
    Write(io::Error),
}

#[cfg(test)]
mod tests;
