//! Drives outgoing transfers step by step, each from durable state, until they finish.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::OutgoingTransfer;
use crate::engine::ArchiveEngine;
use crate::object::short_digest;
use crate::replica::ReplicaComparison;
use crate::replication::ReplicationError;
use crate::replication::copy::{ReplicaSource, replicate_item};
use crate::replication::messages::{TransferMessage, TransferMessageKind, TransferReply};
use crate::replication::peer::{PeerArchive, PeerError};
use crate::transfer_protocol::{TransferDenied, TransferTerms};
use crate::{ArchiveError, item_view};
use ibi_store::journal::State;

/// Retry delay, first and maximum.
const FIRST_TRANSFER_RETRY_DELAY: Duration = Duration::from_millis(200);
const MAX_TRANSFER_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Maximum size of the history sent with a grant.
const MAX_GRANT_HISTORY_BYTES: usize = 1 << 20;

/// Interval of polling for transfers recorded by other processes.
const TRANSFER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The state of a transfer after a step.
enum TransferProgress {
    /// Continue at once.
    Continue,
    /// Wait for the taker, for this reason.
    Waiting(String),
    /// Finished.
    Done,
}

/// Drives all transfers of an Archive that is online at a URL. Never returns.
pub async fn drive_transfers(desk: Arc<ArchiveEngine>, own: String) {
    let mut busy: HashMap<String, tokio::task::JoinHandle<()>> = HashMap::new();
    loop {
        busy.retain(|_, task| !task.is_finished());
        let all = OutgoingTransfer::all(desk.data()).unwrap_or_default();
        for transfer in all.into_iter().filter(|transfer| !transfer.failed) {
            let (desk, own) = (Arc::clone(&desk), own.clone());
            let name = transfer.handover.clone();
            busy.entry(name).or_insert_with(|| tokio::spawn(drive_transfer(desk, own, transfer)));
        }
        tokio::time::sleep(TRANSFER_POLL_INTERVAL).await;
    }
}

async fn drive_transfer(desk: Arc<ArchiveEngine>, own: String, transfer: OutgoingTransfer) {
    let mut wait = FIRST_TRANSFER_RETRY_DELAY;
    loop {
        // An operator may have updated or ended it.
        let known = OutgoingTransfer::current_version(desk.data(), &transfer).ok().flatten();
        let Some(mut transfer) = known else { return };
        let said = match run_step(&desk, &own, &transfer).await {
            Ok(TransferProgress::Done) => return,
            Ok(TransferProgress::Continue) => {
                wait = FIRST_TRANSFER_RETRY_DELAY;
                None
            }
            Ok(TransferProgress::Waiting(why)) => Some(why),
            Err(error) => {
                transfer.failed = error.is_final() && !was_granted(&desk, &transfer);
                Some(error.to_string())
            }
        };
        if said != transfer.said || transfer.failed {
            if let Some(said) = &said {
                tracing::warn!(item = %transfer.item, to = %transfer.to, %said, "transfer pending");
            }
            transfer.said = said;
            if let Err(error) = save_progress(&desk, transfer.clone()).await {
                tracing::error!(%error, "cannot save transfer progress");
            }
        }
        if transfer.said.is_some() {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MAX_TRANSFER_RETRY_DELAY);
        }
    }
}

/// Saves the progress of a transfer. Changes that an operator made meanwhile are kept, including
/// its end.
async fn save_progress(desk: &ArchiveEngine, transfer: OutgoingTransfer) -> Result<(), ArchiveError> {
    desk.with_archive(move |archive| {
        let data = archive.holdings().data();
        match OutgoingTransfer::current_version(data, &transfer)? {
            Some(known) => {
                // A failed transfer needs no token.
                let token = known.token.clone().filter(|_| !transfer.failed);
                OutgoingTransfer { said: transfer.said, failed: transfer.failed, token, ..known }.write(data)
            }
            None => Ok(()),
        }
    })
    .await
}

fn was_granted(desk: &ArchiveEngine, transfer: &OutgoingTransfer) -> bool {
    // In doubt, assume it was granted, so that nobody gives it up.
    desk.read().and_then(|holdings| holdings.was_granted(&transfer.handover)).unwrap_or(true)
}

/// Runs one step of a transfer from durable state.
async fn run_step(
    desk: &Arc<ArchiveEngine>,
    own: &str,
    transfer: &OutgoingTransfer,
) -> Result<TransferProgress, ReplicationError> {
    let OutgoingTransfer { handover, item, path, to, by, .. } = transfer.clone();
    // The taker asks others about the Original, by the item's primary label.
    let item = desk.read()?.item(&path).map_or(item, |held| held.item.labels.primary().to_owned());
    let peer = PeerArchive::new(&to, transfer.token.clone())?;
    let message = |kind, terms: TransferTerms, history, links| TransferMessage {
        message: kind,
        terms,
        from: own.to_owned(),
        by: by.clone(),
        pass: Some(transfer.pass.clone()),
        history,
        links,
    };
    let granted = desk.read()?.open_grant(&path)?;
    if let Some((terms, _)) = granted.filter(|(terms, _)| terms.handover == handover) {
        // What came before, the taker has with its copy; more than it reads would never be taken.
        let history = item_view::last_events(desk.read()?.history_for_peers(&path)?, MAX_GRANT_HISTORY_BYTES);
        let links = {
            let holdings = desk.read()?;
            holdings.link_list(&holdings.item(&path)?.item, true)?
        };
        return match send_message(&peer, &item, &message(TransferMessageKind::Grant, terms, history, links))
            .await?
        {
            TransferReply::Accepted => {
                let (label, name, at) = (item.clone(), handover.clone(), to.clone());
                let waited = desk
                    .with_archive(move |archive| archive.complete_transfer(&label, &name, &at, &by))
                    .await?;
                if !waited {
                    tracing::error!(%item, %to, "ALARM: a recipient declared lost now claims the Original; \
                        contact its operator");
                }
                Ok(TransferProgress::Continue)
            }
            TransferReply::Fetching { said } => Ok(TransferProgress::Waiting(fetching_message(&to, said))),
            TransferReply::Ready { .. } => {
                Ok(TransferProgress::Waiting(format!("{to} does not say that it has accepted")))
            }
        };
    }
    if desk.read()?.was_acknowledged(&handover)? {
        return finish(desk, transfer).await;
    }
    if desk.read()?.was_granted(&handover)? {
        // It came back from the taker, or was declared the Original, before an acknowledgment.
        transfer.end(desk.data())?;
        return Ok(TransferProgress::Done);
    }
    if desk.read()?.is_restored() {
        return settle_restored_transfer(desk, transfer, peer).await;
    }
    let (_, terms) = desk.read()?.transfer_terms(&item, handover)?;
    match send_message(
        &peer,
        &item,
        &message(TransferMessageKind::Offer, terms.clone(), Vec::new(), Vec::new()),
    )
    .await?
    {
        TransferReply::Ready { archive: None } => {
            let what = "it is ready, and does not say which Archive it is".to_owned();
            Err(PeerError::NotAnArchive { url: to, what }.into())
        }
        TransferReply::Ready { archive: taker } => {
            let transfer = transfer.clone();
            let granted = desk.with_archive(move |archive| {
                // It may have been given up while the taker was asked. Granted then, nobody would
                // go on with it.
                let data = archive.holdings().data();
                let Some(known) = OutgoingTransfer::current_version(data, &transfer)? else { return Ok(()) };
                // Durably before it is granted: only that Archive may take it.
                OutgoingTransfer { taker, ..known }.write(data)?;
                archive.grant(&item, &terms, &to, &by)
            });
            match granted.await {
                // It was changed since: it is offered again as it is now.
                Err(ArchiveError::NoHandover { no: TransferDenied::Changed, .. }) => {
                    Ok(TransferProgress::Continue)
                }
                granted => Ok(granted.map(|()| TransferProgress::Continue)?),
            }
        }
        TransferReply::Fetching { said } => Ok(TransferProgress::Waiting(fetching_message(&to, said))),
        TransferReply::Accepted => {
            let what = format!("{to} says that it has accepted what was not granted: ask its operator");
            Err(ArchiveError::Value(what).into())
        }
    }
}

/// Settles a transfer that was offered at the time of the backup: only the taker knows its outcome.
async fn settle_restored_transfer(
    desk: &Arc<ArchiveEngine>,
    transfer: &OutgoingTransfer,
    peer: PeerArchive,
) -> Result<TransferProgress, ReplicationError> {
    let OutgoingTransfer { item, by, to, path, .. } = transfer;
    let held = match peer.describe_object(item).await {
        Ok(held) => held,
        // The taker does not have it: nothing is handed over before the restored Archive is
        // confirmed.
        Err(PeerError::Unknown { given_to: None, .. }) => return Err(ArchiveError::Restored.into()),
        Err(error) => return Ok(TransferProgress::Waiting(error.to_string())),
    };
    let epoch = desk.read()?.custody_state(path)?.epoch;
    match held.state {
        State::Original if held.epoch > epoch => {
            // It was offered from here, where the Original was.
            let source = ReplicaSource { is_named: true, ..ReplicaSource::new(peer) };
            let brought = replicate_item(desk, &source, item, by).await;
            match brought {
                Ok((ReplicaComparison::Behind, true)) => {
                    transfer.end(desk.data())?;
                    Ok(TransferProgress::Done)
                }
                Ok(_) => Err(ArchiveError::Restored.into()),
                Err(error) => Ok(TransferProgress::Waiting(error.to_string())),
            }
        }
        // It had the Original and passed it on, possibly back to this Archive.
        State::Copy if held.epoch > epoch => Err(ArchiveError::NotHandedOver(format!(
            "{to} has had the Original of {item} since the backup (epoch {}), and passed it on: find out \
             which Archive has it now before running `ibi archive confirm`",
            held.epoch
        ))
        .into()),
        _ => Err(ArchiveError::Restored.into()),
    }
}

fn fetching_message(to: &str, said: Option<String>) -> String {
    // Untrusted text, limited in length.
    let said = said.map(|said| said.chars().filter(|c| !c.is_control()).take(500).collect::<String>());
    said.map_or_else(
        || format!("{to} fetches the item"),
        |said| format!("{to} could not fetch the item: {said}"),
    )
}

/// Finishes an acknowledged transfer: drops the copy unless it is kept.
async fn finish(
    desk: &Arc<ArchiveEngine>,
    transfer: &OutgoingTransfer,
) -> Result<TransferProgress, ReplicationError> {
    // If it came back or was removed meanwhile, it must not be dropped.
    let is_copy = desk.read()?.custody_state(&transfer.path)?.state == Some(State::Copy);
    if !transfer.keep && is_copy && taker_has_object(desk, transfer).await? {
        let OutgoingTransfer { item, by, to, .. } = transfer.clone();
        let note = Some(format!("handed over to {to}"));
        let dropped = desk.with_archive(move |archive| archive.drop_copy(&item, &by, note)).await;
        match dropped {
            Ok(()) | Err(ArchiveError::Dropped { .. } | ArchiveError::Unknown { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    transfer.end(desk.data())?;
    Ok(TransferProgress::Done)
}

/// Whether the taker actually serves what it accepted: the local bytes may be the last.
async fn taker_has_object(
    desk: &Arc<ArchiveEngine>,
    transfer: &OutgoingTransfer,
) -> Result<bool, ReplicationError> {
    let (own, here) = {
        let holdings = desk.read()?;
        let version = holdings.item(&transfer.path)?.version;
        let inventory = holdings.custody_state(&transfer.path)?.inventory.unwrap_or_default();
        (holdings.settings().service.clone(), (inventory, version))
    };
    let held =
        match PeerArchive::new(&transfer.to, transfer.token.clone())?.describe_object(&transfer.item).await {
            Ok(held) => Some(held),
            Err(PeerError::Unknown { .. } | PeerError::Gone { .. }) => None,
            Err(error) => return Err(error.into()),
        };
    let there = held.is_some_and(|held| {
        // An Archive that proxies this one has nothing of its own.
        let another = !own.has_label(&held.archive);
        another
            && (held.version > here.1 || (held.version == here.1 && short_digest(&held.inventory) == here.0))
    });
    if !there {
        let OutgoingTransfer { item, to, .. } = transfer;
        tracing::error!(%item, %to, "ALARM: the recipient does not serve the item that it accepted; the \
            copy here is kept");
    }
    Ok(there)
}

async fn send_message(
    peer: &PeerArchive,
    item: &str,
    message: &TransferMessage,
) -> Result<TransferReply, ReplicationError> {
    let answer = peer.post(&format!("/items/{item}/handover"), message).await?;
    serde_json::from_value(answer).map_err(|error| {
        let url = peer.url().to_owned();
        PeerError::NotAnArchive { url, what: error.to_string() }.into()
    })
}
