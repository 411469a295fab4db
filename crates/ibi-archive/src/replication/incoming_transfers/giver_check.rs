//! Gathers a taker's evidence about a giver from third parties (clause 2.1); `giver_trust.rs`
//! decides.

use std::time::Duration;

use ibi_id::Label;
use ibi_store::journal::State;

use super::status_confirms;
use crate::deposit::has_own_prefix;
use crate::engine::ArchiveEngine;
use crate::label_prefix::prefix_of;
use crate::replication::ReplicationError;
use crate::replication::copy::GiverName;
use crate::replication::giver_trust::{
    GiverEvidence, GiverTrust, OperatorTrust, OriginalTestimony, decide_giver_trust,
};
use crate::replication::messages::{TransferMessage, TransferMessageKind};
use crate::replication::peer::{PeerArchive, PeerError};
use crate::replication::resolver;
use crate::replication::trusted_givers::{NamedGiver, TrustedGiver};
use crate::transfer_protocol::TransferDenied;

/// Timeout for asking a copy's source and the Archives it names; much shorter than the giver's own
/// timeout for our reply.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for a resolver, which asks all Archives, twice if nobody claims the Original.
const RESOLVER_TIMEOUT: Duration = Duration::from_secs(25);

/// Maximum number of other names that are checked; an item with more needs the operator's trust.
const MAX_OTHER_LABELS: usize = 100;

/// Maximum number of hops from one Archive to the next that it names.
const MAX_NAMED_HOLDERS: usize = 5;

/// What a taker does with a giver's request.
pub(super) enum GiverDecision {
    /// The giver is believed: go on.
    Proceed,
    /// The giver is doubted: the transfer is denied.
    Refuse(TransferDenied),
    /// Not clear yet.
    Wait(String),
}

/// A testimony, and why it is unclear if a retry may help.
struct TestimonyFinding {
    says: OriginalTestimony,
    later: Option<String>,
}

impl TestimonyFinding {
    const fn clear(says: OriginalTestimony) -> Self {
        Self { says, later: None }
    }

    const fn unclear(later: Option<String>) -> Self {
        Self { says: OriginalTestimony::Unclear, later }
    }
}

/// Finds out whether a giver has the Original, from the Archive that the item was granted to or
/// came from, and from the resolver. Also returns whether one of them names the giver; the
/// operator's trust does not count as naming.
pub(super) async fn check_giver(
    desk: &ArchiveEngine,
    resolver: Option<&str>,
    (label, path): (&str, &str),
    message: &TransferMessage,
) -> Result<(GiverDecision, bool), ReplicationError> {
    let (granted, witnesses) = {
        let holdings = desk.read()?;
        (holdings.open_grant(path)?.map(|(_, to)| to), holdings.original_witnesses(path)?)
    };
    let is_granted = granted.is_some();
    let knows = granted.or(witnesses.source);
    let ask = async |knows: Option<&String>| match knows {
        Some(knows) => Some(ask_source(knows, label, message).await),
        None => None,
    };
    let asked = async {
        match resolver.filter(|_| !is_granted) {
            Some(resolver) => Some(ask_resolver(desk, resolver, label, message).await),
            None => None,
        }
    };
    // A copy fetched from the giver on the operator's trust alone is no evidence.
    let is_own_word = |url: &String| *url == message.from && !witnesses.came_from_copy;
    let copy_holder = witnesses.copy_holder.filter(|url| !is_granted && !is_own_word(url));
    let (source, copy_holder, resolver) = tokio::join!(ask(knows.as_ref()), ask(copy_holder.as_ref()), asked);
    let handover = &message.terms.handover;
    let mut noted = NamedGiver::read(desk.data(), handover, (path, &message.from));
    let evidence = GiverEvidence {
        is_granted,
        source: source.as_ref().map(|found| found.says),
        copy_holder: copy_holder.as_ref().map(|found| found.says),
        resolver: resolver.as_ref().map(|found| found.says),
        was_named: noted.named,
        word: TrustedGiver::operator_trust(desk.data(), &message.from, path)?,
        is_promised_to_another: TrustedGiver::is_another_trusted(desk.data(), &message.from, path)?,
    };
    let trust = decide_giver_trust(&evidence);
    let is_source = knows.as_deref() == Some(message.from.as_str());
    let is_named = evidence.names_giver();
    // Record it before replying that we are ready: after the grant nobody has the Original, so
    // nobody is named.
    let is_new =
        message.message == TransferMessageKind::Offer && is_named && !is_source && !evidence.was_named;
    if trust == GiverTrust::Believed && is_new {
        noted.named = true;
        noted.save_note(desk.data(), handover)?;
    }
    let later = || [&source, &resolver].into_iter().flatten().find_map(|found| found.later.clone());
    let decision = match trust {
        GiverTrust::Believed => GiverDecision::Proceed,
        GiverTrust::Refused(no) => GiverDecision::Refuse(no),
        GiverTrust::Unconfirmed if is_granted => {
            let knows = knows.unwrap_or_default();
            GiverDecision::Wait(format!("it was granted to {knows}, which has not answered"))
        }
        GiverTrust::Unconfirmed => match later() {
            Some(why) => GiverDecision::Wait(format!(
                "the claim of {} to the Original is unconfirmed: {why}. If it stays unconfirmed, the \
                 recipient's operator can run `ibi archive givers trust {} {label}`",
                message.from, message.from
            )),
            None => GiverDecision::Refuse(TransferDenied::Unconfirmed),
        },
    };
    Ok((decision, is_named || noted.named))
}

/// Whether the other names of an offered item are doubtful: the taker would answer for them from
/// then on. A name of an Original elsewhere, or of a removed item, is never taken.
///
/// Names are checked at the offer, and the result is recorded: after the grant nobody has the
/// Original, and an offline Archive would block the transfer. They are checked again at the grant
/// only if no result is recorded for exactly these names, since a giver may grant what it never
/// offered.
pub(super) async fn check_other_names(
    desk: &ArchiveEngine,
    resolver: Option<&str>,
    path: &str,
    message: &TransferMessage,
) -> Result<GiverDecision, ReplicationError> {
    let (handover, inventory) = (&message.terms.handover, &message.terms.inventory);
    let mut noted = NamedGiver::read(desk.data(), handover, (path, &message.from));
    if noted.names.as_ref() == Some(inventory) {
        return Ok(GiverDecision::Proceed);
    }
    let word = TrustedGiver::operator_trust(desk.data(), &message.from, path)?;
    let (primary, labels): (String, Vec<String>) = {
        let held = desk.read()?.item(path)?.item;
        let names = held.labels.iter().skip(1).chain(held.metadata.iter());
        let names = names.map(str::to_owned).chain(held.aliases.iter().cloned()).collect();
        (held.labels.primary().to_owned(), names)
    };
    let Some(resolver) = resolver else {
        let minter = ibi_mint::read_state(desk.data()).map_err(crate::ArchiveError::from)?;
        let is_minted_here =
            |label: &String| Label::parse(label).is_ok_and(|label| has_own_prefix(&minter.subsystem, &label));
        // Minted under the item's own prefix, and the giver is known to have the item's Original.
        let is_of_item = |label: &String| {
            let prefix = prefix_of(label);
            prefix.is_some() && prefix == prefix_of(&primary)
        };
        let is_known = |label: &String| is_of_item(label) || is_minted_here(label);
        let is_known = word != OperatorTrust::Silent || labels.iter().all(is_known);
        return Ok(if is_known {
            GiverDecision::Proceed
        } else {
            GiverDecision::Refuse(TransferDenied::NamesUnconfirmed)
        });
    };
    if labels.len() > MAX_OTHER_LABELS && word != OperatorTrust::Item {
        return Ok(GiverDecision::Refuse(TransferDenied::ManyNames));
    }
    for label in labels.iter().take(MAX_OTHER_LABELS) {
        let found = ask_resolver(desk, resolver, label, message).await;
        if matches!(found.says, OriginalTestimony::Elsewhere | OriginalTestimony::Removed) {
            tracing::warn!(%label, giver = %message.from, "a name of what is handed over is that of another item");
            return Ok(GiverDecision::Refuse(TransferDenied::NameElsewhere));
        }
        // If all have answered and nobody has it, the name is free.
        if let Some(why) = found.later.filter(|_| word != OperatorTrust::Item) {
            return Ok(GiverDecision::Wait(format!(
                "its other label {label} is unconfirmed: {why}. If it stays unconfirmed, the recipient's \
                 operator can run `ibi archive givers trust {} IBI` for this item",
                message.from
            )));
        }
    }
    if message.message == TransferMessageKind::Offer {
        noted.names = Some(inventory.clone());
        noted.save_note(desk.data(), handover)?;
    }
    Ok(GiverDecision::Proceed)
}

/// Asks the Archive that should know, and those that it names, until one has the Original or is the
/// giver.
async fn ask_source(knows: &str, label: &str, message: &TransferMessage) -> TestimonyFinding {
    if knows == message.from {
        return TestimonyFinding::clear(OriginalTestimony::Giver);
    }
    let asked = tokio::time::timeout(SOURCE_TIMEOUT, follow_named_holders(knows, label, message)).await;
    asked.unwrap_or_else(|_| TestimonyFinding::unclear(Some(format!("the witness {knows} does not answer"))))
}

async fn follow_named_holders(knows: &str, label: &str, message: &TransferMessage) -> TestimonyFinding {
    let mut at = knows.to_owned();
    for _ in 0..MAX_NAMED_HOLDERS {
        let standing = match PeerArchive::new(&at, None) {
            Ok(peer) => peer.transfer_status(label, &message.terms.handover).await,
            Err(error) => Err(error),
        };
        let standing = match standing {
            Ok(standing) => standing,
            Err(PeerError::Gone { .. }) => return TestimonyFinding::clear(OriginalTestimony::Removed),
            Err(error) => {
                let error = ReplicationError::from(error);
                return TestimonyFinding::unclear((!error.is_final()).then(|| error.to_string()));
            }
        };
        // It may be the giver itself, at another address.
        if status_confirms(message, &standing) {
            return TestimonyFinding::clear(OriginalTestimony::Giver);
        }
        match standing.state.as_deref().map(State::parse) {
            Some(Some(State::Original)) => return TestimonyFinding::clear(OriginalTestimony::Elsewhere),
            Some(Some(State::Deleted)) => return TestimonyFinding::clear(OriginalTestimony::Removed),
            Some(Some(State::Copy)) | None => {}
            Some(None) => return TestimonyFinding::unclear(None),
        }
        match standing.holder {
            Some(next) if next == message.from => return TestimonyFinding::clear(OriginalTestimony::Giver),
            Some(next) => at = next,
            None => return TestimonyFinding::unclear(None),
        }
    }
    TestimonyFinding::unclear(None)
}

async fn ask_resolver(
    desk: &ArchiveEngine,
    resolver: &str,
    label: &str,
    message: &TransferMessage,
) -> TestimonyFinding {
    let asked = async {
        let found = resolver::ask_testimony(desk, resolver, label, &message.from).await?;
        // The claimant may be the giver, at an address that the resolver does not know.
        if let Some(claims) = &found.claims
            && let Ok(standing) = claims.transfer_status(label, &message.terms.handover).await
            && status_confirms(message, &standing)
        {
            return Ok(TestimonyFinding::clear(OriginalTestimony::Giver));
        }
        let later = found.unclear.filter(|(_, is_transient)| *is_transient).map(|(why, _)| why);
        Ok::<_, ReplicationError>(TestimonyFinding { says: found.says, later })
    };
    match tokio::time::timeout(RESOLVER_TIMEOUT, asked).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => TestimonyFinding::unclear(Some(error.to_string())),
        Err(_) => TestimonyFinding::unclear(Some(format!("the resolver {resolver} does not answer"))),
    }
}

/// The name under which the giver's events are recorded.
pub(super) async fn giver_name(
    resolver: Option<&str>,
    giver: &str,
    told: Option<String>,
) -> Option<GiverName> {
    let told = told?;
    let known = match resolver {
        None => Some(told.clone()),
        Some(resolver) => {
            let asked = tokio::time::timeout(
                SOURCE_TIMEOUT,
                resolver::registered_name(resolver, giver, told.clone()),
            );
            // Without an answer nobody vouches for the name.
            asked.await.ok().and_then(Result::ok).flatten()
        }
    };
    let told_by = resolver.is_none().then(|| giver.to_owned());
    known.map(|known| GiverName { told, known, told_by })
}
