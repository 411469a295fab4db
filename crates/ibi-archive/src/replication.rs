//! Between Archives, over the network: copies, their refresh and repair, and the hand-over of
//! Originals (clause 2.1). What is decided and committed there is in [`crate::transfer_protocol`],
//! [`crate::custody`] and [`crate::replica`].
//!
//! - [`peer::PeerArchive`] is the client of another Archive; [`fetch`] downloads an object.
//! - [`copy`] replicates one item, [`bulk_replication`] many.
//! - [`outgoing_transfer`] gives, [`incoming_transfers`] takes, from whom [`giver_trust`] believes.
//! - [`repair`] compares with other holders, which a [`resolver`] may know.
//! - [`link_exchange`] synchronizes both ends of links.

#[cfg(feature = "web")]
pub mod bulk_replication;
#[cfg(feature = "web")]
pub mod copy;
#[cfg(feature = "web")]
pub mod fetch;
pub mod giver_trust;
#[cfg(feature = "web")]
pub mod incoming_transfers;
#[cfg(feature = "web")]
pub mod link_exchange;
#[cfg(feature = "web")]
pub mod messages;
#[cfg(feature = "web")]
pub mod original_claim;
#[cfg(feature = "web")]
pub mod orphans;
#[cfg(feature = "web")]
pub mod outgoing_transfer;
#[cfg(feature = "web")]
pub mod peer;
#[cfg(feature = "web")]
pub mod repair;
#[cfg(feature = "web")]
pub mod resolver;
#[cfg(feature = "web")]
pub mod trusted_givers;
#[cfg(feature = "web")]
mod witness_check;

/// Removes partial fetches that nobody resumed for a week; `now` is in seconds since the Unix
/// epoch.
#[cfg(feature = "web")]
pub(crate) fn remove_stale_fetches(data: &std::path::Path, now: i64) {
    const MAX_PARTIAL_FETCH_AGE_SECONDS: i64 = 7 * 86_400;
    trusted_givers::remove_old_named_givers(data, now);
    let changed = |path: &std::path::Path| {
        let changed = std::fs::metadata(path).and_then(|file| file.modified()).ok()?;
        let since = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok()
    };
    let is_old = |path: &std::path::Path| {
        changed(path).is_some_and(|changed| changed < now - MAX_PARTIAL_FETCH_AGE_SECONDS)
    };
    let entries = |path: &std::path::Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    // Files of an active fetch are not checked: there may be many.
    for folder in entries(&data.join("service/copies")).filter(|folder| is_old(&folder.path())) {
        if entries(&folder.path()).all(|file| is_old(&file.path())) {
            tracing::info!(folder = %folder.path().display(), "discarded an abandoned partial copy");
            // If this fails, the next run finds it.
            let _ = fetch::remove_fetch_folder(&folder.path());
        }
    }
}

/// An item's custody state and its transfer as JSON (`docs/formats/holders.md`).
#[cfg(feature = "web")]
pub fn custody_json(
    holdings: &crate::Holdings,
    label: &str,
) -> Result<serde_json::Value, crate::ArchiveError> {
    let path = match holdings.find(label) {
        Ok((holding, _)) => holding.path,
        Err(crate::ArchiveError::Dropped { .. }) => {
            let given_to = holdings.transfer_recipient_by_label(label)?;
            return Ok(serde_json::json!({ "item": label, "state": null, "given_to": given_to }));
        }
        Err(error) => return Err(error),
    };
    let holding = holdings.item(&path)?;
    Ok(serde_json::json!({
        "item": label,
        "state": holding.state.name(),
        "epoch": holding.epoch,
        "source": holdings.replica_source(&path)?,
        "given_to": holdings.transfer_recipient(&path)?,
        "handover": transfer_json(holdings, &path)?,
    }))
}

/// The unfinished outgoing transfer of an item as JSON.
#[cfg(feature = "web")]
pub fn transfer_json(
    holdings: &crate::Holdings,
    path: &str,
) -> Result<Option<serde_json::Value>, crate::ArchiveError> {
    let transfer = outgoing_transfer::OutgoingTransfer::for_item(holdings.data(), path)?;
    let granted = holdings.open_grant(path)?;
    let step = match (&transfer, &granted) {
        (_, Some(_)) => "granted",
        (Some(transfer), None) if transfer.failed => "failed",
        (Some(transfer), None) if transfer.is_done(holdings)? => "given",
        (Some(_), None) => "offered",
        (None, None) => return Ok(None),
    };
    Ok(Some(serde_json::json!({
        "step": step,
        "to": transfer.as_ref().map(|transfer| &transfer.to).or(granted.as_ref().map(|(_, to)| to)),
        "said": transfer.as_ref().and_then(|transfer| transfer.said.as_ref()),
    })))
}

/// Errors of an operation between Archives.
#[cfg(feature = "web")]
#[derive(Debug, thiserror::Error)]
pub enum ReplicationError {
    /// This Archive failed.
    #[error(transparent)]
    Archive(#[from] crate::ArchiveError),
    /// The other Archive failed.
    #[error(transparent)]
    Peer(#[from] peer::PeerError),
    /// A removal reported by an Archive other than the copy's source.
    #[error(
        "{url} says that {item} was removed, and the copy here came from {from}: ask that one, or, if you believe it, say `ibi archive \
         refresh {item} --from {url}`"
    )]
    NotItsSource {
        /// The item.
        item: String,
        /// The reporting Archive.
        url: String,
        /// The copy's source.
        from: String,
    },
    /// The other Archive is this one.
    #[error("{url} is this Archive itself: say where another one is that has the item")]
    Itself {
        /// Its URL.
        url: String,
    },
    /// The fetched object is invalid, or the fetch failed.
    #[error(transparent)]
    Fetch(#[from] fetch::FetchError),
}

#[cfg(feature = "web")]
impl ReplicationError {
    /// Whether a retry is pointless.
    pub fn is_final(&self) -> bool {
        match self {
            ReplicationError::Archive(error) => !error.is_temporary(),
            ReplicationError::Peer(error) => match error {
                peer::PeerError::Silent { .. } => false,
                peer::PeerError::Refused { status, .. } => *status < 500,
                _ => true,
            },
            ReplicationError::NotItsSource { .. } | ReplicationError::Itself { .. } => true,
            ReplicationError::Fetch(_) => false,
        }
    }
}
