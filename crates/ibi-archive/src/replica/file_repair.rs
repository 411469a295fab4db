//! Replaces damaged files of an object with their bytes from elsewhere.

use ibi_store::journal::Verb;

use super::replica_object::ReplicaBytes;
use crate::ArchiveError;
use crate::archive::{Archive, Holdings};
use crate::object::StoredObject;
use crate::state_change::StateChange;

/// A file that can be repaired.
#[derive(Debug)]
pub struct FileRepair {
    /// Its path in the object.
    pub file: String,
    /// Its bytes.
    pub bytes: ReplicaBytes,
    /// The source Archive; `None` if the bytes follow from local data.
    pub source: Option<String>,
}

impl Archive {
    /// Repairs files of an item. The bytes are verified once more.
    pub fn apply_repairs(
        &mut self,
        path: &str,
        repairs: &[FileRepair],
        by: &str,
    ) -> Result<(), ArchiveError> {
        let content = &*self.holdings.content;
        for repair in repairs {
            let staging = content.begin_staging()?;
            let put = repair.bytes.put(content, &staging, "file");
            let mended = put.and_then(|()| content.replace_file(&staging, "file", path, &repair.file));
            content.discard(&staging)?;
            mended?;
        }
        let object = StoredObject::read(content, path)?;
        let last = self.holdings.records.last_event(path)?;
        let Some((object, last)) = object.zip(last) else {
            return Err(ArchiveError::Lost { label: path.to_owned() });
        };
        let files: Vec<&str> = repairs.iter().map(|repair| repair.file.as_str()).collect();
        let restated = StateChange {
            source: repairs.iter().find_map(|repair| repair.source.clone()),
            note: Some(files.join(", ")),
            ..StateChange::new(Verb::Repair, last.state, last.epoch, by)
        };
        self.change_state(path, &object, restated)?;
        for place in repairs.iter().filter_map(|repair| match &repair.bytes {
            ReplicaBytes::At(place) => place.parent(),
            ReplicaBytes::Here(_) => None,
        }) {
            // If this fails, the next repair finds the files.
            let _ = std::fs::remove_dir_all(place);
        }
        Ok(())
    }
}

impl Holdings {
    /// A small file of an object, unverified.
    pub(crate) fn read_unverified_file(&self, path: &str, name: &str) -> Option<Vec<u8>> {
        const MAX_RAW_FILE_BYTES: usize = 64 << 20;
        let file = self.content.open(path, name).ok()?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 1 << 16];
        while bytes.len() < MAX_RAW_FILE_BYTES {
            match file.read_at(&mut buffer, bytes.len() as u64).ok()? {
                0 => return Some(bytes),
                read => bytes.extend_from_slice(&buffer[..read]),
            }
        }
        None
    }
}
