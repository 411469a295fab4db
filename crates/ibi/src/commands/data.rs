//! The data folder of a command, and its default.

use std::path::PathBuf;
use std::sync::Once;

use crate::cli::DataArgs;
use crate::exit::CommandError;
use crate::io::{printable, say};

/// Warns once, although a command may look up its folder several times.
static OWNER_WARNING: Once = Once::new();

impl DataArgs {
    /// The given folder, or `ibi` in the platform's user data directory. New files of this process
    /// are accessible to their owner only.
    pub(super) fn folder(&self) -> Result<PathBuf, CommandError> {
        let folder = self.folder_to_publish_from()?;
        if let Some(owner) = ibi_archive::store::make_new_files_private(&folder) {
            OWNER_WARNING.call_once(|| {
                say(format_args!(
                    "warning: {} belongs to user {owner}, and this command runs as root: the files that it creates belong to \
                     root, and that user may not be able to use them. Use: sudo -u '#{owner}' ibi …",
                    printable(&folder.display().to_string())
                ));
            });
        }
        Ok(folder)
    }

    /// Like [`DataArgs::folder`], for commands that write for other users: new files keep the
    /// user's default permissions.
    pub(super) fn folder_to_publish_from(&self) -> Result<PathBuf, CommandError> {
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
        platform.map(|folder| folder.join("ibi")).ok_or(CommandError::NoDataFolder)
    }
}
