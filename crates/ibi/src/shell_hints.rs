//! The next step in the shell after an error of a library. Libraries name no commands and no
//! options: their messages also reach clients over HTTP.

use ibi_archive::ArchiveError;
use ibi_mint::MintError;

/// What to run or pass next after an error of the Archive.
pub(crate) fn archive_hint(error: &ArchiveError) -> Option<String> {
    let fixed = match error {
        ArchiveError::NoArchive { .. } => {
            "`ibi archive init` creates one; if there was one, check that its disk is mounted"
        }
        ArchiveError::AlreadyStarted { .. } => "`ibi archive list` lists its items",
        ArchiveError::Unknown { .. } => "`ibi archive list` lists the items",
        ArchiveError::Dropped { .. } => "`ibi archive copy` fetches it again",
        ArchiveError::NotMinted { .. } => "`ibi mint` mints labels; or omit --label",
        ArchiveError::SecondLabel { .. } => "pass it with --alias",
        ArchiveError::OriginalAnyway => "omit --original",
        ArchiveError::NoSuchLink { .. } => "`ibi archive links list` lists the links",
        ArchiveError::SeveralLinks { .. } => "pass it with --of",
        ArchiveError::Gone { .. } => "`ibi archive show` shows the tombstone",
        ArchiveError::IsCopy { .. } => {
            "if no other Archive has the Original, --original makes this Copy the Original"
        }
        ArchiveError::NothingToChange => "pass a path, --dc or another option",
        ArchiveError::NoFiles { .. } => "--record deposits a record without files",
        ArchiveError::Restored => "if none was, run `ibi archive confirm`",
        ArchiveError::Lost { label } => {
            return Some(format!(
                "`ibi archive copy {label} --from ARCHIVE` fetches it again; after restoring a backup, run \
                 `ibi archive rebuild`"
            ));
        }
        ArchiveError::Granted { label, .. } => {
            return Some(format!(
                "if that Archive has another address now, run `ibi archive transfer {label} --to URL`; if \
                 it is permanently lost, `ibi archive transfer {label} --taker-destroyed`"
            ));
        }
        ArchiveError::RemoveCopy { label } => {
            return Some(format!("to remove this copy, run `ibi archive drop {label}`"));
        }
        ArchiveError::Mint(error) => return mint_hint(error).map(str::to_owned),
        ArchiveError::Batch(error) => return archive_hint(error),
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// What to pass next after an error of the minter.
pub(crate) fn mint_hint(error: &MintError) -> Option<&'static str> {
    match error {
        MintError::NotUnique { .. } => Some("to use it anyway, pass --allow-private"),
        MintError::WouldWait { ahead: None, .. } => Some("--max-wait allows a longer wait"),
        _ => None,
    }
}
