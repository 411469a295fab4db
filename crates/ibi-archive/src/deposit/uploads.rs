//! Files that have arrived over the network.

use std::path::PathBuf;

use ibi_store::Content;
use ibi_store::digests::Digests;
use ibi_store::ocfl::{ContentNames, Inventory};

use crate::ArchiveError;
use crate::archive::Archive;
use crate::commit::StagedFile;
use crate::deposit::Staged;
use crate::item::ItemFile;
use crate::object::DOC;

/// A file that has arrived over the network, was hashed as it came, and lies on this machine.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Its path below `doc/`, as the inventory has it.
    pub(crate) name: String,
    pub(crate) digests: Digests,
    /// Where it lies; nothing if the version before has the same bytes.
    pub(crate) file: Option<PathBuf>,
}

impl Archive {
    /// Stages files that have arrived, without hashing them again.
    pub(crate) fn stage_uploads(
        &self,
        uploads: &[Upload],
        known: Option<&Inventory>,
    ) -> Result<Staged, ArchiveError> {
        let content = &self.holdings.content;
        content.room()?;
        let mut staged = Staged { staging: content.stage()?, files: Vec::new() };
        match place_uploads(&**content, uploads, known, &mut staged) {
            Ok(()) => Ok(staged),
            Err(error) => {
                // Swept at the next opening if not now.
                let _ = content.discard(&staged.staging);
                Err(error)
            }
        }
    }
}

fn place_uploads(
    content: &dyn Content,
    uploads: &[Upload],
    known: Option<&Inventory>,
    staged: &mut Staged,
) -> Result<(), ArchiveError> {
    let mut names = ContentNames::default();
    let mut stored = std::collections::HashSet::new();
    for Upload { name, digests, file } in uploads {
        let on_disk = names.name(&format!("{DOC}{name}"));
        let have = known.is_some_and(|known| known.manifest.contains_key(&digests.sha512))
            || !stored.insert(digests.sha512.clone());
        if !have {
            let missing = || ArchiveError::Value(format!("the bytes of {name} are not there"));
            content.put_file(&staged.staging, &on_disk, file.as_deref().ok_or_else(missing)?)?;
        }
        let file = ItemFile::new(name.clone(), digests);
        let stored = (!have).then_some(on_disk);
        staged.files.push(StagedFile { file, sha512: digests.sha512.clone(), stored });
    }
    staged.files.sort_by(|a, b| a.file.path.cmp(&b.file.path));
    Ok(())
}
