//! Items over the API: read, listed, followed, updated, removed.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_protocol::Relation;
use ibi_store::journal::State as ItemState;
use ibi_store::records::Role as Leads;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::item::Labels;
use crate::relations::Led;
use crate::service::answer::may_open;
use crate::service::{Counts, Described, Role, address, counted_as};
use crate::told::Told;
use crate::web::api::drafts::{may_say, may_update};
use crate::web::api::holders::{self, Between};
use crate::web::api::{allowed, authority, json_body, number, refused};
use crate::web::api::{links, object, once};
use crate::web::col;
use crate::web::site::Site;
use ibi_http::accept::value;

/// Items on a page, at most and if nothing is said.
const MOST: u64 = 1000;
const USUAL: u64 = 100;

/// Items that are read at a time, and bytes of a page from which on it has no more.
const STEP: usize = 20;
const LONGEST_PAGE: usize = 1 << 20;

/// What of an item is asked for.
enum What {
    Item,
    Statistics,
    Relations,
    Links,
    /// Its record as XML.
    OaiDc,
    /// Its object, or a file of that.
    Object(Option<String>),
    /// What Archives do together.
    Between(Between),
}

/// Reads `<ibi>`, `<ibi>/statistics`, `<ibi>/relations`, `<ibi>/oai_dc`, `<ibi>/object` or
/// `<ibi>/object/…`.
fn read(rest: &str) -> Result<(&str, What), Problem> {
    let bad = || Problem::not_found("there is no identifier in this address");
    match address::split(rest).ok_or_else(bad)? {
        (label, "" | "/") => Ok((label, What::Item)),
        (label, "/statistics") => Ok((label, What::Statistics)),
        (label, "/relations") => Ok((label, What::Relations)),
        (label, "/links") => Ok((label, What::Links)),
        (label, "/oai_dc") => Ok((label, What::OaiDc)),
        (label, "/object") => Ok((label, What::Object(None))),
        (label, rest) => match rest.strip_prefix("/object/") {
            Some(file) => Ok((label, What::Object(Some(file.to_owned())))),
            None => {
                let between = rest.strip_prefix('/').and_then(Between::parse);
                between.map(|between| (label, What::Between(between))).ok_or_else(|| {
                    Problem::not_found("an item has nothing here: /api/v1/openapi.json tells what it has")
                })
            }
        },
    }
}

/// Whether the last part of a label says what Archives do together.
fn ends_in_a_word(label: &str) -> bool {
    label.rsplit('/').next().and_then(Between::parse).is_some()
}

/// The answer to a method that is not taken here.
fn takes_only(methods: &'static str) -> Response {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let problem = Problem::new(status, "method", "Method not allowed", format!("this takes {methods}"));
    ([(header::ALLOW, methods)], problem).into_response()
}

/// Whatever is asked of an item.
pub(super) async fn any(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let rest = request.uri().path().split_once("/items/").map(|(_, rest)| rest).unwrap_or_default();
    let rest =
        percent_decode_str(rest).decode_utf8().map_err(|_| Problem::not_found("labels are plain ASCII"))?;
    let rest = rest.into_owned();
    let (label, what) = read(&rest)?;
    let label = label.to_owned();
    match (request.method().as_str(), what) {
        ("GET" | "HEAD", What::Object(file)) => object::get(site, label, file, request).await,
        ("GET" | "HEAD", What::Between(Between::Transfer)) => holders::transferring(&site, &label, &request),
        ("GET" | "HEAD", What::Between(Between::Handover)) => holders::standing_of(&site, &label, &request),
        ("POST", What::Between(between)) => holders::post(site, label, between, request).await,
        (_, What::Between(between)) => {
            let is_read = matches!(between, Between::Transfer | Between::Handover);
            let takes = if is_read { "GET, HEAD, POST" } else { "POST" };
            Ok(takes_only(takes))
        }
        ("GET" | "HEAD", what) => get(&site, &label, what, &request),
        ("PATCH", What::Item) => update(site, label, request).await,
        ("DELETE", What::Item) => remove(site, label, request).await,
        // `Zp/audit` is a label too; who posts to it has left one out before `/audit`.
        ("POST", What::Item) if ends_in_a_word(&label) => {
            Err(Problem::not_found("there is no identifier before the last part of this address"))
        }
        (_, what) => {
            let takes = if let What::Item = what { "GET, HEAD, PATCH, DELETE" } else { "GET, HEAD" };
            Ok(takes_only(takes))
        }
    }
}

fn get(site: &Site, label: &str, what: What, request: &Request) -> Result<Response, Problem> {
    let holdings = site.desk.read().map_err(refused)?;
    let (holding, role) = holdings.find(label).map_err(refused)?;
    match what {
        What::Statistics => Ok(axum::Json(statistics(site, &holding, role)?).into_response()),
        What::OaiDc if holding.state != ItemState::Deleted => col::oai_dc(site, &holdings, &holding),
        What::OaiDc => Err(refused(ArchiveError::Removed { label: label.to_owned() })),
        What::Relations => Ok(axum::Json(relations(&holdings, holding, role)?).into_response()),
        What::Links => links::report(site, &holding, request),
        What::Item => {
            let open = may_open(&holding, Some(site.client(request)), site.now())
                || allowed(site, request.headers(), Role::Operator).is_ok();
            let told = told(&holdings, &holding, role, open)?;
            let status = if holding.state == ItemState::Deleted { StatusCode::GONE } else { StatusCode::OK };
            Ok((status, axum::Json(told)).into_response())
        }
        // Read aside: they wait for the disk, or for others.
        What::Object(_) | What::Between(_) => Err(Problem::internal()),
    }
}

/// An item with its history; its files only for those who may know them (threat W14).
fn told<'a>(holdings: &Holdings, holding: &'a Holding, role: Leads, open: bool) -> Result<Told<'a>, Problem> {
    let told = if open { Told::of(holdings, holding, role) } else { Ok(hidden(holding, role)) };
    told.and_then(|told| told.with_history(holdings, holding)).map_err(refused)
}

fn hidden(holding: &Holding, role: Leads) -> Told<'_> {
    Told::hidden(holding, role)
}

/// Of the item, or of its metadata if it is their label that was given (clause 3.5).
fn statistics<'a>(site: &Site, holding: &'a Holding, role: Leads) -> Result<Counts<'a>, Problem> {
    let (labels, kind) = counted_as(holding, role);
    let counted = site.statistics.of(&holding.path, kind).map_err(refused)?;
    Ok(Counts::new(labels.primary(), kind, counted))
}

/// Everything that leads from an item somewhere (clause 2.4).
fn relations(holdings: &Holdings, holding: Holding, role: Leads) -> Result<Value, Problem> {
    let from = Led::new(holding, role);
    let mut found = Vec::new();
    for relation in Relation::all() {
        let offers = holdings.offers(&from, &relation).map_err(refused)?;
        for (relation, led) in offers.whole {
            found.push(json!({
                "relation": relation.to_string(),
                "modifiers": relation.modifiers(),
                "ibi": led.labels().primary(),
                "state": led.holding.state.name(),
            }));
        }
        // Known, and held by another Archive.
        let is_whole = |found: &&(Relation, Labels)| found.0.parts().len() == relation.parts().len();
        for (relation, labels) in offers.elsewhere.iter().filter(is_whole) {
            found.push(json!({
                "relation": relation.to_string(),
                "modifiers": relation.modifiers(),
                "ibi": labels.primary(),
            }));
        }
    }
    Ok(json!({ "item": from.labels().primary(), "relations": found }))
}

/// Items in order of their paths. A cursor is the last path of a page: it stays good whatever comes and goes.
pub(super) async fn list(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let query = request.uri().query();
    let limit = number(query, "limit", USUAL, MOST)?;
    let after = query.and_then(|query| value(query, "after")).unwrap_or_default();
    let holdings = site.desk.read().map_err(refused)?;
    let (mut text, mut after, mut count) = (String::from("{\"items\":["), after, 0);
    let mut next = None;
    // In small steps: a page has as many bytes as fit, whatever metadata weigh.
    'page: loop {
        let items = holdings.list(&after, STEP).map_err(refused)?;
        if items.is_empty() {
            break;
        }
        for holding in &items {
            if count == limit || text.len() > LONGEST_PAGE {
                next = Some(after);
                break 'page;
            }
            if count > 0 {
                text.push(',');
            }
            // Text, numbers and lists: nothing that JSON could refuse.
            text += &serde_json::to_string(&hidden(holding, Leads::Item)).unwrap_or_default();
            after.clone_from(&holding.path);
            count += 1;
        }
    }
    text += &format!("],\"next\":{}}}", json!(next));
    Ok(once::json(StatusCode::OK, text))
}

/// What changed, in the order in which it did: of each item the last change, with all that a resolver or a mirror needs.
pub(super) async fn changes(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let query = request.uri().query();
    let limit = number(query, "limit", USUAL, MOST)?;
    let after = number(query, "after", 0, i64::MAX as u64)?;
    let holdings = site.desk.read().map_err(refused)?;
    let last = holdings.last_change().map_err(refused)?;
    let (mut changes, mut next): (Vec<Value>, u64) = (Vec::new(), after);
    while (changes.len() as u64) < limit {
        let step = STEP.min(limit as usize - changes.len());
        let changed = holdings.changes(next, step).map_err(refused)?;
        let Some(to) = changed.last().map(|last| last.change) else {
            next = next.max(last);
            break;
        };
        next = to;
        for holding in &changed {
            let links = holdings.link_list(&holding.item, false).map_err(refused)?;
            changes.push(json!({
                "change": holding.change,
                "item": holding.item.labels,
                "aliases": holding.item.aliases,
                "metadata": holding.item.metadata,
                "state": holding.state.name(),
                "version": holding.version,
                "epoch": holding.epoch,
                "updated": holding.item.updated,
                "time": holdings.changed_at(&holding.path),
                "removed": holding.item.removed,
                "links": links,
            }));
        }
    }
    Ok(axum::Json(json!({ "changes": changes, "next": next, "last": last })).into_response())
}

/// A new version without new files.
async fn update(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    let token = allowed(&site, request.headers(), Role::Depositor)?;
    let client = site.client(&request);
    let (described, _): (Described, String) = json_body(&site, request).await?;
    may_say(&token, &described)?;
    {
        let holdings = site.desk.read().map_err(refused)?;
        let (holding, _) = holdings.find(&label).map_err(refused)?;
        may_update(&site, &holdings, &holding, &token, client)?;
    }
    let changes = described.changes().map_err(refused)?;
    if changes.is_empty() {
        return Err(refused(ArchiveError::NothingToChange));
    }
    let asked = label.clone();
    let made = site.desk.change(move |archive| {
        let prepared = archive.prepare_update(&asked, None, changes, &token.name, &|_| ())?;
        Ok(prepared.map(|prepared| prepared.with_authority(authority(&token))))
    });
    made.await.map_err(refused)?;
    shown(&site, &label, StatusCode::OK)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a `reason`")]
struct Removal {
    reason: String,
    #[serde(default)]
    purge: bool,
}

async fn remove(site: Arc<Site>, label: String, request: Request) -> Result<Response, Problem> {
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (Removal { reason, purge }, _): (Removal, String) = json_body(&site, request).await?;
    if reason.trim().is_empty() {
        return Err(refused(ArchiveError::Value(
            "say the `reason`: the tombstone tells it for ever".to_owned(),
        )));
    }
    let asked = label.clone();
    let made = site
        .desk
        .change(move |archive| archive.prepare_removal(&asked, &reason, &token.name, purge).map(Some));
    made.await.map_err(refused)?;
    shown(&site, &label, StatusCode::OK)
}

/// An item after it was changed, all of it.
pub(super) fn shown(site: &Site, label: &str, status: StatusCode) -> Result<Response, Problem> {
    let holdings = site.desk.read().map_err(refused)?;
    let (holding, _) = holdings.find(label).map_err(refused)?;
    let told = told(&holdings, &holding, Leads::Item, true)?;
    let to = format!("/api/v1/items/{}", holding.item.labels.primary());
    Ok((status, [(header::LOCATION, to)], axum::Json(told)).into_response())
}
