//! What only the running server knows, for commands: it writes `live.json` to its data folder every
//! few seconds (`docs/formats/live-status.md`). Nothing depends on it.

use std::collections::BTreeMap;
use std::path::Path;

use ibi_id::Label;
use ibi_store::{DataFolderLock, StorageError};
use serde::{Deserialize, Serialize};

use crate::location_index::{IndexStatus, LOCATION_FOLDER_NAME, LocationIndex};
use crate::registry::{Registry, ResolverRegistryError};
use crate::transport::BreakerState;

/// The name of the file in the data folder.
pub const LIVE_STATUS_FILE_NAME: &str = "live.json";

/// After this many seconds the file is from a server that does not run any more.
const MAX_LIVE_STATUS_AGE_SECONDS: i64 = 10;

/// What the server knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// When it was written, in seconds since the Unix epoch.
    pub written: i64,
    /// The state of the breaker of each Archive, by the label of its service.
    pub breakers: BTreeMap<String, String>,
    /// The location index, if there is one.
    pub index: Option<IndexStatus>,
}

impl LiveStatus {
    /// The state of the breaker of an Archive.
    pub fn breaker(&self, service: &Label) -> Option<BreakerState> {
        let name = self.breakers.get(service.spelling())?;
        BreakerState::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Writes it to a data folder. It is not synced: after a crash it means nothing.
    pub fn write(&self, data: &Path) -> std::io::Result<()> {
        let path = data.join(LIVE_STATUS_FILE_NAME);
        let new = path.with_extension("json.new");
        std::fs::write(&new, serde_json::to_vec(self)?)?;
        std::fs::rename(&new, &path)
    }

    /// Removes it: no server runs any more.
    pub fn remove(data: &Path) {
        let _ = std::fs::remove_file(data.join(LIVE_STATUS_FILE_NAME));
    }

    /// Reads what the server of a data folder wrote a moment ago; `None` if none runs.
    pub fn read(data: &Path, now: i64) -> Option<Self> {
        let bytes = std::fs::read(data.join(LIVE_STATUS_FILE_NAME)).ok()?;
        let live: Self = serde_json::from_slice(&bytes).ok()?;
        (now.abs_diff(live.written) <= MAX_LIVE_STATUS_AGE_SECONDS.unsigned_abs()).then_some(live)
    }
}

/// The state of the index of a data folder: as its server knows it, or as it is on disk if none
/// runs. `None` if a server runs that has not written it yet, or has no index.
pub fn index_status(
    data: &Path,
    registry: &Registry,
    now: i64,
) -> Result<Option<IndexStatus>, ResolverRegistryError> {
    if let Some(live) = LiveStatus::read(data, now) {
        return Ok(live.index);
    }
    let stored = |error: StorageError| ResolverRegistryError::Store(error.into());
    // A server that starts meanwhile would delete an index that it cannot read.
    let Some(_lock) = DataFolderLock::try_lock(data).map_err(stored)? else { return Ok(None) };
    let archives = registry.archives();
    let archives = archives.iter().map(|archive| &**archive);
    if !data.join(LOCATION_FOLDER_NAME).exists() {
        return Ok(Some(IndexStatus::default()));
    }
    LocationIndex::open(data).and_then(|index| index.status(archives)).map(Some).map_err(stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location_index::ArchiveIndexStatus;

    /// Frozen: commands of this version read what a server of another one wrote.
    const SAMPLE: &str = r#"{"written":1800000000,"breakers":{"library.org.br/archive/2026/11.16.08.00":"closed"},"index":{"archives":[{"service":"library.org.br/archive/2026/11.16.08.00","followed":true,"current":true,"position":"7-3f1c0d5e9a2b4c68","sequence":7,"age_seconds":0.25,"items":2,"labels":6,"bytes":1520,"error":null}],"labels":6,"items":2,"bytes":65536}}"#;

    #[test]
    fn the_format_is_frozen_and_what_is_old_does_not_count() {
        let live = LiveStatus {
            written: 1_800_000_000,
            breakers: [("library.org.br/archive/2026/11.16.08.00".to_owned(), "closed".to_owned())].into(),
            index: Some(IndexStatus {
                archives: vec![ArchiveIndexStatus {
                    service: "library.org.br/archive/2026/11.16.08.00".to_owned(),
                    followed: true,
                    current: true,
                    position: Some("7-3f1c0d5e9a2b4c68".to_owned()),
                    sequence: Some(7),
                    age_seconds: Some(0.25),
                    items: 2,
                    labels: 6,
                    bytes: 1520,
                    error: None,
                }],
                labels: 6,
                items: 2,
                bytes: 65536,
            }),
        };
        assert_eq!(serde_json::to_string(&live).unwrap(), SAMPLE);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(LiveStatus::read(folder.path(), 1_800_000_000), None);
        live.write(folder.path()).unwrap();
        assert_eq!(LiveStatus::read(folder.path(), 1_800_000_010), Some(live));
        assert_eq!(LiveStatus::read(folder.path(), 1_800_000_011), None);
    }
}
