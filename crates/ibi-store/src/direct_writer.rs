//! Direct I/O for large files: they do not evict from the page cache what others read, and the disk
//! works while more arrives.

use std::fs::File;
use std::io::{self, Seek as _, Write};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The required alignment of offset, length and address for direct I/O.
pub(crate) const DIRECT_IO_ALIGNMENT: usize = 4096;

/// Smaller writes go through the page cache, which combines them.
const MIN_DIRECT_BYTES: usize = 1 << 18;

/// A file that writes large blocks with direct I/O, where its filesystem supports that. Everything
/// else goes through the page cache. Either way, data is durable only after a sync.
#[derive(Debug)]
pub struct DirectWriter {
    file: File,
    at: u64,
    way: DirectWriteMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectWriteMode {
    Usual,
    Straight,
    /// This filesystem does not support direct I/O.
    OnlyUsual,
}

impl DirectWriter {
    /// Continues at the file's current position.
    pub fn new(mut file: File) -> io::Result<Self> {
        let at = file.stream_position()?;
        Ok(Self { file, at, way: DirectWriteMode::Usual })
    }

    /// The file, switched back to buffered writes.
    pub fn into_file(mut self) -> io::Result<File> {
        self.set_mode(DirectWriteMode::Usual)?;
        Ok(self.file)
    }

    fn set_mode(&mut self, way: DirectWriteMode) -> io::Result<()> {
        if self.way == way || self.way == DirectWriteMode::OnlyUsual {
            return Ok(());
        }
        let flags = fcntl_getfl(&self.file)?;
        let turned = match way {
            DirectWriteMode::Straight => fcntl_setfl(&self.file, flags | OFlags::DIRECT),
            DirectWriteMode::Usual | DirectWriteMode::OnlyUsual => {
                fcntl_setfl(&self.file, flags - OFlags::DIRECT)
            }
        };
        match turned {
            Ok(()) => self.way = way,
            Err(_) if way == DirectWriteMode::Straight => self.way = DirectWriteMode::OnlyUsual,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Write for DirectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len() >= MIN_DIRECT_BYTES
            && bytes.len().is_multiple_of(DIRECT_IO_ALIGNMENT)
            && self.at.is_multiple_of(DIRECT_IO_ALIGNMENT as u64)
            && bytes.as_ptr().align_offset(DIRECT_IO_ALIGNMENT) == 0;
        self.set_mode(if fits { DirectWriteMode::Straight } else { DirectWriteMode::Usual })?;
        let written = match self.file.write(bytes) {
            // It accepted the flag, but does not support direct I/O, or not with this alignment.
            Err(error)
                if error.kind() == io::ErrorKind::InvalidInput && self.way == DirectWriteMode::Straight =>
            {
                self.set_mode(DirectWriteMode::OnlyUsual)?;
                self.file.write(bytes)?
            }
            written => written?,
        };
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::{self, ContentDigests};

    fn on(folder: &std::path::Path) {
        for size in [0, 1, 4 << 20, (5 << 20) + 7, 9 << 20, (6 << 20) + 4096] {
            let bytes: Vec<u8> =
                (0..size as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let path = folder.join(format!("straight-{size}"));
            let mut file = DirectWriter::new(File::create_new(&path).unwrap()).unwrap();
            assert_eq!(
                digests::copy_and_digest(&mut &bytes[..], &mut file).unwrap(),
                ContentDigests::of(&bytes)
            );
            let file = file.into_file().unwrap();
            file.sync_all().unwrap();
            assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::DIRECT));
            assert!(std::fs::read(&path).unwrap() == bytes, "{size} bytes");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn the_content_does_not_depend_on_the_write_path() {
        // One on a disk, one in memory, where older systems do not support direct I/O.
        on(tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap().path());
        on(tempfile::tempdir_in("/dev/shm").unwrap().path());
    }

    #[test]
    fn unaligned_data_is_written_normally() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = DirectWriter::new(File::create_new(&path).unwrap()).unwrap();
        let block = vec![7; MIN_DIRECT_BYTES + DIRECT_IO_ALIGNMENT];
        let from = block.as_ptr().align_offset(DIRECT_IO_ALIGNMENT);
        // An aligned write is tried directly; after one byte, nothing is aligned any more.
        for (part, fits) in [
            (&block[from..from + MIN_DIRECT_BYTES], true),
            (b"x", false),
            (&block[from..from + MIN_DIRECT_BYTES], false),
            (&block[1..1 + MIN_DIRECT_BYTES], false),
        ] {
            file.write_all(part).unwrap();
            assert!(
                file.way == DirectWriteMode::OnlyUsual || (file.way == DirectWriteMode::Straight) == fits,
                "{:?}",
                file.way
            );
        }
        assert_eq!(std::fs::read(&path).unwrap().len(), 3 * MIN_DIRECT_BYTES + 1);
    }
}
