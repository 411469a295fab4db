//! Archives whose links are accepted at once: clause 2.4, *Consent*. Their service labels are
//! listed, one per line, in `service/trusted-archives` of the data folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ArchiveError;
use crate::item::LabelKey;

/// Maximum size of the file: some thousand Archives.
const MAX_TRUSTED_ARCHIVES_BYTES: u64 = 1 << 20;

fn trusted_archives_path(data: &Path) -> PathBuf {
    data.join("service/trusted-archives")
}

/// Reads an operator's list with a size limit; empty if there is no file.
pub(crate) fn read_list(path: &Path, max_bytes: u64) -> Result<String, ArchiveError> {
    let length = match std::fs::metadata(path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(ArchiveError::io("read", path)(error)),
    };
    if length > max_bytes {
        return Err(ArchiveError::Value(format!("{} is longer than {max_bytes} bytes", path.display())));
    }
    std::fs::read_to_string(path).map_err(ArchiveError::io("read", path))
}

/// The Archives that are trusted.
pub fn trusted_archives(data: &Path) -> Result<BTreeSet<String>, ArchiveError> {
    let text = read_list(&trusted_archives_path(data), MAX_TRUSTED_ARCHIVES_BYTES)?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Whether the Archive with this service label is trusted.
pub(crate) fn is_trusted(data: &Path, service: &str) -> Result<bool, ArchiveError> {
    let Ok(service) = LabelKey::parse(service) else { return Ok(false) };
    let is_it =
        |known: &String| LabelKey::parse(known).is_ok_and(|known| known.canonical == service.canonical);
    Ok(trusted_archives(data)?.iter().any(is_it))
}

/// Adds or removes the trust in an Archive. Returns whether anything changed.
pub fn set_trusted(data: &Path, service: &str, trust: bool) -> Result<bool, ArchiveError> {
    let parsed = LabelKey::parse(service);
    let service = parsed
        .map_err(|error| ArchiveError::Label { label: service.escape_debug().to_string(), error })?
        .canonical;
    let mut changed = false;
    // Read under the lock: others may change the file concurrently.
    ibi_store::small_file::change(&trusted_archives_path(data), |_| {
        let mut all = trusted_archives(data)?;
        let before = all.len();
        all.retain(|known| LabelKey::parse(known).is_ok_and(|known| known.canonical != service));
        if trust {
            all.insert(service);
        }
        let mut text: String = all.iter().map(|known| format!("{known}\n")).collect();
        changed = before != all.len() || (trust && before == 0);
        if text.is_empty() {
            text.push('\n');
        }
        Ok::<_, ArchiveError>(text.into_bytes())
    })??;
    Ok(changed)
}
