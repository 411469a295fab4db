//! The folders of a plain tree. An item is staged, made durable, and replaces its older version
//! atomically.

use std::cell::Cell;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use ibi_id::Instant;
use ibi_store::content::VerifiedCopyError;
use ibi_store::digests::sha512;
use ibi_store::index::FileRecord;
use ibi_store::ocfl::decode_logical_path;
use rustix::fs::{CWD, RenameFlags, ioctl_ficlone, renameat_with, syncfs};

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::full_record::full_record;
use crate::plain_tree::{PlainTreeOptions, STAMP_FILE};

/// Files that are read from the index per page.
const FILES_PER_PAGE: usize = 1000;

/// The folders of a plain tree.
pub(super) struct TreeLayout {
    out: PathBuf,
    staging: PathBuf,
    /// The OCFL tree, the source of the bytes.
    tree: PathBuf,
    link: bool,
    /// The base URL of the persistent URLs in records.
    resolver: Option<String>,
    /// Whether the filesystem supports reflinks; detected with the first file.
    shares: Cell<bool>,
    next: Cell<u64>,
}

/// The two repositories of an item (003 Example 7.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreePart {
    /// Its files.
    Data,
    /// Its metadata record.
    Metadata,
}

impl TreePart {
    pub(super) const ALL: [Self; 2] = [Self::Data, Self::Metadata];
}

/// Hexadecimal digits of a digest in a stamp.
const STAMP_DIGEST_LENGTH: usize = 32;

/// The third line of the stamp of a metadata repository.
const METADATA_STAMP_LINE: &str = "metadata";

/// A staged item.
pub(super) struct StagedTreeItem {
    pub(super) part: TreePart,
    staged: PathBuf,
    folder: PathBuf,
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// An item in the tree.
pub(super) struct PlainTreeEntry {
    /// Its folder relative to the root of the tree: its label.
    pub(super) folder: PathBuf,
    /// The path of its object.
    pub(super) path: String,
    pub(super) part: TreePart,
}

impl PlainTreeEntry {
    fn new(folder: PathBuf, stamp: &str) -> Self {
        let mut lines = stamp.lines();
        let path = lines.next().unwrap_or_default().to_owned();
        let is_metadata = lines.nth(1) == Some(METADATA_STAMP_LINE);
        let part = if is_metadata { TreePart::Metadata } else { TreePart::Data };
        Self { folder, path, part }
    }
}

impl TreeLayout {
    /// Clears the staging area: a crash may have left files there.
    pub(super) fn open(
        out: &Path,
        staging: &Path,
        tree: &Path,
        options: &PlainTreeOptions,
    ) -> Result<Self, ArchiveError> {
        remove(staging)?;
        fs::create_dir_all(staging).map_err(ArchiveError::io("create", staging))?;
        Ok(Self {
            out: out.to_owned(),
            staging: staging.to_owned(),
            tree: tree.to_owned(),
            link: options.link,
            resolver: options.resolver.clone(),
            shares: Cell::new(true),
            next: Cell::new(1),
        })
    }

    /// The folder of an item or of its metadata: its first label as spelled, because authors write
    /// their links so.
    pub(super) fn folder(&self, holding: &HeldItem, part: TreePart) -> PathBuf {
        PathBuf::from(match part {
            TreePart::Data => holding.item.labels.primary(),
            TreePart::Metadata => holding.item.metadata.primary(),
        })
    }

    /// Whether a folder of this tree holds an item.
    pub(super) fn has_item(&self, folder: &Path) -> bool {
        fs::symlink_metadata(self.out.join(folder).join(STAMP_FILE)).is_ok_and(|stamp| stamp.is_file())
    }

    /// Stages an item; `None` if the tree already has its newest version.
    pub(super) fn write(
        &self,
        holdings: &Holdings,
        holding: &HeldItem,
        part: TreePart,
    ) -> Result<Option<StagedTreeItem>, ArchiveError> {
        let folder = self.folder(holding, part);
        let indexed = holdings.records.item(&holding.path)?;
        let digest = indexed.map(|indexed| indexed.inventory).unwrap_or_default();
        let mut stamp = format!("{}\nv{} {digest}\n", holding.path, holding.version);
        let record = match part {
            TreePart::Data => None,
            TreePart::Metadata => {
                Some(full_record(holdings, holding, self.resolver.as_deref(), true)?.to_xml())
            }
        };
        if let Some(record) = &record {
            // Links change a record and are no version.
            let digest = &sha512(record.as_bytes())[..STAMP_DIGEST_LENGTH];
            stamp = format!("{stamp}{METADATA_STAMP_LINE}\nrecord {digest}\n");
        }
        let place = self.out.join(&folder);
        match fs::read_to_string(place.join(STAMP_FILE)) {
            Ok(found) if found == stamp => return Ok(None),
            Ok(_) => {}
            Err(_) if fs::symlink_metadata(&place).is_err() => {}
            Err(_) => {
                let what = format!("{} exists and is not part of this plain tree", place.display());
                return Err(ArchiveError::Value(what));
            }
        }
        let mut item = StagedTreeItem { part, staged: self.next_staging_path(), folder, files: 0, bytes: 0 };
        let written = match record {
            None => self.write_files(holdings, holding, &mut item),
            Some(record) => self.write_record(&record, holding, &item),
        };
        let written = written.and_then(|()| {
            let path = item.staged.join(STAMP_FILE);
            fs::write(&path, &stamp).map_err(ArchiveError::io("write", &path))
        });
        match written {
            Ok(()) => Ok(Some(item)),
            Err(error) => {
                // If this fails, the next start removes it.
                let _ = remove(&item.staged);
                Err(error)
            }
        }
    }

    /// Writes the full record, which names the item, so that `import` can match them.
    fn write_record(
        &self,
        record: &str,
        holding: &HeldItem,
        item: &StagedTreeItem,
    ) -> Result<(), ArchiveError> {
        let doc = item.staged.join("doc");
        fs::create_dir_all(&doc).map_err(ArchiveError::io("create", &doc))?;
        let path = doc.join("oai_dc.xml");
        let mut file = create(&path)?;
        file.write_all(record.as_bytes()).map_err(ArchiveError::io("write", &path))?;
        let updated = holding.item.metadata_time().parse::<Instant>().ok().and_then(system_time);
        set_modified_date(&file, &path, updated)
    }

    fn write_files(
        &self,
        holdings: &Holdings,
        holding: &HeldItem,
        item: &mut StagedTreeItem,
    ) -> Result<(), ArchiveError> {
        let doc = item.staged.join("doc");
        fs::create_dir_all(&doc).map_err(ArchiveError::io("create", &doc))?;
        let updated = holding.item.updated.parse::<Instant>().ok().and_then(system_time);
        let mut after = String::new();
        loop {
            let files = holdings.files(&holding.path, &after, FILES_PER_PAGE)?;
            let Some(last) = files.last() else { return Ok(()) };
            after.clone_from(&last.name);
            for file in &files {
                self.write_file(holdings, holding, file, &doc, updated)?;
                item.files += 1;
                item.bytes += file.size;
            }
        }
    }

    fn write_file(
        &self,
        holdings: &Holdings,
        holding: &HeldItem,
        file: &FileRecord,
        doc: &Path,
        updated: Option<SystemTime>,
    ) -> Result<(), ArchiveError> {
        let bytes = decode_logical_path(&file.name);
        let name = Path::new(std::ffi::OsStr::from_bytes(&bytes));
        // Deposits refuse such names, but an object placed into the tree by other means may have
        // them.
        if !name.components().all(|part| matches!(part, Component::Normal(_))) || bytes.contains(&0) {
            return Err(ArchiveError::Value(format!(
                "the file name {} leads out of the item",
                file.name.escape_debug()
            )));
        }
        let to = doc.join(name);
        let from = self.tree.join(&holding.path).join(&file.content);
        let above = to.parent().unwrap_or(doc);
        fs::create_dir_all(above).map_err(ArchiveError::io("create", above))?;
        if self.try_reflink(&from, &to, updated)? {
            return Ok(());
        }
        if self.link && fs::hard_link(&from, &to).is_ok() {
            // Writing to this hard link would modify the Archive. The Archive's own file is
            // private; here it is readable by those who may read its folder.
            let mode = fs::metadata(above).map(|folder| folder.permissions().mode() & 0o444);
            let read_only = mode.and_then(|mode| fs::set_permissions(&to, Permissions::from_mode(mode)));
            return read_only.map_err(ArchiveError::io("make read-only", &to));
        }
        let mut written = create(&to)?;
        let copied = holdings.open_file(&holding.path, file)?.copy_to(&mut written);
        copied.map_err(|error| match error {
            VerifiedCopyError::Kept(error) => error.into(),
            VerifiedCopyError::Write(error) => ArchiveError::io("write", &to)(error),
        })?;
        set_modified_date(&written, &to, updated)
    }

    /// Reflinks a file of the Archive, if the filesystem can: writing to one then does not change
    /// the other.
    fn try_reflink(&self, from: &Path, to: &Path, updated: Option<SystemTime>) -> Result<bool, ArchiveError> {
        if !self.shares.get() {
            return Ok(false);
        }
        let Ok(from) = File::open(from) else { return Ok(false) };
        let written = create(to)?;
        if ioctl_ficlone(&written, from).is_ok() {
            return set_modified_date(&written, to, updated).map(|()| true);
        }
        self.shares.set(false);
        fs::remove_file(to).map_err(ArchiveError::io("remove", to))?;
        Ok(false)
    }

    /// Makes all staged files durable at once.
    pub(super) fn sync(&self) -> Result<(), ArchiveError> {
        let folder = File::open(&self.staging).map_err(ArchiveError::io("open", &self.staging))?;
        syncfs(&folder).map_err(|error| ArchiveError::io("sync", &self.staging)(error.into()))
    }

    /// Puts an item in its place, in one step where the system can.
    pub(super) fn put_in_place(&self, item: &StagedTreeItem) -> Result<(), ArchiveError> {
        let place = self.out.join(&item.folder);
        let above = place.parent().unwrap_or(&self.out);
        fs::create_dir_all(above).map_err(ArchiveError::io("create", above))?;
        let put =
            |from: &Path, to: &Path| fs::rename(from, to).map_err(ArchiveError::io("put in its place", to));
        if fs::symlink_metadata(&place).is_err() {
            return put(&item.staged, &place);
        }
        if renameat_with(CWD, &item.staged, CWD, &place, RenameFlags::EXCHANGE).is_ok() {
            return remove(&item.staged);
        }
        let old = self.next_staging_path();
        put(&place, &old)?;
        put(&item.staged, &place)?;
        remove(&old)
    }

    /// Removes an item from the tree, with parent folders that become empty.
    pub(super) fn remove_entry(&self, folder: &Path) -> Result<(), ArchiveError> {
        let (place, gone) = (self.out.join(folder), self.next_staging_path());
        fs::rename(&place, &gone).map_err(ArchiveError::io("take away", &place))?;
        remove(&gone)?;
        let mut above = folder.parent();
        while let Some(folder) = above.filter(|folder| !folder.as_os_str().is_empty()) {
            // Not empty: it holds other items.
            if fs::remove_dir(self.out.join(folder)).is_err() {
                break;
            }
            above = folder.parent();
        }
        Ok(())
    }

    /// Every item that lies in the tree.
    pub(super) fn tree_entries(&self) -> impl Iterator<Item = Result<PlainTreeEntry, ArchiveError>> + use<> {
        let out = self.out.clone();
        let mut left = vec![PathBuf::new()];
        std::iter::from_fn(move || {
            while let Some(folder) = left.pop() {
                let place = out.join(&folder);
                if let Ok(stamp) = fs::read_to_string(place.join(STAMP_FILE)) {
                    return Some(Ok(PlainTreeEntry::new(folder, &stamp)));
                }
                // Labels have at most four parts.
                if folder.components().count() >= 4 {
                    continue;
                }
                let entries = match fs::read_dir(&place) {
                    Ok(entries) => entries,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Some(Err(ArchiveError::io("read", &place)(error))),
                };
                for entry in entries.flatten() {
                    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    if is_folder && !entry.file_name().as_bytes().starts_with(b".") {
                        left.push(folder.join(entry.file_name()));
                    }
                }
            }
            None
        })
    }

    /// Finds the folders of an item and its metadata by the path of its object, when its
    /// description is gone.
    pub(super) fn find(&self, path: &str) -> Result<Vec<PlainTreeEntry>, ArchiveError> {
        let is_it = |laid: &Result<PlainTreeEntry, _>| laid.as_ref().map_or(true, |laid| laid.path == path);
        self.tree_entries().filter(is_it).collect()
    }

    fn next_staging_path(&self) -> PathBuf {
        let number = self.next.get();
        self.next.set(number + 1);
        self.staging.join(number.to_string())
    }
}

fn create(path: &Path) -> Result<File, ArchiveError> {
    File::options().write(true).create_new(true).open(path).map_err(ArchiveError::io("create", path))
}

/// Sets the modification time of a file to the date of its item.
fn set_modified_date(file: &File, path: &Path, at: Option<SystemTime>) -> Result<(), ArchiveError> {
    at.map_or(Ok(()), |at| file.set_modified(at)).map_err(ArchiveError::io("date", path))
}

fn system_time(at: Instant) -> Option<SystemTime> {
    let seconds = u64::try_from(at.seconds()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

fn remove(folder: &Path) -> Result<(), ArchiveError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ArchiveError::io("remove", folder)(error))
        }
        _ => Ok(()),
    }
}
