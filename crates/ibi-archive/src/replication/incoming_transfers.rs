//! Transfers for which this Archive is the taker: fetches what is offered, and becomes the Original
//! when it is granted.

mod giver_check;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::ReplicationError;
use super::copy::{GiverName, ReplicaSource, local_path, remove_partial_fetch, replicate_item};
use super::messages::{TransferMessage, TransferMessageKind, TransferReply, TransferStatus};
use super::peer::PeerArchive;
use super::trusted_givers::forget_named_giver;
use crate::custody::TransferGiver;
use crate::engine::ArchiveEngine;
use crate::replica::ReplicaComparison;
use crate::transfer_protocol::{TakerAction, TransferDenied, TransferStep, decide_take, giver_confirms};
use crate::{ArchiveError, item, item_view};
use giver_check::{GiverDecision, check_giver, giver_name};

/// Concurrent fetches for the transfers of one token. Others start when they are offered again.
const MAX_FETCHES_PER_TOKEN: usize = 8;

/// Timeout for confirming a claim with the giver; much shorter than the giver's own timeout for our
/// reply.
const GIVER_CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of replicas remembered as verified. Others are read again in full.
const MAX_CHECKED_REPLICAS: usize = 1000;

/// Fetches in progress, and why earlier ones failed.
#[derive(Debug, Default)]
pub struct IncomingTransfers {
    /// The URL of the resolver that is asked for the holder of an Original.
    resolver: Option<String>,
    fetching: Mutex<HashMap<String, TransferFetchState>>,
    /// Replicas verified in full since the server started, per transfer.
    checked: Mutex<VecDeque<CheckedReplica>>,
}

/// A path, the transfer and the inventory it was verified for.
type CheckedReplica = (String, String, String);

#[derive(Debug, PartialEq, Eq)]
enum TransferFetchState {
    /// In progress, for this token.
    Now(String),
    /// The reason, and whether a retry is pointless.
    Failed(String, bool),
}

impl IncomingTransfers {
    /// For an Archive that finds others through a resolver.
    pub fn new(resolver: Option<String>) -> Self {
        Self { resolver, ..Self::default() }
    }

    /// Answers a giver; `token` is the name of the token that we issued to it.
    pub async fn answer_giver(
        self: &Arc<Self>,
        desk: &Arc<ArchiveEngine>,
        label: String,
        message: TransferMessage,
        token: &str,
    ) -> Result<TransferReply, ReplicationError> {
        message.check().map_err(|what| ArchiveError::Value(what.to_owned()))?;
        let path = object_path_for(desk, &label)?;
        let giver = PeerArchive::new(&message.from, None)?.url().to_owned();
        let message = TransferMessage { from: giver, ..message };
        let TransferMessage { terms, .. } = &message;
        let next = {
            let holdings = desk.read()?;
            let accepted = holdings.has_accepted(&path, &terms.handover)?;
            let next = decide_take(&holdings.custody_state(&path)?, accepted, terms);
            next.map_err(|no| holdings.transfer_denied_error(&label, &path, no))?
        };
        if next == TakerAction::Accepted {
            remove_partial_fetch(desk.data(), &path);
            forget_named_giver(desk.data(), &terms.handover);
            return Ok(TransferReply::Accepted);
        }
        // A token holder may claim anything, even of an Archive that hands nothing over.
        let giver = PeerArchive::new(&message.from, message.pass.clone())?;
        let asked = giver.transfer_status(&label, &terms.handover);
        let standing = match tokio::time::timeout(GIVER_CONFIRM_TIMEOUT, asked).await {
            Ok(Ok(standing)) => standing,
            Ok(Err(error)) => return Ok(TransferReply::Fetching { said: Some(error.to_string()) }),
            Err(_) => {
                let said = format!("{} was asked whether it hands it over, and does not answer", giver.url());
                return Ok(TransferReply::Fetching { said: Some(said) });
            }
        };
        if !status_confirms(&message, &standing) {
            // It changed since, and will be offered again.
            if message.message == TransferMessageKind::Offer && standing.step != TransferStep::None {
                return Ok(TransferReply::Fetching { said: None });
            }
            return Err(desk.read()?.transfer_denied_error(&label, &path, TransferDenied::NotGiven).into());
        }
        let own = desk.read()?.settings().service.clone();
        if standing.taker.as_ref().is_some_and(|taker| !own.has_label(taker)) {
            return Err(desk.read()?.transfer_denied_error(&label, &path, TransferDenied::NotGiven).into());
        }
        let resolver = self.resolver.as_deref();
        let (decision, is_named) = check_giver(desk, resolver, (&label, &path), &message).await?;
        match decision {
            GiverDecision::Proceed => {}
            GiverDecision::Wait(said) => return Ok(TransferReply::Fetching { said: Some(said) }),
            GiverDecision::Refuse(no) => return Err(refuse_giver(desk, (&label, &path), &message, no)?),
        }
        // "Only events of the giver itself": reports about others could be forged.
        let told = standing.archive.filter(|archive| !own.has_label(archive));
        // "The taker first holds a verified Copy" (clause 2.1): a record of one is not enough.
        // Damaged files are fetched again.
        if next == TakerAction::Fetch || !self.is_checked(&checked_replica(&path, &message)) {
            let name = giver_name(resolver, &message.from, told).await;
            return self.fetch(desk, (label, path), message, (name, is_named), token);
        }
        match giver_check::check_other_names(desk, resolver, &path, &message).await? {
            GiverDecision::Proceed => {}
            GiverDecision::Wait(said) => return Ok(TransferReply::Fetching { said: Some(said) }),
            GiverDecision::Refuse(no) => return Err(refuse_giver(desk, (&label, &path), &message, no)?),
        }
        // Everything is here: remove what a crash left of the fetch, since no later fetch will.
        remove_partial_fetch(desk.data(), &path);
        match message.message {
            TransferMessageKind::Offer => {
                Ok(TransferReply::Ready { archive: Some(own.primary().to_owned()) })
            }
            TransferMessageKind::Grant => {
                let name = giver_name(resolver, &message.from, told).await;
                self.accept(desk, (label, path), message, (name, is_named), token).await
            }
        }
    }

    async fn accept(
        self: &Arc<Self>,
        desk: &Arc<ArchiveEngine>,
        (label, path): (String, String),
        message: TransferMessage,
        (name, is_named): (Option<GiverName>, bool),
        token: &str,
    ) -> Result<TransferReply, ReplicationError> {
        let by = format!("{} ({token})", message.by);
        let handover = message.terms.handover.clone();
        let (asked, said, place) = (label.clone(), message.clone(), path.clone());
        let own_events = name.clone();
        let taken = desk.with_archive(move |archive| {
            let events = own_events.map_or(Vec::new(), |name| name.own_events(said.history));
            let past = item_view::unseen_history(archive.holdings(), &place, events)?;
            let given = TransferGiver { url: &said.from, by: &by, past, links: said.links };
            archive.accept(&asked, &said.terms, &given)
        });
        match taken.await? {
            TakerAction::Accepted | TakerAction::Accept => {
                forget_named_giver(desk.data(), &handover);
                Ok(TransferReply::Accepted)
            }
            TakerAction::Fetch => self.fetch(desk, (label, path), message, (name, is_named), token),
        }
    }

    fn is_checked(&self, what: &CheckedReplica) -> bool {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).contains(what)
    }

    /// Fetches an item in the background, or verifies every local byte, unless that is in progress.
    fn fetch(
        self: &Arc<Self>,
        desk: &Arc<ArchiveEngine>,
        (label, path): (String, String),
        message: TransferMessage,
        (giver_name, is_named): (Option<GiverName>, bool),
        token: &str,
    ) -> Result<TransferReply, ReplicationError> {
        let checked = checked_replica(&path, &message);
        let peer = PeerArchive::new(&message.from, message.pass)?;
        let mut known = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let said = match known.get(&label) {
            Some(TransferFetchState::Now(_)) => return Ok(TransferReply::Fetching { said: None }),
            // Before the grant, this ends the transfer. After it, the giver keeps asking, and an
            // operator may have fixed the cause.
            Some(TransferFetchState::Failed(said, true)) if message.message == TransferMessageKind::Offer => {
                let said = ArchiveError::NotHandedOver(format!("{label} cannot be taken: {said}"));
                known.remove(&label);
                return Err(said.into());
            }
            Some(TransferFetchState::Failed(said, _)) => Some(said.clone()),
            None => None,
        };
        let mine =
            |fetching: &&TransferFetchState| matches!(fetching, TransferFetchState::Now(by) if by == token);
        if known.values().filter(mine).count() >= MAX_FETCHES_PER_TOKEN {
            return Ok(TransferReply::Fetching { said: Some("it fetches others first".to_owned()) });
        }
        known.retain(|_, fetching| matches!(fetching, TransferFetchState::Now(_)));
        known.insert(label.clone(), TransferFetchState::Now(token.to_owned()));
        let (taking, desk, by) = (Arc::clone(self), Arc::clone(desk), token.to_owned());
        tokio::spawn(async move {
            let source = ReplicaSource {
                gives: true,
                is_named,
                thorough: true,
                giver_name,
                ..ReplicaSource::new(peer)
            };
            let brought = replicate_item(&desk, &source, &label, &by).await;
            let failed = match brought {
                Ok((ReplicaComparison::New | ReplicaComparison::Behind | ReplicaComparison::Equal, _)) => {
                    None
                }
                Ok((other, _)) => {
                    let said = format!(
                        "the recipient's own copy is {}, and is not overwritten automatically: its operator \
                         can run `ibi archive refresh {label} --overwrite`, or the giver can cancel the transfer (`--cancel`)",
                        other.name()
                    );
                    Some((said, false))
                }
                Err(error) => Some((
                    error.to_string(),
                    matches!(error, ReplicationError::Archive(_)) && error.is_final(),
                )),
            };
            let mut known = taking.fetching.lock().unwrap_or_else(PoisonError::into_inner);
            match failed {
                None => {
                    known.remove(&label);
                    let mut all = taking.checked.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push_front(checked);
                    all.truncate(MAX_CHECKED_REPLICAS);
                }
                Some((said, is_final)) => {
                    tracing::warn!(item = %label, %said, "cannot fetch what is handed over");
                    known.insert(label, TransferFetchState::Failed(said, is_final));
                }
            }
        });
        Ok(TransferReply::Fetching { said })
    }
}

/// Refuses a doubted giver: the peer gets only the problem type, the local operator the full
/// reason.
fn refuse_giver(
    desk: &ArchiveEngine,
    (label, path): (&str, &str),
    message: &TransferMessage,
    no: TransferDenied,
) -> Result<ReplicationError, ReplicationError> {
    let error = desk.read()?.transfer_denied_error(label, path, no);
    tracing::warn!(item = %label, giver = %message.from, by = %message.by, %error, "a hand-over is refused");
    Ok(error.into())
}

fn checked_replica(path: &str, TransferMessage { terms, .. }: &TransferMessage) -> CheckedReplica {
    (path.to_owned(), terms.handover.clone(), terms.inventory.clone())
}

/// Whether an Archive's own answer matches a message.
fn status_confirms(message: &TransferMessage, standing: &TransferStatus) -> bool {
    let granted = message.message == TransferMessageKind::Grant;
    giver_confirms(granted, &message.terms, standing.step, standing.terms.as_ref())
}

/// The path of a label's item, whether or not it exists here.
fn object_path_for(desk: &ArchiveEngine, label: &str) -> Result<String, ArchiveError> {
    if let Some(path) = local_path(&*desk.read()?, label)? {
        return Ok(path);
    }
    let spelling = item::LabelKey::parse(label);
    let spelling =
        spelling.map_err(|error| ArchiveError::Label { label: label.escape_debug().to_string(), error })?;
    Ok(spelling.folded)
}
