//! Objects, copied from one tree to another, every byte checked on its way.

use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::Path;

use ibi_store::content::Head;
use ibi_store::digests::hex;
use ibi_store::ocfl::{INVENTORY, Inventory, OBJECT_DECLARATION, SIDECAR, sidecar};
use ibi_store::{Content, KeepError, Tree};
use sha2::{Digest as _, Sha512};

use crate::ArchiveError;

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Items that are in the copy now.
    pub items: u64,
    /// Files that were copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What could not be copied because it is damaged: object and reason.
    pub damaged: Vec<(String, String)>,
}

/// Copies all objects of one data folder to another.
pub(super) fn objects(from: &Path, to: &Path, progress: &dyn Fn(u64)) -> Result<Copied, ArchiveError> {
    let content = Tree::open(from)?;
    let partial = to.join("partial");
    let mut copied = Copied::default();
    for object in content.objects()? {
        let object = object?;
        let (here, there) = (from.join("tree").join(&object), to.join("tree").join(&object));
        // It may be changed while it is copied: then once more.
        let mut done = copy_object(&content, &object, &here, &there, &partial, &mut copied, progress);
        if matches!(done, Err(Trouble::Damaged(_))) {
            done = copy_object(&content, &object, &here, &there, &partial, &mut copied, progress);
        }
        match done {
            Ok(()) => copied.items += 1,
            Err(Trouble::Damaged(what)) => copied.damaged.push((object, what)),
            Err(Trouble::Failed(error)) => return Err(error),
        }
    }
    Ok(copied)
}

enum Trouble {
    Damaged(String),
    Failed(ArchiveError),
}

impl From<ArchiveError> for Trouble {
    fn from(error: ArchiveError) -> Self {
        Trouble::Failed(error)
    }
}

fn copy_object(
    content: &Tree,
    object: &str,
    here: &Path,
    there: &Path,
    partial: &Path,
    copied: &mut Copied,
    progress: &dyn Fn(u64),
) -> Result<(), Trouble> {
    let head = match content.head(object) {
        Ok(Some(head)) => head,
        // Gone meanwhile.
        Ok(None) => return Err(Trouble::Damaged("it is gone".to_owned())),
        Err(error @ KeepError::DamagedInventory { .. }) => return Err(Trouble::Damaged(error.to_string())),
        Err(error) => return Err(Trouble::Failed(error.into())),
    };
    let Head { inventory: bytes, digest } = head;
    let inventory = Inventory::parse(&bytes).map_err(Trouble::Damaged)?;
    forget_replaced(here, there)?;
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
                .map_err(|_| Trouble::Damaged(format!("{version}/{name} cannot be read")))
        };
        let (own, vouched) = (read(INVENTORY)?, read(SIDECAR)?);
        if ibi_store::ocfl::sidecar_digest(&vouched) != Some(&Inventory::digest(&own)) {
            return Err(Trouble::Damaged(format!("{version}/{INVENTORY} is not what its sidecar says")));
        }
        put(&there.join(version), INVENTORY, &own)?;
        put(&there.join(version), SIDECAR, &vouched)?;
    }
    put(there, OBJECT_DECLARATION.0, OBJECT_DECLARATION.1.as_bytes())?;
    put(there, INVENTORY, &bytes)?;
    put(there, SIDECAR, sidecar(&digest).as_bytes())?;
    Ok(())
}

/// Bytes that were purged here go there too.
fn forget_replaced(here: &Path, there: &Path) -> Result<(), ArchiveError> {
    let first = |folder: &Path| fs::read(folder.join("v1").join(INVENTORY)).ok();
    let old = first(there);
    if old.is_some() && old != first(here) {
        fs::remove_dir_all(there).map_err(ArchiveError::io("remove", there))?;
    }
    Ok(())
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
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
    copied: &mut Copied,
    progress: &dyn Fn(u64),
) -> Result<(), Trouble> {
    let unreadable = |error: std::io::Error| Trouble::Damaged(format!("{}: {error}", from.display()));
    let mut reader = File::open(from).map_err(unreadable)?;
    let size = reader.metadata().map_err(unreadable)?.len();
    if to.metadata().is_ok_and(|there| there.len() == size) {
        return Ok(());
    }
    if let Some(above) = to.parent() {
        fs::create_dir_all(above).map_err(ArchiveError::io("create", above))?;
    }
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
        return Err(Trouble::Damaged(format!("{} is not what its digest says", from.display())));
    }
    fs::rename(partial, to).map_err(ArchiveError::io("write", to))?;
    copied.files += 1;
    Ok(())
}
