//! Content on a local disk: an OCFL tree that can be read without this program
//! (`docs/formats/tree.md`).

mod stored_file;
mod walk;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::{
    ClearedStaging, ContentStorage, ObjectHead, ObjectPaths, OcflObjectDigest, ReadAt, StagedVersion,
    StagingId,
};
use crate::digests::{self, ContentDigests, DigestCopyError};
use crate::disk::{self, StorageFilesystem};
use crate::ocfl::{
    INVENTORY_FILE, Inventory, OBJECT_DECLARATION, ROOT_DECLARATION, SIDECAR_FILE, sidecar, sidecar_digest,
};
use crate::{DirectWriter, StorageError};
use stored_file::StoredFile;

/// Files and folders of an item with one file: the object, its declaration, two inventories with
/// sidecars, the version, its content, `doc`, the file, the description, `metadata`, the record.
const INODES_PER_ITEM: u64 = 13;

/// Bytes written between two checks of the free space.
const SPACE_CHECK_INTERVAL_BYTES: u64 = 256 << 10;

/// A tree of OCFL objects, with a staging folder beside it on the same filesystem.
#[derive(Debug)]
pub struct OcflTree {
    root: PathBuf,
    staging: PathBuf,
    disk: StorageFilesystem,
    next: AtomicU64,
}

impl OcflTree {
    /// All objects by path, with the digests of their inventories.
    pub fn inventories(
        &self,
    ) -> Result<impl Iterator<Item = Result<OcflObjectDigest, StorageError>>, StorageError> {
        let mut walk = walk::OcflTreeWalk::new(&self.root)?;
        Ok(std::iter::from_fn(move || walk.next_with_digest()))
    }

    /// Creates the tree of a data folder, with a README that explains its layout. Resumes an
    /// interrupted creation.
    pub fn start(data: &Path, readme: &str) -> Result<Self, StorageError> {
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
    pub fn open(data: &Path) -> Result<Self, StorageError> {
        let (root, staging) = (data.join("tree"), data.join("staging"));
        if !root.join(ROOT_DECLARATION.0).is_file() {
            return Err(StorageError::NoTree { root });
        }
        // Tools that copy folders may drop empty ones.
        disk::make_folders(&staging, &mut Vec::new())?;
        let disk = StorageFilesystem::at(&root)?;
        Ok(Self { root, staging, disk, next: AtomicU64::new(1) })
    }

    /// The number of further one-file items that the filesystem has inodes for; `None` if it does
    /// not count inodes.
    pub fn remaining_item_capacity(data: &Path) -> Result<Option<u64>, StorageError> {
        let inodes = StorageFilesystem::at(&data.join("tree"))?.free_inodes()?;
        Ok(inodes.map(|free| free / INODES_PER_ITEM))
    }

    fn object_path(&self, object: &str) -> PathBuf {
        self.root.join(object)
    }

    fn staging_path(&self, staging: &StagingId) -> PathBuf {
        self.staging.join(staging.0.to_string())
    }

    /// Writes everything of a staged version except its files: inventories, sidecars and
    /// declaration.
    fn write_inventories(&self, publication: &StagedVersion<'_>) -> Result<(), StorageError> {
        let place = self.staging_path(publication.staging);
        let object = place.join("object");
        let version = object.join(format!("v{}", publication.version));
        let content = place.join("content");
        if let Some(older) = publication.whole {
            disk::rename(&content, &object)?;
            disk::make_folders(&version, &mut Vec::new())?;
            for (number, inventory) in (1..).zip(older) {
                let folder = object.join(format!("v{number}"));
                disk::make_folders(&folder, &mut Vec::new())?;
                disk::write_new(&folder.join(INVENTORY_FILE), inventory)?;
                let sidecar = sidecar(&Inventory::digest(inventory));
                disk::write_new(&folder.join(SIDECAR_FILE), sidecar.as_bytes())?;
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
            // They replace those of the previous version, one by one.
            folders.push(place.clone());
        }
        for folder in folders {
            disk::write_new(&folder.join(INVENTORY_FILE), publication.inventory)?;
            disk::write_new(&folder.join(SIDECAR_FILE), sidecar.as_bytes())?;
        }
        if publication.instead {
            disk::write_new(&place.join("instead"), publication.object.as_bytes())?;
        }
        Ok(())
    }

    /// Moves a prepared version to its final path. Adds to `changed` each folder whose entries
    /// changed.
    fn move_into_tree(
        &self,
        publication: &StagedVersion<'_>,
        changed: &mut Vec<PathBuf>,
    ) -> Result<(), StorageError> {
        let (place, to) = (self.staging_path(publication.staging), self.object_path(publication.object));
        let above = to.parent().unwrap_or(&self.root).to_owned();
        changed.push(place.clone());
        if publication.version > 1 && publication.whole.is_none() {
            let version = format!("v{}", publication.version);
            let from = place.join("object").join(&version);
            // Do not overwrite an existing version.
            if to.join(&version).exists() {
                return Err(StorageError::Occupied { object: publication.object.to_owned() });
            }
            disk::rename(&from, &to.join(&version))?;
            disk::rename(&place.join(INVENTORY_FILE), &to.join(INVENTORY_FILE))?;
            disk::rename(&place.join(SIDECAR_FILE), &to.join(SIDECAR_FILE))?;
            changed.push(to);
            return Ok(());
        }
        if publication.instead && to.exists() {
            disk::rename(&to, &place.join("old"))?;
        } else {
            if !self.is_free(publication.object)? {
                return Err(StorageError::Occupied { object: publication.object.to_owned() });
            }
            disk::make_folders(&above, changed)?;
        }
        disk::rename(&place.join("object"), &to)?;
        changed.push(above);
        Ok(())
    }

    /// Completes a replacement that was interrupted between its two steps.
    fn finish_replacement(&self, place: &Path) -> Result<(), StorageError> {
        let Some(object) = disk::read(&place.join("instead"))? else { return Ok(()) };
        let Ok(object) = String::from_utf8(object) else { return Ok(()) };
        let to = self.object_path(&object);
        if place.join("old").is_dir() && !to.exists() {
            disk::rename(&place.join("object"), &to)?;
            to.parent().map_or(Ok(()), disk::sync)?;
        }
        Ok(())
    }

    /// The highest version whose inventory is valid, with that inventory and its digest.
    fn last_version(&self, object: &str) -> Result<Option<(u32, Vec<u8>, String)>, StorageError> {
        let folder = self.object_path(object);
        let mut last = None;
        for entry in fs::read_dir(&folder).map_err(StorageError::io("read", &folder))? {
            let name = entry.map_err(StorageError::io("read", &folder))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix('v')?.parse::<u32>().ok());
            last = last.max(number);
        }
        let Some(number) = last else { return Ok(None) };
        let version = folder.join(format!("v{number}"));
        Ok(read_inventory(&version)?.map(|(inventory, digest)| (number, inventory, digest)))
    }

    /// Removes empty folders, from this one upwards.
    fn prune(&self, folder: &Path) -> Result<(), StorageError> {
        for folder in folder.ancestors().take_while(|folder| *folder != self.root) {
            match fs::remove_dir(folder) {
                Ok(()) => folder.parent().map_or(Ok(()), disk::sync)?,
                Err(error) if disk::is_not_found(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => break,
                Err(error) => return Err(StorageError::io("remove", folder)(error)),
            }
        }
        Ok(())
    }
}

impl ContentStorage for OcflTree {
    fn check_space(&self) -> Result<(), StorageError> {
        let (free, reserve) = self.disk.free_and_reserved()?;
        if free < reserve {
            return Err(StorageError::Full { root: self.root.clone(), free, reserve });
        }
        Ok(())
    }

    fn begin_staging(&self) -> Result<StagingId, StorageError> {
        let staging = StagingId(self.next.fetch_add(1, Ordering::Relaxed));
        disk::make_folder(&self.staging_path(&staging))?;
        Ok(staging)
    }

    fn stage_file(
        &self,
        staging: &StagingId,
        name: &str,
        bytes: &mut dyn Read,
    ) -> Result<ContentDigests, StorageError> {
        let path = self.staging_path(staging).join("content").join(name);
        if let Some(above) = path.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        let file = DirectWriter::new(disk::create_new(&path)?).map_err(StorageError::io("write", &path))?;
        // Operations that free space also stage a description and metadata here, so the first bytes
        // are written without a check.
        let mut writer = SpaceCheckedFile { file, tree: self, written: 0, full: None };
        let copied = digests::copy_and_digest(bytes, &mut writer);
        copied.map_err(|error| match (error, writer.full.take()) {
            (_, Some(full)) => full,
            (DigestCopyError::Read(error), _) => StorageError::Source { name: name.to_owned(), error },
            (DigestCopyError::Write(error), _) => StorageError::io("write", &path)(error),
        })
    }

    fn stage_local_file(&self, staging: &StagingId, name: &str, file: &Path) -> Result<(), StorageError> {
        let path = self.staging_path(staging).join("content").join(name);
        if let Some(above) = path.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        // Some filesystems have no hard links, and each limits the number of links to a file.
        if fs::hard_link(file, &path).is_ok() {
            return Ok(());
        }
        self.check_space()?;
        fs::copy(file, &path).map(drop).map_err(StorageError::io("copy", file))
    }

    fn unstage_file(&self, staging: &StagingId, name: &str) -> Result<(), StorageError> {
        let content = self.staging_path(staging).join("content");
        let path = content.join(name);
        fs::remove_file(&path).map_err(StorageError::io("remove", &path))?;
        // An OCFL object has no empty folders.
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&content)) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn prepare(&self, publications: &[StagedVersion<'_>]) -> Result<(), StorageError> {
        publications.iter().try_for_each(|publication| self.write_inventories(publication))?;
        let mut paths = vec![self.staging.clone()];
        for publication in publications {
            walk::collect_paths(&self.staging_path(publication.staging), &mut paths)?;
        }
        self.disk.sync(&paths)
    }

    fn publish(&self, publications: &[StagedVersion<'_>]) -> Result<(), StorageError> {
        let mut changed = Vec::new();
        publications.iter().try_for_each(|publication| self.move_into_tree(publication, &mut changed))?;
        changed.sort_unstable();
        changed.dedup();
        self.disk.sync(&changed)
    }

    fn move_to_staging(&self, staging: &StagingId, object: &str) -> Result<(), StorageError> {
        let (place, from) = (self.staging_path(staging), self.object_path(object));
        disk::rename(&from, &place.join("old"))?;
        let above = from.parent().unwrap_or(&self.root);
        disk::sync(above)?;
        disk::sync(&place)?;
        self.prune(above)
    }

    fn replace_file(
        &self,
        staging: &StagingId,
        name: &str,
        object: &str,
        file: &str,
    ) -> Result<(), StorageError> {
        let (from, to) =
            (self.staging_path(staging).join("content").join(name), self.object_path(object).join(file));
        disk::sync(&from)?;
        let above = to.parent().unwrap_or(&self.root);
        let mut changed = vec![above.to_owned()];
        disk::make_folders(above, &mut changed)?;
        disk::rename(&from, &to)?;
        changed.iter().try_for_each(|folder| disk::sync(folder))
    }

    fn discard(&self, staging: &StagingId) -> Result<(), StorageError> {
        disk::remove_folder(&self.staging_path(staging))
    }

    fn is_free(&self, object: &str) -> Result<bool, StorageError> {
        let path = self.object_path(object);
        let above = path.ancestors().skip(1).take_while(|folder| *folder != self.root);
        let within = above.map(|folder| folder.join(OBJECT_DECLARATION.0)).any(|file| file.exists());
        Ok(!within && !path.exists())
    }

    fn exists(&self, object: &str) -> Result<bool, StorageError> {
        Ok(self.object_path(object).join(OBJECT_DECLARATION.0).is_file())
    }

    fn head(&self, object: &str) -> Result<Option<ObjectHead>, StorageError> {
        let folder = self.object_path(object);
        if !folder.join(OBJECT_DECLARATION.0).exists() {
            return Ok(None);
        }
        if let Some((inventory, digest)) = read_inventory(&folder)? {
            return Ok(Some(ObjectHead { inventory, digest }));
        }
        // A new root inventory is renamed into place just before its sidecar. A reader in between
        // finds the same inventory in the version's folder.
        let inventory = disk::read(&folder.join(INVENTORY_FILE))?;
        match self.last_version(object)? {
            Some((_, last, digest)) if inventory.is_some_and(|inventory| inventory == last) => {
                Ok(Some(ObjectHead { inventory: last, digest }))
            }
            _ => Err(StorageError::DamagedInventory { path: folder.join(INVENTORY_FILE) }),
        }
    }

    fn version_digest(&self, object: &str, number: u32) -> Result<Option<String>, StorageError> {
        let folder = self.object_path(object).join(format!("v{number}"));
        match read_inventory(&folder)? {
            Some((_, digest)) => Ok(Some(digest)),
            // Distinguish a missing version from one that cannot be trusted.
            None if !folder.is_dir() => Ok(None),
            None => Err(StorageError::DamagedInventory { path: folder.join(INVENTORY_FILE) }),
        }
    }

    fn recover_object(&self, object: &str, durable: &mut BTreeSet<PathBuf>) -> Result<(), StorageError> {
        let folder = self.object_path(object);
        if !folder.join(OBJECT_DECLARATION.0).exists() {
            return self.prune(&folder);
        }
        let Some((number, inventory, digest)) = self.last_version(object)? else {
            return Err(StorageError::DamagedInventory { path: folder.join(INVENTORY_FILE) });
        };
        let root = read_inventory(&folder)?;
        // A root inventory that already covers the last version was not left behind by an
        // interrupted commit. An audit decides which of the two is wrong.
        let knows =
            |inventory: &[u8]| Inventory::parse(inventory).is_ok_and(|root| root.head_number() >= number);
        if root.is_none_or(|(root, found)| found != digest && !knows(&root)) {
            disk::replace_in(&folder.join(INVENTORY_FILE), &self.staging, &inventory)?;
            disk::replace_in(&folder.join(SIDECAR_FILE), &self.staging, sidecar(&digest).as_bytes())?;
        }
        // Its directory entries may exist without being durable.
        disk::sync(&folder)?;
        for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)) {
            if !durable.contains(above) {
                disk::sync(above)?;
                durable.insert(above.to_owned());
            }
        }
        Ok(())
    }

    fn is_staging_empty(&self) -> Result<bool, StorageError> {
        let mut entries = fs::read_dir(&self.staging).map_err(StorageError::io("read", &self.staging))?;
        Ok(entries.next().is_none())
    }

    fn clear_staging(&self) -> Result<ClearedStaging, StorageError> {
        let mut swept = ClearedStaging::default();
        for entry in fs::read_dir(&self.staging).map_err(StorageError::io("read", &self.staging))? {
            let place = entry.map_err(StorageError::io("read", &self.staging))?.path();
            self.finish_replacement(&place)?;
            swept.stagings += 1;
            swept.bytes += walk::total_bytes(&place)?;
            if place.is_dir() {
                disk::remove_folder(&place)?;
            } else {
                fs::remove_file(&place).map_err(StorageError::io("remove", &place))?;
            }
        }
        Ok(swept)
    }

    fn open(&self, object: &str, file: &str) -> Result<Box<dyn ReadAt>, StorageError> {
        let path = self.object_path(object).join(file);
        match StoredFile::open(path.clone()) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) if disk::is_not_found(&error) => Err(StorageError::MissingFile { path }),
            Err(error) => Err(StorageError::io("open", &path)(error)),
        }
    }

    fn objects(&self) -> Result<ObjectPaths<'_>, StorageError> {
        Ok(Box::new(walk::OcflTreeWalk::new(&self.root)?))
    }

    fn files(&self, object: &str) -> Result<Vec<String>, StorageError> {
        walk::list_files(&self.object_path(object))
    }
}

/// An inventory that matches its sidecar, with its digest.
fn read_inventory(folder: &Path) -> Result<Option<(Vec<u8>, String)>, StorageError> {
    let inventory = disk::read(&folder.join(INVENTORY_FILE))?;
    let Some((inventory, sidecar)) = inventory.zip(disk::read(&folder.join(SIDECAR_FILE))?) else {
        return Ok(None);
    };
    let digest = Inventory::digest(&inventory);
    Ok((sidecar_digest(&sidecar) == Some(&*digest)).then_some((inventory, digest)))
}

/// A file that is written as long as the disk has space.
struct SpaceCheckedFile<'a> {
    file: DirectWriter,
    tree: &'a OcflTree,
    written: u64,
    full: Option<StorageError>,
}

impl Write for SpaceCheckedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        let before = self.written / SPACE_CHECK_INTERVAL_BYTES;
        self.written += written as u64;
        if self.written / SPACE_CHECK_INTERVAL_BYTES > before
            && let Err(full) = self.tree.check_space()
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
