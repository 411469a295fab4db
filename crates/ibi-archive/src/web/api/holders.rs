//! What Archives do together, over the API: copies, their refreshing and repair, hand-overs.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::value;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ArchiveError;
use crate::holders::copy::{Source, bring_in};
use crate::holders::handing::{Handing, Wish};
use crate::holders::messages::Message;
use crate::holders::peer::{Peer, PeerError};
use crate::holders::repair::{self, Asked, Repair};
use crate::holders::{HolderError, Verdict, resolver, stand_of};
use crate::service::Role;
use crate::web::api::{allowed, json_body, refused};
use crate::web::site::Site;

/// What Archives do together with an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    Copy,
    Refresh,
    Drop,
    Transfer,
    Handover,
    Audit,
}

impl Between {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "copy" => Between::Copy,
            "refresh" => Between::Refresh,
            "drop" => Between::Drop,
            "transfer" => Between::Transfer,
            "handover" => Between::Handover,
            "audit" => Between::Audit,
            _ => return None,
        })
    }
}

pub(super) async fn post(
    site: Arc<Site>,
    label: String,
    between: Between,
    request: Request,
) -> Result<Response, Problem> {
    match between {
        Between::Copy => copy(site, label, request).await,
        Between::Refresh => refresh(site, label, request).await,
        Between::Drop => drop_copy(site, label, request).await,
        Between::Transfer => transfer(site, label, request).await,
        Between::Handover => handover(site, label, request).await,
        Between::Audit => audit(site, label, request).await,
    }
}

/// Another Archive, and what it knows us by.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `from`, the URL of an Archive")]
struct From {
    from: Option<String>,
    token: Option<String>,
    #[serde(default)]
    overwrite: bool,
}

/// Brings a copy of an item, or brings one up to date.
async fn copy(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (From { from, token: theirs, overwrite }, _) = json_body(&site, request).await?;
    let from = from.ok_or_else(|| not_said("say `from`: the URL of the Archive that has it"))?;
    let peer = Peer::new(&from, theirs).map_err(|error| holder(error.into()))?;
    bring(&site, &label, Source { overwrite, ..Source::new(peer) }, &token.name).await
}

/// Brings a copy up to date from where it came, or from another Archive.
async fn refresh(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (From { from, token: theirs, overwrite }, _) = json_body(&site, request).await?;
    let source = {
        let holdings = site.desk.read().map_err(refused)?;
        let (holding, _) = holdings.find(&label).map_err(refused)?;
        holdings.source(&holding.path).map_err(refused)?
    };
    let word = from.is_some();
    let from = from.or(source).ok_or_else(|| {
        Problem::conflict(format!(
            "{label} did not come from another Archive: say `from`, the URL of one that has it"
        ))
    })?;
    let peer = Peer::new(&from, theirs).map_err(|error| holder(error.into()))?;
    bring(
        &site,
        &label,
        Source { overwrite, word, thorough: true, follows: !word, ..Source::new(peer) },
        &token.name,
    )
    .await
}

async fn bring(site: &Arc<Site>, label: &str, source: Source, by: &str) -> Result<Response, Problem> {
    let (found, brought) = bring_in(&site.desk, &source, label, by).await.map_err(holder)?;
    let told =
        json!({ "item": label, "source": source.peer.url(), "found": found.name(), "brought": brought });
    let status = match found {
        Verdict::New => StatusCode::CREATED,
        _ if brought => StatusCode::OK,
        Verdict::Altered | Verdict::Beyond | Verdict::Conflict | Verdict::Lacking => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    };
    Ok((status, axum::Json(told)).into_response())
}

/// Takes a copy out.
async fn drop_copy(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object, with a `reason` if there is one")]
    struct Why {
        reason: Option<String>,
    }
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (Why { reason }, _) = json_body(&site, request).await?;
    let (asked, by) = (label.clone(), token.name);
    site.desk.work(move |archive| archive.drop_copy(&asked, &by, reason)).await.map_err(refused)?;
    Ok(axum::Json(json!({ "item": label, "dropped": true })).into_response())
}

/// Hands an item over, or says that its taker is gone.
async fn transfer(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object with `to`, the URL of an Archive")]
    struct To {
        to: Option<String>,
        token: Option<String>,
        keep: Option<Keep>,
        #[serde(default)]
        taker_destroyed: bool,
        #[serde(default)]
        cancel: bool,
    }
    #[derive(Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Keep {
        Copy,
        Nothing,
    }
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (To { to, token: theirs, keep, taker_destroyed, cancel }, _) = json_body(&site, request).await?;
    let by = token.name;
    match to {
        Some(to) if !taker_destroyed && !cancel => {
            let keep = keep != Some(Keep::Nothing);
            let wish = Wish { item: label.clone(), to, token: theirs, keep, by };
            Handing::may_move(&*site.desk, &wish).await.map_err(holder)?;
            let now = site.now_text();
            let begun = site.desk.work(move |archive| Ok(Handing::begin(archive.holdings(), wish, now)));
            begun.await.map_err(refused)?.map_err(holder)?;
            Ok((StatusCode::ACCEPTED, axum::Json(standing(&site, &label)?)).into_response())
        }
        None if taker_destroyed != cancel => {
            let asked = label.clone();
            site.desk
                .work(move |archive| match cancel {
                    true => Handing::cancel(archive.holdings(), &asked),
                    false => archive
                        .taker_destroyed(&asked, &by)
                        .and_then(|()| Handing::forget(archive.holdings(), &asked)),
                })
                .await
                .map_err(refused)?;
            Ok(axum::Json(standing(&site, &label)?).into_response())
        }
        _ => Err(not_said("say `to`, the URL of the taker; or `taker_destroyed`; or `cancel`")),
    }
}

/// How a hand-over stands.
pub(super) fn transferring(site: &Site, label: &str, request: &Request) -> Result<Response, Problem> {
    allowed(site, request.headers(), Role::Operator)?;
    Ok(axum::Json(standing(site, label)?).into_response())
}

fn standing(site: &Site, label: &str) -> Result<Value, Problem> {
    let holdings = site.desk.read().map_err(refused)?;
    stand_of(&holdings, label).map_err(refused)
}

/// A taker asks whether it is so what it was told. Its name is all that it needs to know: that is random, and long.
pub(super) fn standing_of(site: &Site, label: &str, request: &Request) -> Result<Response, Problem> {
    let name = request.uri().query().and_then(|query| value(query, "name"));
    let name = name.ok_or_else(|| Problem::bad_request("say `name`: that of the hand-over"))?;
    let holdings = site.desk.read().map_err(refused)?;
    Ok(axum::Json(Handing::told(&holdings, label, &name).map_err(refused)?).into_response())
}

/// A giver speaks.
async fn handover(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    let token = allowed(&site, request.headers(), Role::Holder)?;
    let (message, _): (Message, String) = json_body(&site, request).await?;
    let answer = site.taking.answer(&site.desk, label, message, &token.name).await.map_err(holder)?;
    Ok(axum::Json(answer).into_response())
}

/// Compares an item with what other holders have, and repairs what is damaged here.
async fn audit(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object with `with`, URLs of Archives")]
    struct With {
        #[serde(default)]
        with: Vec<String>,
        resolver: Option<String>,
        token: Option<String>,
        #[serde(default)]
        repair: bool,
    }
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (With { with, resolver: known_by, token: theirs, repair }, _) = json_body(&site, request).await?;
    if theirs.is_some() && (with.len() > 1 || known_by.is_some()) {
        return Err(not_said(repair::ONE_TOKEN));
    }
    let asked = with.iter().map(|url| Peer::new(url, theirs.clone()).map(Asked::from));
    let mut asked = asked.collect::<Result<Vec<_>, _>>().map_err(|error| holder(error.into()))?;
    let (desk, by) = (&site.desk, token.name);
    if let Some(known_by) = known_by {
        asked.extend(resolver::holders(&**desk, &known_by, &label).await.map_err(holder)?);
    }
    let compared = repair::compare(&**desk, desk.data(), &label, asked, theirs, repair, &|_| ()).await;
    let compared = compared.map_err(holder)?;
    let repairs: Vec<Repair> = compared.repairs;
    let path = compared.path.clone();
    if !repairs.is_empty() {
        desk.work(move |archive| archive.mend(&path, &repairs, &by)).await.map_err(refused)?;
    }
    Ok(axum::Json(&compared.report).into_response())
}

/// What has the right form, and does not say what is needed.
pub(super) fn not_said(what: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", "Against the rules of the Archive", what)
}

/// What Archives could not do between them, told to a program.
pub(super) fn holder(error: HolderError) -> Problem {
    match error {
        HolderError::Archive(
            error @ (ArchiveError::NoHandover { .. } | ArchiveError::Granted { .. } | ArchiveError::Restored),
        ) => Problem::conflict(error.to_string()),
        HolderError::Archive(error) => refused(error),
        HolderError::Peer(
            error @ (PeerError::Url { .. } | PeerError::BadToken { .. } | PeerError::OneToken { .. }),
        ) => not_said(&error.to_string()),
        HolderError::Peer(error) => elsewhere(&error),
        HolderError::Fetch(error) => elsewhere(&error),
        error @ HolderError::NotItsSource { .. } => Problem::conflict(error.to_string()),
        error @ HolderError::Itself { .. } => not_said(&error.to_string()),
    }
}

fn elsewhere(error: &dyn std::error::Error) -> Problem {
    // Not a failure of this one: nothing is wrong with it.
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Problem::new(status, "other-archive", "The other Archive", error.to_string())
}
