//! Files that have arrived over the network.

use std::path::PathBuf;

use ibi_store::ContentStorage;
use ibi_store::digests::ContentDigests;
use ibi_store::ocfl::{ContentNames, Inventory};

use crate::ArchiveError;
use crate::archive::Archive;
use crate::deposit::StagedContent;
use crate::item::ItemFile;
use crate::object::DOC_FOLDER;
use crate::prepared_change::StagedFile;

/// A file that has arrived over the network, was hashed as it came, and lies on this machine.
#[derive(Debug)]
pub(crate) struct UploadedFile {
    /// Its path below `doc/`, as the inventory has it.
    pub(crate) name: String,
    pub(crate) media: String,
    pub(crate) digests: ContentDigests,
    /// Where it lies; nothing if the version before has the same bytes.
    pub(crate) file: Option<PathBuf>,
}

impl Archive {
    /// Stages files that have arrived, without hashing them again.
    pub(crate) fn stage_uploads(
        &self,
        uploads: &[UploadedFile],
        known: Option<&Inventory>,
    ) -> Result<StagedContent, ArchiveError> {
        let content = &self.holdings.content;
        content.check_space()?;
        let mut staged = StagedContent { staging: content.begin_staging()?, files: Vec::new() };
        match stage_uploaded_files(&**content, uploads, known, &mut staged) {
            Ok(()) => Ok(staged),
            Err(error) => {
                // Swept at the next opening if not now.
                let _ = content.discard(&staged.staging);
                Err(error)
            }
        }
    }
}

fn stage_uploaded_files(
    content: &dyn ContentStorage,
    uploads: &[UploadedFile],
    known: Option<&Inventory>,
    staged: &mut StagedContent,
) -> Result<(), ArchiveError> {
    let mut names = ContentNames::default();
    let mut stored = std::collections::HashSet::new();
    for UploadedFile { name, media, digests, file } in uploads {
        let on_disk = names.name(&format!("{DOC_FOLDER}{name}"));
        let have = known.is_some_and(|known| known.manifest.contains_key(&digests.sha512))
            || !stored.insert(digests.sha512.clone());
        if !have {
            let missing = || ArchiveError::Value(format!("the bytes of {name} are not there"));
            content.stage_local_file(&staged.staging, &on_disk, file.as_deref().ok_or_else(missing)?)?;
        }
        let file = ItemFile::new(name.clone(), media.clone(), digests);
        let stored = (!have).then_some(on_disk);
        staged.files.push(StagedFile { file, sha512: digests.sha512.clone(), stored });
    }
    staged.files.sort_by(|a, b| a.file.path.cmp(&b.file.path));
    Ok(())
}
