//! Objects, copied from one tree to another, every byte checked on its way.

use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::Path;

use ibi_store::content::ObjectHead;
use ibi_store::digests::hex;
use ibi_store::ocfl::{INVENTORY_FILE, Inventory, OBJECT_DECLARATION, SIDECAR_FILE, sidecar};
use ibi_store::{ContentStorage, OcflTree, StorageError};
use sha2::{Digest as _, Sha512};

use crate::ArchiveError;

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeCopyReport {
    /// Items that are in the copy now.
    pub items: u64,
    /// Files that were copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What could not be copied because it is damaged: object and reason.
    pub damaged: Vec<(String, String)>,
    /// What is wrong with the journal, which was copied as it is.
    pub journal_damage: Option<String>,
}

/// Copies all objects of one data folder to another.
pub(super) fn copy_objects(
    from: &Path,
    to: &Path,
    progress: &dyn Fn(u64),
) -> Result<TreeCopyReport, ArchiveError> {
    let content = OcflTree::open(from)?;
    let partial = to.join("partial");
    let mut copied = TreeCopyReport::default();
    for object in content.objects()? {
        let object = object?;
        let (here, there) = (from.join("tree").join(&object), to.join("tree").join(&object));
        // It may be changed while it is copied: then once more.
        let mut done = copy_object(&content, &object, &here, &there, &partial, &mut copied, progress);
        if matches!(done, Err(ObjectCopyError::Damaged(_))) {
            done = copy_object(&content, &object, &here, &there, &partial, &mut copied, progress);
        }
        match done {
            Ok(()) => copied.items += 1,
            Err(ObjectCopyError::Damaged(what)) => copied.damaged.push((object, what)),
            Err(ObjectCopyError::Failed(error)) => return Err(error),
        }
    }
    Ok(copied)
}

enum ObjectCopyError {
    Damaged(String),
    Failed(ArchiveError),
}

impl From<ArchiveError> for ObjectCopyError {
    fn from(error: ArchiveError) -> Self {
        ObjectCopyError::Failed(error)
    }
}

fn copy_object(
    content: &OcflTree,
    object: &str,
    here: &Path,
    there: &Path,
    partial: &Path,
    copied: &mut TreeCopyReport,
    progress: &dyn Fn(u64),
) -> Result<(), ObjectCopyError> {
    let head = match content.head(object) {
        Ok(Some(head)) => head,
        // Gone meanwhile.
        Ok(None) => return Err(ObjectCopyError::Damaged("it is gone".to_owned())),
        Err(error @ StorageError::DamagedInventory { .. }) => {
            return Err(ObjectCopyError::Damaged(error.to_string()));
        }
        Err(error) => return Err(ObjectCopyError::Failed(error.into())),
    };
    let ObjectHead { inventory: bytes, digest } = head;
    let inventory = Inventory::parse(&bytes).map_err(ObjectCopyError::Damaged)?;
    remove_purged(here, there)?;
    fs::create_dir_all(there).map_err(ArchiveError::io("create", there))?;
    for (digest, files) in &inventory.manifest {
        for file in files {
            copy_checked(&here.join(file), &there.join(file), digest, partial, copied, progress)?;
        }
    }
    for version in inventory.versions.keys() {
        let folder = here.join(version);
        let read = |name: &str| {
            fs::read(folder.join(name))
                .map_err(|_| ObjectCopyError::Damaged(format!("{version}/{name} cannot be read")))
        };
        let (own, vouched) = (read(INVENTORY_FILE)?, read(SIDECAR_FILE)?);
        if ibi_store::ocfl::sidecar_digest(&vouched) != Some(&Inventory::digest(&own)) {
            return Err(ObjectCopyError::Damaged(format!(
                "{version}/{INVENTORY_FILE} is not what its sidecar says"
            )));
        }
        write_if_changed(&there.join(version), INVENTORY_FILE, &own)?;
        write_if_changed(&there.join(version), SIDECAR_FILE, &vouched)?;
    }
    write_if_changed(there, OBJECT_DECLARATION.0, OBJECT_DECLARATION.1.as_bytes())?;
    write_if_changed(there, INVENTORY_FILE, &bytes)?;
    write_if_changed(there, SIDECAR_FILE, sidecar(&digest).as_bytes())?;
    Ok(())
}

/// Bytes that were purged here go there too.
fn remove_purged(here: &Path, there: &Path) -> Result<(), ArchiveError> {
    let first = |folder: &Path| fs::read(folder.join("v1").join(INVENTORY_FILE)).ok();
    let old = first(there);
    if old.is_some() && old != first(here) {
        fs::remove_dir_all(there).map_err(ArchiveError::io("remove", there))?;
    }
    Ok(())
}

fn write_if_changed(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    fs::create_dir_all(folder).map_err(ArchiveError::io("create", folder))?;
    let path = folder.join(name);
    if fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::write(&path, bytes).map_err(ArchiveError::io("write", &path))
}

fn copy_checked(
    from: &Path,
    to: &Path,
    digest: &str,
    partial: &Path,
    copied: &mut TreeCopyReport,
    progress: &dyn Fn(u64),
) -> Result<(), ObjectCopyError> {
    let unreadable = |error: std::io::Error| ObjectCopyError::Damaged(format!("{}: {error}", from.display()));
    let mut reader = File::open(from).map_err(unreadable)?;
    let size = reader.metadata().map_err(unreadable)?.len();
    if to.metadata().is_ok_and(|there| there.len() == size) {
        return Ok(());
    }
    if let Some(above) = to.parent() {
        fs::create_dir_all(above).map_err(ArchiveError::io("create", above))?;
    }
    // Others may write on that disk meanwhile.
    let place = partial.parent().unwrap_or(partial);
    ibi_store::check_disk_space(place, size).map_err(ArchiveError::from)?;
    // Under its name only when it is whole and right.
    let mut writer = File::create(partial).map_err(ArchiveError::io("create", to))?;
    let (mut hash, mut buffer) = (Sha512::new(), vec![0; 1 << 18]);
    loop {
        let read = reader.read(&mut buffer).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        writer.write_all(&buffer[..read]).map_err(ArchiveError::io("write", to))?;
        copied.bytes += read as u64;
        progress(read as u64);
    }
    if hex(&hash.finalize()) != digest {
        let _ = fs::remove_file(partial);
        return Err(ObjectCopyError::Damaged(format!("digest mismatch in {}", from.display())));
    }
    fs::rename(partial, to).map_err(ArchiveError::io("write", to))?;
    copied.files += 1;
    Ok(())
}
