//! Large files, written straight to the disk: they do not push out of the system's memory what others read, and the disk
//! works while more arrives.

use std::fs::File;
use std::io::{self, Seek as _, Write};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// What disks want the place, the length and the address of what is written straight to them to be a multiple of.
pub(crate) const ALIGNMENT: usize = 4096;

/// Less than this is left to the system, which gathers it.
const LARGE: usize = 1 << 18;

/// A file that takes large blocks past the system's memory, where its filesystem can do that. All else is written as
/// usual. What is written is durable after a sync, as ever.
#[derive(Debug)]
pub struct Straight {
    file: File,
    at: u64,
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Usual,
    Straight,
    /// This filesystem knows no other.
    OnlyUsual,
}

impl Straight {
    /// Goes on writing where the file stands.
    pub fn new(mut file: File) -> io::Result<Self> {
        let at = file.stream_position()?;
        Ok(Self { file, at, way: Way::Usual })
    }

    /// The file, which is written as usual from here.
    pub fn into_file(mut self) -> io::Result<File> {
        self.turn(Way::Usual)?;
        Ok(self.file)
    }

    fn turn(&mut self, way: Way) -> io::Result<()> {
        if self.way == way || self.way == Way::OnlyUsual {
            return Ok(());
        }
        let flags = fcntl_getfl(&self.file)?;
        let turned = match way {
            Way::Straight => fcntl_setfl(&self.file, flags | OFlags::DIRECT),
            Way::Usual | Way::OnlyUsual => fcntl_setfl(&self.file, flags - OFlags::DIRECT),
        };
        match turned {
            Ok(()) => self.way = way,
            Err(_) if way == Way::Straight => self.way = Way::OnlyUsual,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Write for Straight {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len() >= LARGE
            && bytes.len().is_multiple_of(ALIGNMENT)
            && self.at.is_multiple_of(ALIGNMENT as u64)
            && bytes.as_ptr().align_offset(ALIGNMENT) == 0;
        self.turn(if fits { Way::Straight } else { Way::Usual })?;
        let written = match self.file.write(bytes) {
            // It took the flag, and cannot do it, or not with this alignment.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && self.way == Way::Straight => {
                self.turn(Way::OnlyUsual)?;
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
    use crate::digests::{self, Digests};

    fn on(folder: &std::path::Path) {
        for size in [0, 1, 4 << 20, (5 << 20) + 7, 9 << 20, (6 << 20) + 4096] {
            let bytes: Vec<u8> =
                (0..size as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let path = folder.join(format!("straight-{size}"));
            let mut file = Straight::new(File::create_new(&path).unwrap()).unwrap();
            assert_eq!(digests::copy(&mut &bytes[..], &mut file).unwrap(), Digests::of(&bytes));
            let file = file.into_file().unwrap();
            file.sync_all().unwrap();
            assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::DIRECT));
            assert!(std::fs::read(&path).unwrap() == bytes, "{size} bytes");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_is_the_same_however_it_is_written() {
        // The one on a disk, the other in memory, where nothing is straight on older systems.
        on(tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap().path());
        on(tempfile::tempdir_in("/dev/shm").unwrap().path());
    }

    #[test]
    fn what_does_not_fit_is_written_as_usual() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = Straight::new(File::create_new(&path).unwrap()).unwrap();
        let block = vec![7; LARGE + ALIGNMENT];
        let from = block.as_ptr().align_offset(ALIGNMENT);
        // What fits is tried; after one byte, nothing lies where it must.
        for (part, fits) in [
            (&block[from..from + LARGE], true),
            (b"x", false),
            (&block[from..from + LARGE], false),
            (&block[1..1 + LARGE], false),
        ] {
            file.write_all(part).unwrap();
            assert!(file.way == Way::OnlyUsual || (file.way == Way::Straight) == fits, "{:?}", file.way);
        }
        assert_eq!(std::fs::read(&path).unwrap().len(), 3 * LARGE + 1);
    }
}
