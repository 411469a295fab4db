//! Replication over the API: copies, refresh, repair and transfers between Archives.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::query_value;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ArchiveError;
use crate::replica::ReplicaComparison;
use crate::replica::file_repair::FileRepair;
use crate::replication::copy::{ReplicaSource, replicate_item};
use crate::replication::messages::TransferMessage;
use crate::replication::outgoing_transfer::{OutgoingTransfer, TransferRequest};
use crate::replication::peer::{PeerArchive, PeerError};
use crate::replication::repair::{self, PeerCandidate};
use crate::replication::{ReplicationError, custody_json, resolver};
use crate::service::ServiceRole;
use crate::web::api::{archive_problem, authorize, json_body};
use crate::web::site::ArchiveSite;

/// A replication action on an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiReplicationAction {
    Copy,
    Refresh,
    Drop,
    Transfer,
    Handover,
    Audit,
}

impl ApiReplicationAction {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "copy" => ApiReplicationAction::Copy,
            "refresh" => ApiReplicationAction::Refresh,
            "drop" => ApiReplicationAction::Drop,
            "transfer" => ApiReplicationAction::Transfer,
            "handover" => ApiReplicationAction::Handover,
            "audit" => ApiReplicationAction::Audit,
            _ => return None,
        })
    }
}

pub(super) async fn post(
    site: Arc<ArchiveSite>,
    label: String,
    between: ApiReplicationAction,
    request: Request,
) -> Result<Response, Problem> {
    match between {
        ApiReplicationAction::Copy => copy(site, label, request).await,
        ApiReplicationAction::Refresh => refresh(site, label, request).await,
        ApiReplicationAction::Drop => drop_copy(site, label, request).await,
        ApiReplicationAction::Transfer => transfer(site, label, request).await,
        ApiReplicationAction::Handover => handover(site, label, request).await,
        ApiReplicationAction::Audit => audit(site, label, request).await,
    }
}

/// Another Archive, and the token for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `from`, the URL of an Archive")]
struct ApiReplicaBody {
    from: Option<String>,
    token: Option<String>,
    #[serde(default)]
    overwrite: bool,
}

/// Copies an item from another Archive, or updates an existing copy.
async fn copy(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiReplicaBody { from, token: theirs, overwrite }, _) = json_body(&site, request).await?;
    let from = from.ok_or_else(|| missing_field("`from` is required: the URL of the source Archive"))?;
    let peer = PeerArchive::new(&from, theirs).map_err(|error| holder_problem(error.into()))?;
    replicate_from(&site, &label, ReplicaSource { overwrite, ..ReplicaSource::new(peer) }, &token.name).await
}

/// Refreshes a copy from its source or from another Archive.
async fn refresh(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiReplicaBody { from, token: theirs, overwrite }, _) = json_body(&site, request).await?;
    let source = {
        let holdings = site.desk.read().map_err(archive_problem)?;
        let (holding, _) = holdings.find(&label).map_err(archive_problem)?;
        holdings.replica_source(&holding.path).map_err(archive_problem)?
    };
    let word = from.is_some();
    let from = from.or(source).ok_or_else(|| {
        Problem::conflict(format!(
            "{label} did not come from another Archive: `from` is required, the URL of the source Archive"
        ))
    })?;
    let peer = PeerArchive::new(&from, theirs).map_err(|error| holder_problem(error.into()))?;
    replicate_from(
        &site,
        &label,
        ReplicaSource { overwrite, word, thorough: true, follows: !word, ..ReplicaSource::new(peer) },
        &token.name,
    )
    .await
}

async fn replicate_from(
    site: &Arc<ArchiveSite>,
    label: &str,
    source: ReplicaSource,
    by: &str,
) -> Result<Response, Problem> {
    let (found, brought) = replicate_item(&site.desk, &source, label, by).await.map_err(holder_problem)?;
    let told =
        json!({ "item": label, "source": source.peer.url(), "found": found.name(), "brought": brought });
    let status = match found {
        ReplicaComparison::New => StatusCode::CREATED,
        _ if brought => StatusCode::OK,
        ReplicaComparison::Altered
        | ReplicaComparison::Beyond
        | ReplicaComparison::Conflict
        | ReplicaComparison::Lacking => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    };
    Ok((status, axum::Json(told)).into_response())
}

/// Drops a copy.
async fn drop_copy(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object, with a `reason` if there is one")]
    struct ApiDropBody {
        reason: Option<String>,
    }
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiDropBody { reason }, _) = json_body(&site, request).await?;
    let (asked, by) = (label.clone(), token.name);
    site.desk
        .with_archive(move |archive| archive.drop_copy(&asked, &by, reason))
        .await
        .map_err(archive_problem)?;
    Ok(axum::Json(json!({ "item": label, "dropped": true })).into_response())
}

/// Starts or cancels a transfer, or declares its taker destroyed.
async fn transfer(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object with `to`, the URL of an Archive")]
    struct ApiTransferBody {
        to: Option<String>,
        token: Option<String>,
        keep: Option<ApiTransferKeep>,
        #[serde(default)]
        taker_destroyed: bool,
        #[serde(default)]
        cancel: bool,
    }
    #[derive(Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum ApiTransferKeep {
        Copy,
        Nothing,
    }
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiTransferBody { to, token: theirs, keep, taker_destroyed, cancel }, _) =
        json_body(&site, request).await?;
    let by = token.name;
    match to {
        Some(to) if !taker_destroyed && !cancel => {
            let keep = keep != Some(ApiTransferKeep::Nothing);
            let wish = TransferRequest { item: label.clone(), to, token: theirs, keep, by };
            OutgoingTransfer::check_taker_change(&*site.desk, &wish).await.map_err(holder_problem)?;
            let now = site.now_text();
            let begun = site
                .desk
                .with_archive(move |archive| Ok(OutgoingTransfer::begin(archive.holdings(), wish, now)));
            begun.await.map_err(archive_problem)?.map_err(holder_problem)?;
            Ok((StatusCode::ACCEPTED, axum::Json(transfer_status(&site, &label)?)).into_response())
        }
        None if taker_destroyed != cancel => {
            let asked = label.clone();
            site.desk
                .with_archive(move |archive| match cancel {
                    true => OutgoingTransfer::cancel(archive.holdings(), &asked),
                    false => archive
                        .reclaim_original(&asked, &by)
                        .and_then(|()| OutgoingTransfer::forget(archive.holdings(), &asked)),
                })
                .await
                .map_err(archive_problem)?;
            Ok(axum::Json(transfer_status(&site, &label)?).into_response())
        }
        _ => Err(missing_field(
            "one of `to` (the URL of the taker), `taker_destroyed` and `cancel` is \
            required",
        )),
    }
}

/// The state of a transfer.
pub(super) fn get_transfer(site: &ArchiveSite, label: &str, request: &Request) -> Result<Response, Problem> {
    authorize(site, request.headers(), ServiceRole::Operator)?;
    Ok(axum::Json(transfer_status(site, label)?).into_response())
}

fn transfer_status(site: &ArchiveSite, label: &str) -> Result<Value, Problem> {
    let holdings = site.desk.read().map_err(archive_problem)?;
    custody_json(&holdings, label).map_err(archive_problem)
}

/// Lets a taker confirm what it was told. The transfer's name is the only credential: it is long
/// and random.
pub(super) fn get_handover(site: &ArchiveSite, label: &str, request: &Request) -> Result<Response, Problem> {
    let name = request.uri().query().and_then(|query| query_value(query, "name"));
    let name = name.ok_or_else(|| Problem::bad_request("`name` is required: the name of the transfer"))?;
    let holdings = site.desk.read().map_err(archive_problem)?;
    Ok(axum::Json(OutgoingTransfer::status_for_peer(&holdings, label, &name).map_err(archive_problem)?)
        .into_response())
}

/// Handles a message from a giver.
async fn handover(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    let token = authorize(&site, request.headers(), ServiceRole::Holder)?;
    let (message, _): (TransferMessage, String) = json_body(&site, request).await?;
    let answer =
        site.taking.answer_giver(&site.desk, label, message, &token.name).await.map_err(holder_problem)?;
    Ok(axum::Json(answer).into_response())
}

/// Compares an item with the replicas of other holders and repairs local damage.
async fn audit(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object with `with`, URLs of Archives")]
    struct ApiAuditBody {
        #[serde(default)]
        with: Vec<String>,
        resolver: Option<String>,
        token: Option<String>,
        #[serde(default)]
        repair: bool,
    }
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiAuditBody { with, resolver: known_by, token: theirs, repair }, _) =
        json_body(&site, request).await?;
    if theirs.is_some() && (with.len() > 1 || known_by.is_some()) {
        return Err(missing_field(repair::ONE_TOKEN_MESSAGE));
    }
    let asked = with.iter().map(|url| PeerArchive::new(url, theirs.clone()).map(PeerCandidate::from));
    let mut asked = asked.collect::<Result<Vec<_>, _>>().map_err(|error| holder_problem(error.into()))?;
    let (desk, by) = (&site.desk, token.name);
    if let Some(known_by) = known_by {
        asked.extend(resolver::find_holders(&**desk, &known_by, &label).await.map_err(holder_problem)?);
    }
    let compared =
        repair::compare_with_peers(&**desk, desk.data(), &label, asked, theirs, repair, &|_| ()).await;
    let compared = compared.map_err(holder_problem)?;
    let repairs: Vec<FileRepair> = compared.repairs;
    let path = compared.path.clone();
    if !repairs.is_empty() {
        desk.with_archive(move |archive| archive.apply_repairs(&path, &repairs, &by))
            .await
            .map_err(archive_problem)?;
    }
    Ok(axum::Json(&compared.report).into_response())
}

/// A well-formed body that lacks a required field.
pub(super) fn missing_field(what: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", "Rejected by Archive rules", what)
}

/// The response for a replication error.
pub(super) fn holder_problem(error: ReplicationError) -> Problem {
    match error {
        ReplicationError::Archive(ArchiveError::NoHandover { no, label }) => {
            let (kind, title) = no.kind();
            let error = ArchiveError::NoHandover { no, label };
            Problem::new(StatusCode::CONFLICT, kind, title, error.to_string())
        }
        ReplicationError::Archive(ArchiveError::NotHandedOver(what)) => {
            let title = "the item cannot be taken: the operator of the taker sees why in its log";
            Problem::new(StatusCode::CONFLICT, "not-taken", title, what)
        }
        ReplicationError::Archive(error @ (ArchiveError::Granted { .. } | ArchiveError::Restored)) => {
            Problem::conflict(error.to_string())
        }
        ReplicationError::Archive(error) => archive_problem(error),
        ReplicationError::Peer(
            error @ (PeerError::Url { .. } | PeerError::BadToken { .. } | PeerError::OneToken { .. }),
        ) => missing_field(&error.to_string()),
        ReplicationError::Peer(error) => other_archive_problem(&error),
        ReplicationError::Fetch(error) => other_archive_problem(&error),
        error @ ReplicationError::NotItsSource { .. } => Problem::conflict(error.to_string()),
        error @ ReplicationError::Itself { .. } => missing_field(&error.to_string()),
    }
}

fn other_archive_problem(error: &dyn std::error::Error) -> Problem {
    // No server error: this Archive has not failed.
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Problem::new(status, "other-archive", "The other Archive", error.to_string())
}
