//! Transfers for which this Archive is the giver. Each is a file in `service/handovers/`, so it
//! resumes after any restart (`docs/formats/holders.md`). The journal holds the state of the item.

mod driver;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ReplicationError;
use super::copy::LocalView;
use super::messages::TransferStatus;
use super::peer::PeerArchive;
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::item::LabelKey;
use crate::transfer_protocol::TransferStep;

pub use driver::drive_transfers;

const TRANSFER_FILE_FORMAT: u32 = 1;

/// Timeout for asking a taker that is said to have moved.
const TAKER_TIMEOUT: Duration = Duration::from_secs(20);

/// A transfer begun here and not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingTransfer {
    format: u32,
    /// The name of the transfer.
    pub handover: String,
    /// The label as the operator gave it.
    pub item: String,
    /// The path of the item's object.
    pub path: String,
    /// The taker's URL.
    pub to: String,
    /// Our token at the taker.
    token: Option<String>,
    /// Bearer token that lets the taker fetch a restricted item.
    pass: String,
    /// Whether a Copy stays here.
    pub keep: bool,
    /// Who requested it.
    pub by: String,
    /// When it began.
    pub begun: String,
    /// Why it is stalled, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Whether it was given up: the item stays the Original here.
    #[serde(default)]
    pub failed: bool,
    /// The service label of the taker, once it has replied that it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taker: Option<String>,
}

/// An operator's request for a transfer.
#[derive(Debug, Clone)]
pub struct TransferRequest {
    /// The item.
    pub item: String,
    /// The taker's URL.
    pub to: String,
    /// Our token at the taker.
    pub token: Option<String>,
    /// Whether a Copy stays here.
    pub keep: bool,
    /// Who requests it.
    pub by: String,
}

fn transfers_folder(data: &Path) -> PathBuf {
    data.join("service/handovers")
}

impl OutgoingTransfer {
    /// Records a transfer, or updates one in progress; the process that has the Archive online
    /// drives it. Requires write access to the Archive: no grant may come in between.
    pub fn begin(holdings: &Holdings, wish: TransferRequest, now: String) -> Result<Self, ReplicationError> {
        // Report an invalid URL or token at once.
        let to = PeerArchive::new(&wish.to, wish.token.clone())?.url().to_owned();
        let (holding, _) = holdings.find_bare(&wish.item)?;
        let before = Self::all(holdings.data())?.into_iter().filter(|before| before.path == holding.path);
        let before: Vec<Self> = before.collect();
        let (handover, taker) = match holdings.open_grant(&holding.path)? {
            Some((terms, granted)) => {
                let noted = before.into_iter().find(|before| before.handover == terms.handover);
                let taker = noted.and_then(|noted| noted.taker);
                // The taker is identified by its service, whose address may have changed.
                if granted != to && taker.is_none() {
                    return Err(ArchiveError::Granted { label: wish.item, to: granted }.into());
                }
                (terms.handover, taker)
            }
            None => {
                let fresh = random_hex()?;
                holdings.transfer_terms(&wish.item, fresh.clone())?;
                before.iter().try_for_each(|before| before.end(holdings.data()))?;
                (fresh, None)
            }
        };
        let transfer = Self {
            format: TRANSFER_FILE_FORMAT,
            handover,
            item: wish.item,
            path: holding.path,
            to,
            token: wish.token,
            pass: random_hex()?,
            keep: wish.keep,
            by: wish.by,
            begun: now,
            said: None,
            failed: false,
            taker,
        };
        remove_temporary_files(holdings.data());
        transfer.write(holdings.data())?;
        Ok(transfer)
    }

    /// Whether the taker of a granted transfer may be changed: only to the same Archive at another
    /// address, as it confirms. Call before [`Self::begin`].
    pub async fn check_taker_change(
        here: &impl LocalView,
        wish: &TransferRequest,
    ) -> Result<(), ReplicationError> {
        let peer = PeerArchive::new(&wish.to, wish.token.clone())?;
        let known = here.with_holdings(|here| {
            let (holding, _) = here.find_bare(&wish.item)?;
            let granted = here.open_grant(&holding.path)?.filter(|(_, to)| to != peer.url());
            let taker = Self::for_item(here.data(), &holding.path)?.and_then(|noted| noted.taker);
            Ok(granted.map(|(_, to)| (to, taker)))
        });
        let Some((to, taker)) = known? else { return Ok(()) };
        let held = peer.describe_object_within(TAKER_TIMEOUT, &wish.item).await?;
        match Some(held.archive) == taker {
            true => Ok(()),
            false => Err(ArchiveError::Granted { label: wish.item.clone(), to }.into()),
        }
    }

    /// Rejects confirmation of a restored Archive while the outcome of transfers that were offered
    /// at the time of the backup is unknown. A granted one continues.
    pub fn check_no_open_transfers(holdings: &Holdings) -> Result<(), ArchiveError> {
        for Self { item, to, handover, failed, .. } in Self::all(holdings.data())? {
            if holdings.is_restored() && !failed && !holdings.was_granted(&handover)? {
                return Err(ArchiveError::NotHandedOver(format!(
                    "{item} was being handed over to {to} when the backup was made, and how that ended is not known yet: put this Archive \
                     online (`ibi archive serve`), and it asks; or, if nobody can be asked any more, `ibi archive transfer {item} --cancel`"
                )));
            }
        }
        Ok(())
    }

    /// All unfinished transfers in order of name.
    pub fn all(data: &Path) -> Result<Vec<Self>, ArchiveError> {
        let folder = transfers_folder(data);
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ArchiveError::io("read", &folder)(error)),
        };
        let mut all = Vec::new();
        // Incomplete writes have another extension: those transfers were not begun.
        let entries =
            entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
        for entry in entries {
            // A transfer that is just ending may vanish; a newer format belongs to a newer program.
            let read = std::fs::read(entry.path()).ok();
            let read = read.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
            all.extend(read.filter(|transfer| transfer.format == TRANSFER_FILE_FORMAT));
        }
        all.sort_by(|a: &Self, b| a.handover.cmp(&b.handover));
        Ok(all)
    }

    /// The transfer of an item.
    pub fn for_item(data: &Path, path: &str) -> Result<Option<Self>, ArchiveError> {
        Ok(Self::all(data)?.into_iter().find(|transfer| transfer.path == path))
    }

    /// The transfer as recorded now; `None` if it was given up or replaced.
    fn current_version(data: &Path, transfer: &Self) -> Result<Option<Self>, ArchiveError> {
        let mut all = Self::all(data)?.into_iter();
        Ok(all.find(|known| known.handover == transfer.handover && !known.failed))
    }

    /// The status of a transfer, for a peer that knows its name.
    pub fn status_for_peer(
        holdings: &Holdings,
        label: &str,
        handover: &str,
    ) -> Result<TransferStatus, ArchiveError> {
        let none = TransferStatus {
            step: TransferStep::None,
            terms: None,
            taker: None,
            archive: Some(holdings.settings().service.primary().to_owned()),
            state: None,
            holder: None,
        };
        let (path, none) = match holdings.find_bare(label) {
            Ok((holding, _)) => {
                let state = Some(holding.state.name().to_owned());
                // Between grant and acknowledgment nobody has the Original.
                let is_open = holdings.open_grant(&holding.path)?.is_some();
                // A mere copy holder is not named: the caller looks for the Original.
                let holder = if is_open { None } else { holdings.original_witnesses(&holding.path)?.source };
                (holding.path, TransferStatus { state, holder, ..none })
            }
            Err(ArchiveError::Dropped { to, .. }) => return Ok(TransferStatus { holder: to, ..none }),
            Err(error) => return Err(error),
        };
        let noted = Self::for_item(holdings.data(), &path)?.filter(|transfer| transfer.handover == handover);
        let taker = noted.as_ref().and_then(|transfer| transfer.taker.clone());
        let granted =
            holdings.open_grant(&path)?.map(|(terms, _)| terms).filter(|terms| terms.handover == handover);
        if let Some(terms) = granted {
            return Ok(TransferStatus { step: TransferStep::Granted, terms: Some(terms), taker, ..none });
        }
        let offered = noted.filter(|transfer| !transfer.failed);
        Ok(match offered.and_then(|transfer| holdings.transfer_terms(label, transfer.handover).ok()) {
            Some((_, terms)) => {
                TransferStatus { step: TransferStep::Offered, terms: Some(terms), taker, ..none }
            }
            None => none,
        })
    }

    /// Whether this bearer token allows fetching the item.
    pub(crate) fn pass_allows(data: &Path, path: &str, pass: &str) -> bool {
        let transfer = Self::for_item(data, path).ok().flatten();
        transfer.is_some_and(|transfer| ibi_http::secret::digests_equal(&transfer.pass, pass))
    }

    /// Cancels a transfer that was not granted.
    pub fn cancel(holdings: &Holdings, label: &str) -> Result<(), ArchiveError> {
        if let Ok((holding, _)) = holdings.find_bare(label)
            && let Some((_, to)) = holdings.open_grant(&holding.path)?
        {
            return Err(ArchiveError::Granted { label: label.to_owned(), to });
        }
        let noted = Self::of_label(holdings, label)?;
        if let Some(over) = noted.iter().find(|transfer| transfer.is_done(holdings).unwrap_or(true)) {
            let what = format!("{label} was transferred to {}: no transfer to cancel", over.to);
            return Err(ArchiveError::NotHandedOver(what));
        }
        if noted.is_empty() {
            let what = format!("no transfer of {label} to cancel");
            return Err(ArchiveError::NotHandedOver(what));
        }
        Self::forget(holdings, label)
    }

    /// Whether the taker has acknowledged the Original.
    pub fn is_done(&self, holdings: &Holdings) -> Result<bool, ArchiveError> {
        holdings.was_acknowledged(&self.handover)
    }

    /// Ends the transfer of an item, if there is one.
    pub fn forget(holdings: &Holdings, label: &str) -> Result<(), ArchiveError> {
        Self::of_label(holdings, label)?.iter().try_for_each(|transfer| transfer.end(holdings.data()))
    }

    fn of_label(holdings: &Holdings, label: &str) -> Result<Vec<Self>, ArchiveError> {
        let path = match holdings.find_bare(label) {
            Ok((holding, _)) => holding.path,
            // The item is gone, but its transfer file may remain.
            Err(ArchiveError::Dropped { .. }) => {
                LabelKey::parse(label).map(|label| label.folded).unwrap_or_default()
            }
            Err(error) => return Err(error),
        };
        Ok(Self::all(holdings.data())?.into_iter().filter(|transfer| transfer.path == path).collect())
    }

    fn write(&self, data: &Path) -> Result<(), ArchiveError> {
        // Strings and booleans: serialization cannot fail.
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        Ok(ibi_store::small_file::replace_below(
            &data.join("service"),
            &self.transfer_file_path(data),
            &bytes,
        )?)
    }

    /// Removes the transfer file.
    pub fn end(&self, data: &Path) -> Result<(), ArchiveError> {
        let place = self.transfer_file_path(data);
        // A crash during a write may have left this.
        let _ = std::fs::remove_file(place.with_extension("new"));
        match std::fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ArchiveError::io("remove", &place)(error))
            }
            _ => Ok(()),
        }
    }

    fn transfer_file_path(&self, data: &Path) -> PathBuf {
        transfers_folder(data).join(format!("{}.json", self.handover))
    }
}

/// Removes temporary files that a crash left, since they may contain a token. Only a process with
/// write access to the Archive writes transfers, so no write is in progress.
fn remove_temporary_files(data: &Path) {
    let entries = std::fs::read_dir(transfers_folder(data)).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "new")) {
        let _ = std::fs::remove_file(entry.path());
    }
}

fn random_hex() -> Result<String, ArchiveError> {
    let mut bytes = [0; 16];
    let random = getrandom::fill(&mut bytes);
    random.map_err(|error| ArchiveError::Value(format!("the system gives no randomness: {error}")))?;
    Ok(ibi_store::digests::hex(&bytes))
}
