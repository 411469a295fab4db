//! Links between items over the API: hints from other Archives, and the operator's decisions
//! (clause 2.4).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::query_value;
use ibi_http::client::client_network;
use serde::Deserialize;
use serde_json::json;

use crate::archive::HeldItem;
use crate::links::report::{LinkHint, LinkReport};
use crate::links::{LinkDecision, LinkStatus};
use crate::service::ServiceRole;
use crate::web::api::holders::missing_field;
use crate::web::api::{archive_problem, authorize, json_body, run_site_blocking, short_json_body};
use crate::web::site::ArchiveSite;

/// The links of an item. Only operators see proposals, since nobody has agreed to them.
pub(super) fn report(site: &ArchiveSite, holding: &HeldItem, request: &Request) -> Result<Response, Problem> {
    let proposals = authorize(site, request.headers(), ServiceRole::Operator).is_ok();
    let holdings = site.desk.read().map_err(archive_problem)?;
    let report =
        LinkReport::of(&holdings, holding, site.links.receipts(), proposals).map_err(archive_problem)?;
    Ok(axum::Json(report).into_response())
}

/// A hint from any client. It changes nothing by itself: this Archive verifies the link.
pub(super) async fn hint(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let sender = client_network(site.client_address(&request));
    let (hint, _): (LinkHint, String) = short_json_body(&site, request).await?;
    let Some((older, newer)) = hint.keys() else {
        return Err(missing_field("`older` and `newer` are the labels of two items"));
    };
    let held = {
        let holdings = site.desk.read().map_err(archive_problem)?;
        let older = holdings.held_by_key(&older).map_err(archive_problem)?;
        let newer = holdings.held_by_key(&newer).map_err(archive_problem)?;
        older.is_some() || newer.is_some()
    };
    if !held {
        return Err(Problem::not_found("neither item is here"));
    }
    if !site.links.accept_hint(sender, hint) {
        return Err(Problem::unavailable("too many hints wait: try again later"));
    }
    Ok((StatusCode::ACCEPTED, axum::Json(json!({ "heard": true }))).into_response())
}

/// Schedules all links to be sent again: another Archive may have lost what it knew.
pub(super) async fn again(State(site): State<Arc<ArchiveSite>>) -> Response {
    site.links.schedule_retell();
    (StatusCode::ACCEPTED, axum::Json(json!({ "heard": true }))).into_response()
}

/// All known links.
pub(super) async fn list(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    authorize(&site, request.headers(), ServiceRole::Operator)?;
    let status = request.uri().query().and_then(|query| query_value(query, "status"));
    let status = match status.as_deref() {
        None => None,
        Some(name) => Some(link_status(name).ok_or_else(|| {
            Problem::bad_request("`status` is `proposed`, `accepted`, `refused` or `withdrawn`")
        })?),
    };
    let links = run_site_blocking(&site, move |site| {
        site.desk.read().and_then(|holdings| holdings.all_links(status)).map_err(archive_problem)
    });
    Ok(axum::Json(json!({ "links": links.await? })).into_response())
}

fn link_status(name: &str) -> Option<LinkStatus> {
    use LinkStatus::{Accepted, Proposed, Refused, Withdrawn};
    [Proposed, Accepted, Refused, Withdrawn].into_iter().find(|status| status.name() == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiLinkBody {
    newer: String,
    older: Option<String>,
}

pub(super) async fn accept(site: State<Arc<ArchiveSite>>, request: Request) -> Result<Response, Problem> {
    decide(site, request, LinkDecision::Accept).await
}

pub(super) async fn refuse(site: State<Arc<ArchiveSite>>, request: Request) -> Result<Response, Problem> {
    decide(site, request, LinkDecision::Refuse).await
}

pub(super) async fn withdraw(site: State<Arc<ArchiveSite>>, request: Request) -> Result<Response, Problem> {
    decide(site, request, LinkDecision::Withdraw).await
}

async fn decide(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
    decision: LinkDecision,
) -> Result<Response, Problem> {
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiLinkBody { newer, older }, _) = json_body(&site, request).await?;
    let decided = site
        .desk
        .with_archive(move |archive| archive.decide_link(&newer, older.as_deref(), decision, &token.name))
        .await
        .map_err(archive_problem)?;
    Ok(axum::Json(decided).into_response())
}
