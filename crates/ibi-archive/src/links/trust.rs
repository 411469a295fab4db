//! Archives whose links are accepted at once: clause 2.4, *Consent*. They are named by the labels of their
//! services, a line each, in `service/trusted-archives` of the data folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ArchiveError;
use crate::item::Spelling;

/// Bytes of the file: some thousand Archives.
const MAX_FILE_BYTES: u64 = 1 << 20;

fn place(data: &Path) -> PathBuf {
    data.join("service/trusted-archives")
}

/// The Archives that are trusted.
pub fn trusted(data: &Path) -> Result<BTreeSet<String>, ArchiveError> {
    let path = place(data);
    let length = match std::fs::metadata(&path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(ArchiveError::io("read", &path)(error)),
    };
    if length > MAX_FILE_BYTES {
        return Err(ArchiveError::Value(format!("{} is longer than {MAX_FILE_BYTES} bytes", path.display())));
    }
    let text = std::fs::read_to_string(&path).map_err(ArchiveError::io("read", &path))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Whether the Archive with this service is trusted.
pub(crate) fn is_trusted(data: &Path, service: &str) -> Result<bool, ArchiveError> {
    let Ok(service) = Spelling::parse(service) else { return Ok(false) };
    let is_it =
        |known: &String| Spelling::parse(known).is_ok_and(|known| known.canonical == service.canonical);
    Ok(trusted(data)?.iter().any(is_it))
}

/// Trusts an Archive from now on, or no longer. Tells whether that changed anything.
pub fn set_trusted(data: &Path, service: &str, trust: bool) -> Result<bool, ArchiveError> {
    let parsed = Spelling::parse(service);
    let service = parsed
        .map_err(|error| ArchiveError::Label { label: service.escape_debug().to_string(), error })?
        .canonical;
    let mut all = trusted(data)?;
    let before = all.len();
    all.retain(|known| Spelling::parse(known).is_ok_and(|known| known.canonical != service));
    if trust {
        all.insert(service);
    }
    let mut text: String = all.iter().map(|known| format!("{known}\n")).collect();
    let changed = before != all.len() || (trust && before == 0);
    if text.is_empty() {
        text.push('\n');
    }
    let path = place(data);
    ibi_store::service::replace(&path, text.as_bytes())?;
    Ok(changed)
}
