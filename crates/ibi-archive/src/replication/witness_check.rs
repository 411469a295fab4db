//! Determines how far the claims of an item's source are trusted, by asking the known witness
//! (`original_witness.rs`).

use std::time::Duration;

use ibi_store::journal::State;

use super::copy::{LocalView, ReplicaSource};
use super::peer::PeerArchive;
use crate::ArchiveError;
use crate::replica::object_description::ObjectDescription;
use crate::replica::original_witness::SourceStanding;

/// Timeout for a witness and the Archives it names.
const WITNESS_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of hops from a witness to the next Archive that it names.
const MAX_WITNESS_STEPS: usize = 5;

/// A name that no transfer has: only the item's holder is of interest.
const NO_HANDOVER: &str = "none";

/// Determines how far the claims of an item's source are trusted.
pub(super) async fn find_standing(
    here: &impl LocalView,
    source: &ReplicaSource,
    (peer, held): (&PeerArchive, &ObjectDescription),
) -> Result<SourceStanding, ArchiveError> {
    let (witness, is_known) = here.with_holdings(|here| {
        Ok((here.original_witnesses(&held.path)?.source, here.records.last_event(&held.path)?.is_some()))
    })?;
    let is_witness = witness.as_deref() == Some(peer.url());
    // A witness that no longer has the item redirects to the Archive it handed it over to.
    let is_followed = source.follows && witness.as_deref() == Some(source.peer.url());
    let proven = match held.state {
        State::Original if is_witness || is_followed || source.is_named => true,
        State::Original => match &witness {
            Some(witness) => is_named_by(witness, &held.item, peer.url()).await,
            None if !source.gives && !is_known => return Ok(SourceStanding::FirstSource),
            None => false,
        },
        // It granted the item to us.
        State::Copy => source.gives && (is_witness || source.is_named),
        // The holder of the Original at its removal still decides about links to it.
        State::Deleted => is_witness || is_followed,
    };
    Ok(match proven {
        true => SourceStanding::Witness,
        // The giver was checked before anything is fetched from it.
        false if source.gives => SourceStanding::TrustedGiver,
        false => SourceStanding::Unproven,
    })
}

/// Whether a witness, or one that it names, says that it handed an item over to the Archive at a
/// URL.
async fn is_named_by(witness: &str, label: &str, url: &str) -> bool {
    let asked = async {
        let mut at = witness.to_owned();
        for _ in 0..MAX_WITNESS_STEPS {
            let peer = PeerArchive::new(&at, None).ok()?;
            let standing = peer.transfer_status(label, NO_HANDOVER).await.ok()?;
            if !matches!(standing.state.as_deref().map(State::parse), None | Some(Some(State::Copy))) {
                return None;
            }
            at = standing.holder?;
            if at == url {
                return Some(());
            }
        }
        None
    };
    tokio::time::timeout(WITNESS_TIMEOUT, asked).await.ok().flatten().is_some()
}
