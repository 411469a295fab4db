//! Where the data of a person lie who does not say where.

use std::path::PathBuf;

use crate::cli::Data;
use crate::exit::Failure;

impl Data {
    /// The folder given, or `ibi` in the folder that the platform keeps a user's data in.
    pub(super) fn folder(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.data {
            return Ok(folder.clone());
        }
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME");
        let platform = if cfg!(target_os = "macos") {
            home().map(|home| home.join("Library/Application Support"))
        } else {
            absolute("XDG_DATA_HOME").or_else(|| home().map(|home| home.join(".local/share")))
        };
        platform.map(|folder| folder.join("ibi")).ok_or(Failure::NoDataFolder)
    }
}
