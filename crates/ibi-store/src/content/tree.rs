//! Content on a local disk: an OCFL tree that outlives the program (`docs/formats/tree.md`).

mod walk;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::claims::open_plain;
use crate::content::{Content, Head, Inventoried, Objects, Publication, ReadAt, Staging, Swept};
use crate::digests::{self, CopyError, Digests};
use crate::disk::{self, Disk};
use crate::ocfl::{
    INVENTORY, Inventory, OBJECT_DECLARATION, ROOT_DECLARATION, SIDECAR, sidecar, sidecar_digest,
};
use crate::{KeepError, Straight};

/// Files and folders that an item of one file is: the object, its declaration, two inventories with sidecars, the version,
/// its content, `doc`, the file, the description, `metadata`, the record.
const INODES: u64 = 13;

/// Between two looks at how much room is left.
const LOOK: u64 = 64 << 20;

/// A tree of OCFL objects, with a staging place beside it on the same filesystem.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    staging: PathBuf,
    disk: Disk,
    next: AtomicU64,
}

impl Tree {
    /// Every object in order of the paths, with the digest of its inventory.
    pub fn inventories(&self) -> Result<impl Iterator<Item = Result<Inventoried, KeepError>>, KeepError> {
        let mut walk = walk::Walk::new(&self.root)?;
        Ok(std::iter::from_fn(move || walk.inventoried()))
    }

    /// Makes the tree of a data folder, with a page that tells a stranger how to read it; goes on with one that was begun.
    pub fn start(data: &Path, readme: &str) -> Result<Self, KeepError> {
        let (root, staging) = (data.join("tree"), data.join("staging"));
        let mut changed = Vec::new();
        disk::make_folders(&staging, &mut changed)?;
        disk::make_folders(&root, &mut changed)?;
        for (name, text) in [ROOT_DECLARATION, ("README.md", readme)] {
            disk::replace_in(&root.join(name), &staging, text.as_bytes())?;
        }
        changed.iter().try_for_each(|folder| disk::sync(folder))?;
        Self::open(data)
    }

    /// Opens the tree of a data folder.
    pub fn open(data: &Path) -> Result<Self, KeepError> {
        let (root, staging) = (data.join("tree"), data.join("staging"));
        if !root.join(ROOT_DECLARATION.0).is_file() {
            return Err(KeepError::NoTree { root });
        }
        // Tools that copy folders drop empty ones.
        disk::make_folders(&staging, &mut Vec::new())?;
        let disk = Disk::at(&root)?;
        Ok(Self { root, staging, disk, next: AtomicU64::new(1) })
    }

    /// How many more items of one file the filesystem has inodes for; nothing if it does not count them.
    pub fn items_that_fit(data: &Path) -> Result<Option<u64>, KeepError> {
        let inodes = Disk::at(&data.join("tree"))?.free_inodes()?;
        Ok(inodes.map(|free| free / INODES))
    }

    fn object(&self, object: &str) -> PathBuf {
        self.root.join(object)
    }

    fn place(&self, staging: &Staging) -> PathBuf {
        self.staging.join(staging.0.to_string())
    }

    /// Everything of a staged version but the bytes that were put: inventories, sidecars, declaration.
    fn dress(&self, publication: &Publication<'_>) -> Result<(), KeepError> {
        let place = self.place(publication.staging);
        let object = place.join("object");
        let version = object.join(format!("v{}", publication.version));
        let content = place.join("content");
        if let Some(older) = publication.whole {
            disk::rename(&content, &object)?;
            disk::make_folders(&version, &mut Vec::new())?;
            for (number, inventory) in (1..).zip(older) {
                let folder = object.join(format!("v{number}"));
                disk::make_folders(&folder, &mut Vec::new())?;
                disk::write_new(&folder.join(INVENTORY), inventory)?;
                let sidecar = sidecar(&Inventory::digest(inventory));
                disk::write_new(&folder.join(SIDECAR), sidecar.as_bytes())?;
            }
        } else {
            disk::make_folder(&object)?;
            disk::make_folder(&version)?;
            if content.is_dir() {
                disk::rename(&content, &version.join("content"))?;
            }
        }
        let sidecar = sidecar(&Inventory::digest(publication.inventory));
        let mut folders = vec![version];
        if publication.version == 1 || publication.whole.is_some() {
            let (name, text) = OBJECT_DECLARATION;
            disk::write_new(&object.join(name), text.as_bytes())?;
            folders.push(object);
        } else {
            // They go over those of the version before, one by one.
            folders.push(place.clone());
        }
        for folder in folders {
            disk::write_new(&folder.join(INVENTORY), publication.inventory)?;
            disk::write_new(&folder.join(SIDECAR), sidecar.as_bytes())?;
        }
        if publication.instead {
            disk::write_new(&place.join("instead"), publication.object.as_bytes())?;
        }
        Ok(())
    }

    /// Puts a secured version in its place; adds each folder whose names changed.
    fn move_in(&self, publication: &Publication<'_>, changed: &mut Vec<PathBuf>) -> Result<(), KeepError> {
        let (place, to) = (self.place(publication.staging), self.object(publication.object));
        let above = to.parent().unwrap_or(&self.root).to_owned();
        changed.push(place.clone());
        if publication.version > 1 && publication.whole.is_none() {
            let version = format!("v{}", publication.version);
            let from = place.join("object").join(&version);
            // Not over a version that is there already.
            if to.join(&version).exists() {
                return Err(KeepError::Occupied { object: publication.object.to_owned() });
            }
            disk::rename(&from, &to.join(&version))?;
            disk::rename(&place.join(INVENTORY), &to.join(INVENTORY))?;
            disk::rename(&place.join(SIDECAR), &to.join(SIDECAR))?;
            changed.push(to);
            return Ok(());
        }
        if publication.instead && to.exists() {
            disk::rename(&to, &place.join("old"))?;
        } else {
            if !self.is_free(publication.object)? {
                return Err(KeepError::Occupied { object: publication.object.to_owned() });
            }
            disk::make_folders(&above, changed)?;
        }
        disk::rename(&place.join("object"), &to)?;
        changed.push(above);
        Ok(())
    }

    /// Finishes a replacement that was cut off between its two steps.
    fn finish_replacement(&self, place: &Path) -> Result<(), KeepError> {
        let Some(object) = disk::read(&place.join("instead"))? else { return Ok(()) };
        let Ok(object) = String::from_utf8(object) else { return Ok(()) };
        let to = self.object(&object);
        if place.join("old").is_dir() && !to.exists() {
            disk::rename(&place.join("object"), &to)?;
            to.parent().map_or(Ok(()), disk::sync)?;
        }
        Ok(())
    }

    /// The highest version whose inventory is whole, with that inventory and its digest.
    fn last_version(&self, object: &str) -> Result<Option<(u32, Vec<u8>, String)>, KeepError> {
        let folder = self.object(object);
        let mut last = None;
        for entry in fs::read_dir(&folder).map_err(KeepError::io("read", &folder))? {
            let name = entry.map_err(KeepError::io("read", &folder))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix('v')?.parse::<u32>().ok());
            last = last.max(number);
        }
        let Some(number) = last else { return Ok(None) };
        let version = folder.join(format!("v{number}"));
        Ok(inventory_in(&version)?.map(|(inventory, digest)| (number, inventory, digest)))
    }

    /// Removes folders that hold nothing, from this one up.
    fn prune(&self, folder: &Path) -> Result<(), KeepError> {
        for folder in folder.ancestors().take_while(|folder| *folder != self.root) {
            match fs::remove_dir(folder) {
                Ok(()) => folder.parent().map_or(Ok(()), disk::sync)?,
                Err(error) if disk::absent(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => break,
                Err(error) => return Err(KeepError::io("remove", folder)(error)),
            }
        }
        Ok(())
    }
}

impl Content for Tree {
    fn room(&self) -> Result<(), KeepError> {
        let (free, reserve) = self.disk.room()?;
        if free < reserve {
            return Err(KeepError::Full { root: self.root.clone(), free, reserve });
        }
        Ok(())
    }

    fn stage(&self) -> Result<Staging, KeepError> {
        let staging = Staging(self.next.fetch_add(1, Ordering::Relaxed));
        disk::make_folder(&self.place(&staging))?;
        Ok(staging)
    }

    fn put(&self, staging: &Staging, name: &str, bytes: &mut dyn Read) -> Result<Digests, KeepError> {
        let path = self.place(staging).join("content").join(name);
        if let Some(above) = path.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        let file = Straight::new(disk::create_new(&path)?).map_err(KeepError::io("write", &path))?;
        let mut writer = Roomy { file, tree: self, written: 0, full: None };
        let copied = digests::copy(bytes, &mut writer);
        copied.map_err(|error| match (error, writer.full.take()) {
            (_, Some(full)) => full,
            (CopyError::Read(error), _) => KeepError::Source { name: name.to_owned(), error },
            (CopyError::Write(error), _) => KeepError::io("write", &path)(error),
        })
    }

    fn put_file(&self, staging: &Staging, name: &str, file: &Path) -> Result<(), KeepError> {
        let path = self.place(staging).join("content").join(name);
        if let Some(above) = path.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        // Not every filesystem has links, and a file may have no more of them than that has.
        if fs::hard_link(file, &path).is_ok() {
            return Ok(());
        }
        self.room()?;
        fs::copy(file, &path).map(drop).map_err(KeepError::io("copy", file))
    }

    fn take_back(&self, staging: &Staging, name: &str) -> Result<(), KeepError> {
        let content = self.place(staging).join("content");
        let path = content.join(name);
        fs::remove_file(&path).map_err(KeepError::io("remove", &path))?;
        // An object has no empty folders.
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&content)) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn secure(&self, publications: &[Publication<'_>]) -> Result<(), KeepError> {
        publications.iter().try_for_each(|publication| self.dress(publication))?;
        let mut paths = vec![self.staging.clone()];
        for publication in publications {
            walk::everything(&self.place(publication.staging), &mut paths)?;
        }
        self.disk.sync(&paths)
    }

    fn publish(&self, publications: &[Publication<'_>]) -> Result<(), KeepError> {
        let mut changed = Vec::new();
        publications.iter().try_for_each(|publication| self.move_in(publication, &mut changed))?;
        changed.sort_unstable();
        changed.dedup();
        self.disk.sync(&changed)
    }

    fn take_out(&self, staging: &Staging, object: &str) -> Result<(), KeepError> {
        let (place, from) = (self.place(staging), self.object(object));
        disk::rename(&from, &place.join("old"))?;
        let above = from.parent().unwrap_or(&self.root);
        disk::sync(above)?;
        disk::sync(&place)?;
        self.prune(above)
    }

    fn mend(&self, staging: &Staging, name: &str, object: &str, file: &str) -> Result<(), KeepError> {
        let (from, to) = (self.place(staging).join("content").join(name), self.object(object).join(file));
        disk::sync(&from)?;
        let above = to.parent().unwrap_or(&self.root);
        let mut changed = vec![above.to_owned()];
        disk::make_folders(above, &mut changed)?;
        disk::rename(&from, &to)?;
        changed.iter().try_for_each(|folder| disk::sync(folder))
    }

    fn discard(&self, staging: &Staging) -> Result<(), KeepError> {
        disk::remove_folder(&self.place(staging))
    }

    fn is_free(&self, object: &str) -> Result<bool, KeepError> {
        let path = self.object(object);
        let above = path.ancestors().skip(1).take_while(|folder| *folder != self.root);
        let within = above.map(|folder| folder.join(OBJECT_DECLARATION.0)).any(|file| file.exists());
        Ok(!within && !path.exists())
    }

    fn exists(&self, object: &str) -> Result<bool, KeepError> {
        Ok(self.object(object).join(OBJECT_DECLARATION.0).is_file())
    }

    fn head(&self, object: &str) -> Result<Option<Head>, KeepError> {
        let folder = self.object(object);
        if !folder.join(OBJECT_DECLARATION.0).exists() {
            return Ok(None);
        }
        if let Some((inventory, digest)) = inventory_in(&folder)? {
            return Ok(Some(Head { inventory, digest }));
        }
        // A new inventory comes a moment before its sidecar. Who reads in between finds that of the version itself beside it.
        let inventory = disk::read(&folder.join(INVENTORY))?;
        match self.last_version(object)? {
            Some((_, last, digest)) if inventory.is_some_and(|inventory| inventory == last) => {
                Ok(Some(Head { inventory: last, digest }))
            }
            _ => Err(KeepError::DamagedInventory { path: folder.join(INVENTORY) }),
        }
    }

    fn version(&self, object: &str, number: u32) -> Result<Option<String>, KeepError> {
        let folder = self.object(object).join(format!("v{number}"));
        match inventory_in(&folder)? {
            Some((_, digest)) => Ok(Some(digest)),
            // Not there is one thing, not to be trusted another.
            None if !folder.is_dir() => Ok(None),
            None => Err(KeepError::DamagedInventory { path: folder.join(INVENTORY) }),
        }
    }

    fn settle(&self, object: &str, durable: &mut BTreeSet<PathBuf>) -> Result<(), KeepError> {
        let folder = self.object(object);
        if !folder.join(OBJECT_DECLARATION.0).exists() {
            return self.prune(&folder);
        }
        let Some((number, inventory, digest)) = self.last_version(object)? else {
            return Err(KeepError::DamagedInventory { path: folder.join(INVENTORY) });
        };
        let root = inventory_in(&folder)?;
        // One that knows the last version already was not left behind by a commit: who of the two is wrong, an audit tells.
        let knows = |inventory: &[u8]| Inventory::parse(inventory).is_ok_and(|root| root.number() >= number);
        if root.is_none_or(|(root, found)| found != digest && !knows(&root)) {
            disk::replace_in(&folder.join(INVENTORY), &self.staging, &inventory)?;
            disk::replace_in(&folder.join(SIDECAR), &self.staging, sidecar(&digest).as_bytes())?;
        }
        // Its names may be there and not durable yet.
        disk::sync(&folder)?;
        for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)) {
            if !durable.contains(above) {
                disk::sync(above)?;
                durable.insert(above.to_owned());
            }
        }
        Ok(())
    }

    fn is_swept(&self) -> Result<bool, KeepError> {
        let mut entries = fs::read_dir(&self.staging).map_err(KeepError::io("read", &self.staging))?;
        Ok(entries.next().is_none())
    }

    fn sweep(&self) -> Result<Swept, KeepError> {
        let mut swept = Swept::default();
        for entry in fs::read_dir(&self.staging).map_err(KeepError::io("read", &self.staging))? {
            let place = entry.map_err(KeepError::io("read", &self.staging))?.path();
            self.finish_replacement(&place)?;
            swept.stagings += 1;
            swept.bytes += walk::bytes(&place)?;
            if place.is_dir() {
                disk::remove_folder(&place)?;
            } else {
                fs::remove_file(&place).map_err(KeepError::io("remove", &place))?;
            }
        }
        Ok(swept)
    }

    fn open(&self, object: &str, file: &str) -> Result<Box<dyn ReadAt>, KeepError> {
        let path = self.object(object).join(file);
        // Only what we put there: a link or a pipe in its place is not followed, nor waited for.
        match open_plain(&path, OpenOptions::new().read(true)) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) if disk::absent(&error) => Err(KeepError::MissingFile { path }),
            Err(error) => Err(KeepError::io("open", &path)(error)),
        }
    }

    fn objects(&self) -> Result<Objects<'_>, KeepError> {
        Ok(Box::new(walk::Walk::new(&self.root)?))
    }

    fn files(&self, object: &str) -> Result<Vec<String>, KeepError> {
        walk::files(&self.object(object))
    }
}

/// An inventory that its sidecar vouches for, with its digest.
fn inventory_in(folder: &Path) -> Result<Option<(Vec<u8>, String)>, KeepError> {
    let inventory = disk::read(&folder.join(INVENTORY))?;
    let Some((inventory, sidecar)) = inventory.zip(disk::read(&folder.join(SIDECAR))?) else {
        return Ok(None);
    };
    let digest = Inventory::digest(&inventory);
    Ok((sidecar_digest(&sidecar) == Some(&*digest)).then_some((inventory, digest)))
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

/// A file that is written as long as there is room.
struct Roomy<'a> {
    file: Straight,
    tree: &'a Tree,
    written: u64,
    full: Option<KeepError>,
}

impl Write for Roomy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        let before = self.written / LOOK;
        self.written += written as u64;
        if self.written / LOOK > before
            && let Err(full) = self.tree.room()
        {
            self.full = Some(full);
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
