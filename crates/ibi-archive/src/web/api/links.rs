//! Links between items over the API: hints from other Archives, and the operator's decisions (clause 2.4).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::value;
use serde::Deserialize;
use serde_json::json;

use crate::archive::Holding;
use crate::links::report::{LinkHint, LinkReport};
use crate::links::{LinkDecision, LinkStatus};
use crate::service::Role;
use crate::web::api::holders::not_said;
use crate::web::api::{allowed, aside, json_body, refused};
use crate::web::site::Site;

/// What is known of the links of an item. Proposals are for operators: nobody has agreed to them.
pub(super) fn report(site: &Site, holding: &Holding, request: &Request) -> Result<Response, Problem> {
    let proposals = allowed(site, request.headers(), Role::Operator).is_ok();
    let holdings = site.desk.read().map_err(refused)?;
    let report = LinkReport::of(&holdings, holding, site.links.receipts(), proposals).map_err(refused)?;
    Ok(axum::Json(report).into_response())
}

/// A hint from anybody. It changes nothing by itself: this Archive looks for itself.
pub(super) async fn hint(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let (hint, _): (LinkHint, String) = json_body(&site, request).await?;
    let Some((older, newer)) = hint.keys() else {
        return Err(not_said("`older` and `newer` are the labels of two items"));
    };
    let held = {
        let holdings = site.desk.read().map_err(refused)?;
        let older = holdings.held_by_key(&older).map_err(refused)?;
        let newer = holdings.held_by_key(&newer).map_err(refused)?;
        older.is_some() || newer.is_some()
    };
    if !held {
        return Err(Problem::not_found("neither item is here"));
    }
    if !site.links.hint(hint) {
        return Err(Problem::unavailable("too many hints wait: try again later"));
    }
    Ok((StatusCode::ACCEPTED, axum::Json(json!({ "heard": true }))).into_response())
}

/// Another Archive may have lost what it knew: all links are told again, soon.
pub(super) async fn again(State(site): State<Arc<Site>>) -> Response {
    site.links.tell_again();
    (StatusCode::ACCEPTED, axum::Json(json!({ "heard": true }))).into_response()
}

/// All links that something is known of.
pub(super) async fn list(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    allowed(&site, request.headers(), Role::Operator)?;
    let status = request.uri().query().and_then(|query| value(query, "status"));
    let status = match status.as_deref() {
        None => None,
        Some(name) => Some(link_status(name).ok_or_else(|| {
            Problem::bad_request("`status` is `proposed`, `accepted`, `refused` or `withdrawn`")
        })?),
    };
    let links = aside(&site, move |site| {
        site.desk.read().and_then(|holdings| holdings.all_links(status)).map_err(refused)
    });
    Ok(axum::Json(json!({ "links": links.await? })).into_response())
}

fn link_status(name: &str) -> Option<LinkStatus> {
    use LinkStatus::{Accepted, Proposed, Refused, Withdrawn};
    [Proposed, Accepted, Refused, Withdrawn].into_iter().find(|status| status.name() == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkInQuestion {
    newer: String,
    older: Option<String>,
}

pub(super) async fn accept(site: State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    decide(site, request, LinkDecision::Accept).await
}

pub(super) async fn refuse(site: State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    decide(site, request, LinkDecision::Refuse).await
}

pub(super) async fn withdraw(site: State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    decide(site, request, LinkDecision::Withdraw).await
}

async fn decide(
    State(site): State<Arc<Site>>,
    request: Request,
    decision: LinkDecision,
) -> Result<Response, Problem> {
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (LinkInQuestion { newer, older }, _) = json_body(&site, request).await?;
    let decided = site
        .desk
        .work(move |archive| archive.decide_link(&newer, older.as_deref(), decision, &token.name))
        .await
        .map_err(refused)?;
    Ok(axum::Json(decided).into_response())
}
