//! Bytes that arrive: hashed as they come, kept where they can go on from, and only called whole when they were checked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use bytes::{Buf as _, Bytes};
use ibi_store::Straight;
use ibi_store::digests::{self, BLOCK, CopyError, Digests};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Pieces that may wait to be written.
const AHEAD: usize = 4;

/// Up to this size a file is not synced by itself: found again after a crash, it is read and checked.
const SMALL: u64 = BLOCK as u64;

/// What is told of some bytes, apart from their digest.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    /// How many there are, if that is told.
    pub(super) size: Option<u64>,
    /// How many there are at most.
    pub(super) most: u64,
    /// BLAKE3 of each block, if that is told.
    pub(super) blocks: Option<Vec<u8>>,
    /// The state of SHA-512 on the way, as it is told: it makes checking faster, if it is true ([`Digests::stations`]).
    pub(super) stations: Vec<u8>,
}

impl Expected {
    fn is(&self, digests: &Digests) -> bool {
        self.size.is_none_or(|size| size == digests.size)
            && self.blocks.as_ref().is_none_or(|blocks| *blocks == digests.blocks)
    }
}

/// What a file on this disk is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// What is wanted.
    Whole,
    /// What its digest says, and not what its description does.
    Misdescribed,
    /// Something else, or nothing.
    Not,
}

/// Looks at a file on this disk. One that was put there by us, checked and synced, is trusted.
pub(super) fn look(path: &Path, digest: &str, expected: &Expected, trusted: bool) -> Looked {
    let Ok(mut file) = File::open(path) else { return Looked::Not };
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return Looked::Not };
    // Its blocks were compared when it came, with a description that the same inventory is bound to.
    if trusted && length > SMALL && expected.size == Some(length) {
        return Looked::Whole;
    }
    if length > expected.most {
        return Looked::Not;
    }
    digests::copy_along(&mut file, &mut io::sink(), &expected.stations)
        .map_or(Looked::Not, |found| judge(&found, digest, expected))
}

/// What bytes are, by their digests.
pub(super) fn judge(found: &Digests, digest: &str, expected: &Expected) -> Looked {
    match found.sha512 == digest {
        true if expected.is(found) => Looked::Whole,
        true => Looked::Misdescribed,
        false => Looked::Not,
    }
}

/// What was taken in: its digests, and whether some of it was there before.
pub(super) struct Taken {
    digests: Digests,
    resumed: bool,
}

/// Calls what was taken in whole, if it is; tells whether some of it was there before.
pub(super) fn settle(
    kept: &Path,
    digest: &str,
    expected: &Expected,
    taken: Option<Taken>,
) -> io::Result<(Looked, bool)> {
    // Somebody else brought it meanwhile.
    let Some(Taken { digests, resumed }) = taken else {
        return Ok((look(kept, digest, expected, true), true));
    };
    let part = part(kept);
    let looked = judge(&digests, digest, expected);
    match looked {
        Looked::Whole => fs::rename(&part, kept)?,
        Looked::Misdescribed | Looked::Not => fs::remove_file(&part)?,
    }
    Ok((looked, resumed))
}

fn part(kept: &Path) -> PathBuf {
    kept.with_extension("part")
}

enum Piece {
    Begin(u64),
    Bytes(Bytes),
    End,
}

/// Hands bytes on to the thread that writes them.
pub(super) struct Feed {
    asked: Option<oneshot::Receiver<u64>>,
    pieces: mpsc::Sender<Piece>,
    at: u64,
    most: u64,
}

/// More than there should be.
#[derive(Debug)]
pub(super) struct TooLong;

impl Feed {
    /// How much is there already, once that is known; nothing if nothing is to be asked for.
    pub(super) async fn asked(&mut self) -> Option<u64> {
        self.asked.take()?.await.ok()
    }

    /// What comes begins here.
    pub(super) async fn begin(&mut self, from: u64) {
        self.at = from;
        self.send(Piece::Begin(from)).await;
    }

    /// Some of it.
    pub(super) async fn give(&mut self, bytes: Bytes) -> Result<(), TooLong> {
        self.at = self.at.saturating_add(bytes.len() as u64);
        if self.at > self.most {
            return Err(TooLong);
        }
        if !bytes.is_empty() {
            self.send(Piece::Bytes(bytes)).await;
        }
        Ok(())
    }

    /// That was all.
    pub(super) async fn end(&mut self) {
        self.send(Piece::End).await;
    }

    async fn send(&self, piece: Piece) {
        // The thread failed, and says so itself.
        let _ = self.pieces.send(piece).await;
    }
}

/// Takes bytes in on a thread of its own, beside the file that they will be. Without a feed that comes to its end, they stay
/// as a part.
pub(super) fn take_in(kept: &Path, expected: &Expected) -> (JoinHandle<io::Result<Option<Taken>>>, Feed) {
    let (tell, asked) = oneshot::channel();
    let (send, pieces) = mpsc::channel(AHEAD);
    let (kept, expected, most) = (kept.to_owned(), expected.clone(), expected.most);
    let taking = tokio::task::spawn_blocking(move || write(&kept, &expected, tell, pieces));
    (taking, Feed { asked: Some(asked), pieces: send, at: 0, most })
}

fn write(
    kept: &Path,
    expected: &Expected,
    tell: oneshot::Sender<u64>,
    pieces: mpsc::Receiver<Piece>,
) -> io::Result<Option<Taken>> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(part(kept))?;
    // An earlier fetch that was given up may still be writing its last bytes.
    file.lock()?;
    let mut length = file.metadata()?.len();
    if length > expected.most {
        file.set_len(0)?;
        length = 0;
    }
    let there = File::open(part(kept)).map(|file| file.take(length));
    let there = match there {
        Ok(there) => there,
        // It was renamed by the one that we waited for.
        Err(_) if kept.exists() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut arriving = Arriving {
        there,
        from: length,
        tell: Some(tell),
        pieces,
        piece: Bytes::new(),
        ended: false,
        anew: false,
    };
    file.seek(io::SeekFrom::Start(length))?;
    let mut after = After { file: Straight::new(file)?, skip: length };
    let mut copied = digests::copy_along(&mut arriving, &mut after, &expected.stations);
    if copied.is_err() && arriving.anew {
        let mut file = after.file.into_file()?;
        file.set_len(0)?;
        file.seek(io::SeekFrom::Start(0))?;
        arriving.anew = false;
        arriving.from = 0;
        after = After { file: Straight::new(file)?, skip: 0 };
        copied = digests::copy_along(&mut arriving, &mut after, &expected.stations);
    }
    let digests = copied.map_err(|error| match error {
        CopyError::Read(error) | CopyError::Write(error) => error,
    })?;
    if digests.size > SMALL {
        after.file.into_file()?.sync_all()?;
    }
    Ok(Some(Taken { digests, resumed: arriving.from > 0 }))
}

/// What is there, and after it what arrives.
struct Arriving {
    there: io::Take<File>,
    from: u64,
    tell: Option<oneshot::Sender<u64>>,
    pieces: mpsc::Receiver<Piece>,
    piece: Bytes,
    ended: bool,
    /// What arrives begins with the first byte, and what was there is void.
    anew: bool,
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.tell.is_some() {
            match self.there.read(buffer)? {
                0 => {}
                read => return Ok(read),
            }
        }
        // Only now, so that nobody waits for us while we hash what is there.
        if let Some(tell) = self.tell.take() {
            let _ = tell.send(self.from);
        }
        while self.piece.is_empty() && !self.ended {
            match self.pieces.blocking_recv() {
                // What ends says so; what is cut off does not.
                None => return Err(io::ErrorKind::ConnectionAborted.into()),
                Some(Piece::Bytes(bytes)) => self.piece = bytes,
                Some(Piece::End) => self.ended = true,
                Some(Piece::Begin(from)) if from == self.from => {}
                Some(Piece::Begin(_)) => {
                    self.anew = true;
                    return Err(io::ErrorKind::Other.into());
                }
            }
        }
        let taken = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..taken]);
        Ok(taken)
    }
}

/// Writes all but what is there already.
struct After {
    file: Straight,
    skip: u64,
}

impl Write for After {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // At most what is in the buffer: fits.
        let skipped = self.skip.min(bytes.len() as u64) as usize;
        if skipped > 0 {
            self.skip -= skipped as u64;
            return Ok(skipped);
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
