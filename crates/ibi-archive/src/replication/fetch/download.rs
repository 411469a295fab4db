//! Downloads bytes: hashes them as they arrive, keeps partial files for a resume, and marks a file
//! as complete only after verification.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use bytes::{Buf as _, Bytes};
use ibi_store::DirectWriter;
use ibi_store::digests::{self, ContentDigests, DIGEST_BLOCK_BYTES, DigestCopyError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Maximum number of chunks waiting to be written.
const MAX_QUEUED_PIECES: usize = 4;

/// Files up to this size are not synced individually: after a crash they are read and verified
/// again.
const MAX_UNSYNCED_FILE_BYTES: u64 = DIGEST_BLOCK_BYTES as u64;

/// What is known of some bytes, apart from their digest.
#[derive(Debug, Clone)]
pub(super) struct DownloadExpectation {
    /// Their length, if known.
    pub(super) size: Option<u64>,
    /// Their maximum length.
    pub(super) most: u64,
    /// The BLAKE3 of each block, if known.
    pub(super) blocks: Option<Vec<u8>>,
    /// SHA-512 midstates as reported by the peer: they speed up verification if they are right
    /// ([`ContentDigests::stations`]).
    pub(super) stations: Vec<u8>,
}

impl DownloadExpectation {
    fn matches_digests(&self, digests: &ContentDigests) -> bool {
        self.size.is_none_or(|size| size == digests.size)
            && self.blocks.as_ref().is_none_or(|blocks| *blocks == digests.blocks)
    }
}

/// The result of checking a file on disk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DownloadCheck {
    /// It matches.
    Whole,
    /// It matches its digest, but not its description.
    Misdescribed,
    /// It does not match, or does not exist.
    Not,
}

/// Checks a file on disk. One that we verified and synced before is trusted.
pub(super) fn check_file(
    path: &Path,
    digest: &str,
    expected: &DownloadExpectation,
    trusted: bool,
) -> DownloadCheck {
    let Ok(mut file) = File::open(path) else { return DownloadCheck::Not };
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return DownloadCheck::Not };
    // Its blocks were verified on arrival, against a description that the same inventory covers.
    if trusted && length > MAX_UNSYNCED_FILE_BYTES && expected.size == Some(length) {
        return DownloadCheck::Whole;
    }
    if length > expected.most {
        return DownloadCheck::Not;
    }
    digests::copy_with_midstates(&mut file, &mut io::sink(), &expected.stations)
        .map_or(DownloadCheck::Not, |found| check_digests(&found, digest, expected))
}

/// Checks bytes by their digests.
pub(super) fn check_digests(
    found: &ContentDigests,
    digest: &str,
    expected: &DownloadExpectation,
) -> DownloadCheck {
    match found.sha512 == digest {
        true if expected.matches_digests(found) => DownloadCheck::Whole,
        true => DownloadCheck::Misdescribed,
        false => DownloadCheck::Not,
    }
}

/// Received bytes: their digests, and whether the download was resumed.
pub(super) struct CompletedDownload {
    digests: ContentDigests,
    resumed: bool,
}

/// Completes a verified download; returns the check and whether it was resumed.
pub(super) fn finish_download(
    kept: &Path,
    digest: &str,
    expected: &DownloadExpectation,
    taken: Option<CompletedDownload>,
) -> io::Result<(DownloadCheck, bool)> {
    // Another fetch completed it meanwhile.
    let Some(CompletedDownload { digests, resumed }) = taken else {
        return Ok((check_file(kept, digest, expected, true), true));
    };
    let part = partial_path(kept);
    let looked = check_digests(&digests, digest, expected);
    match looked {
        DownloadCheck::Whole => fs::rename(&part, kept)?,
        DownloadCheck::Misdescribed | DownloadCheck::Not => fs::remove_file(&part)?,
    }
    Ok((looked, resumed))
}

fn partial_path(kept: &Path) -> PathBuf {
    kept.with_extension("part")
}

enum DownloadMessage {
    Begin(u64),
    Bytes(Bytes),
    End,
}

/// Sends bytes to the writer thread.
pub(super) struct DownloadFeed {
    asked: Option<oneshot::Receiver<u64>>,
    pieces: mpsc::Sender<DownloadMessage>,
    at: u64,
    most: u64,
}

/// More bytes than expected.
#[derive(Debug)]
pub(super) struct DownloadTooLong;

impl DownloadFeed {
    /// The length of the partial file, once known; `None` if nothing is to be requested.
    pub(super) async fn resume_offset(&mut self) -> Option<u64> {
        self.asked.take()?.await.ok()
    }

    /// Announces the offset at which the stream begins.
    pub(super) async fn begin(&mut self, from: u64) {
        self.at = from;
        self.send(DownloadMessage::Begin(from)).await;
    }

    pub(super) async fn push_bytes(&mut self, bytes: Bytes) -> Result<(), DownloadTooLong> {
        self.at = self.at.saturating_add(bytes.len() as u64);
        if self.at > self.most {
            return Err(DownloadTooLong);
        }
        if !bytes.is_empty() {
            self.send(DownloadMessage::Bytes(bytes)).await;
        }
        Ok(())
    }

    /// Marks the end of the stream.
    pub(super) async fn end(&mut self) {
        self.send(DownloadMessage::End).await;
    }

    async fn send(&self, piece: DownloadMessage) {
        // On error the thread has failed, and reports that itself.
        let _ = self.pieces.send(piece).await;
    }
}

/// Receives bytes on a separate thread into a partial file. If the feed ends early, the partial
/// file stays.
pub(super) fn start_download(
    kept: &Path,
    expected: &DownloadExpectation,
) -> (JoinHandle<io::Result<Option<CompletedDownload>>>, DownloadFeed) {
    let (tell, asked) = oneshot::channel();
    let (send, pieces) = mpsc::channel(MAX_QUEUED_PIECES);
    let (kept, expected, most) = (kept.to_owned(), expected.clone(), expected.most);
    let taking = tokio::task::spawn_blocking(move || write_pieces(&kept, &expected, tell, pieces));
    (taking, DownloadFeed { asked: Some(asked), pieces: send, at: 0, most })
}

fn write_pieces(
    kept: &Path,
    expected: &DownloadExpectation,
    tell: oneshot::Sender<u64>,
    pieces: mpsc::Receiver<DownloadMessage>,
) -> io::Result<Option<CompletedDownload>> {
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(partial_path(kept))?;
    // An earlier, abandoned fetch may still be writing its last bytes.
    file.lock()?;
    let mut length = file.metadata()?.len();
    if length > expected.most {
        file.set_len(0)?;
        length = 0;
    }
    let there = File::open(partial_path(kept)).map(|file| file.take(length));
    let there = match there {
        Ok(there) => there,
        // The fetch that we waited for has renamed it.
        Err(_) if kept.exists() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut arriving = DownloadReader {
        there,
        from: length,
        tell: Some(tell),
        pieces,
        piece: Bytes::new(),
        ended: false,
        anew: false,
    };
    file.seek(io::SeekFrom::Start(length))?;
    let mut after = SkippingWriter { file: DirectWriter::new(file)?, skip: length };
    let mut copied = digests::copy_with_midstates(&mut arriving, &mut after, &expected.stations);
    if copied.is_err() && arriving.anew {
        let mut file = after.file.into_file()?;
        file.set_len(0)?;
        file.seek(io::SeekFrom::Start(0))?;
        arriving.anew = false;
        arriving.from = 0;
        after = SkippingWriter { file: DirectWriter::new(file)?, skip: 0 };
        copied = digests::copy_with_midstates(&mut arriving, &mut after, &expected.stations);
    }
    let digests = copied.map_err(|error| match error {
        DigestCopyError::Read(error) | DigestCopyError::Write(error) => error,
    })?;
    if digests.size > MAX_UNSYNCED_FILE_BYTES {
        after.file.into_file()?.sync_all()?;
    }
    Ok(Some(CompletedDownload { digests, resumed: arriving.from > 0 }))
}

/// Reads the partial file, then the bytes that arrive.
struct DownloadReader {
    there: io::Take<File>,
    from: u64,
    tell: Option<oneshot::Sender<u64>>,
    pieces: mpsc::Receiver<DownloadMessage>,
    piece: Bytes,
    ended: bool,
    /// The stream starts at the first byte, so the partial file is void.
    anew: bool,
}

impl Read for DownloadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.tell.is_some() {
            match self.there.read(buffer)? {
                0 => {}
                read => return Ok(read),
            }
        }
        // Only now, so that the peer does not wait while we hash the partial file.
        if let Some(tell) = self.tell.take() {
            let _ = tell.send(self.from);
        }
        while self.piece.is_empty() && !self.ended {
            match self.pieces.blocking_recv() {
                // A complete stream sends `End`; an aborted one does not.
                None => return Err(io::ErrorKind::ConnectionAborted.into()),
                Some(DownloadMessage::Bytes(bytes)) => self.piece = bytes,
                Some(DownloadMessage::End) => self.ended = true,
                Some(DownloadMessage::Begin(from)) if from == self.from => {}
                Some(DownloadMessage::Begin(_)) => {
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

/// Skips what the partial file already has, and writes the rest.
struct SkippingWriter {
    file: DirectWriter,
    skip: u64,
}

impl Write for SkippingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // At most the buffer's length: fits.
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
