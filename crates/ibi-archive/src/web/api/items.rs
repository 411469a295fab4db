//! Items over the API: read, list, follow changes, update, remove.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_protocol::Relation;
use ibi_store::index::LabelRole as Leads;
use ibi_store::journal::State as ItemState;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::item::ItemLabels;
use crate::item_view::ItemView;
use crate::relations::{self, labels_of};
use crate::service::answer::may_open;
use crate::service::{ItemPatch, ServiceRole, StatisticsReport, address, statistics_subject};
use crate::web::api::holders::{self, ApiReplicationAction};
use crate::web::api::rights::{authority, may_change, may_describe};
use crate::web::api::{archive_problem, authorize, json_body, query_number, run_site_blocking};
use crate::web::api::{idempotency, links, object};
use crate::web::item_routes;
use crate::web::large_response;
use crate::web::site::ArchiveSite;
use ibi_http::accept::query_value;

/// Maximum and default number of items per page.
const MAX_PAGE_ITEMS: u64 = 1000;
const DEFAULT_PAGE_ITEMS: u64 = 100;

/// Aliases after which a page of changes ends.
const MAX_PAGE_ALIASES: usize = 4000;

/// Items per read, and the size at which a page ends.
const ITEMS_PER_READ: usize = 20;
const MAX_ITEMS_PAGE_BYTES: usize = 1 << 20;

/// The resource of an item that a path names.
enum ApiItemResource {
    Item,
    Statistics,
    Relations,
    Links,
    /// The record as XML.
    OaiDc,
    /// The OCFL object, or one file of it.
    Object(Option<String>),
    /// A replication action.
    Between(ApiReplicationAction),
}

/// Parses `<ibi>`, or `<ibi>` followed by a resource: `/statistics`, `/relations`, `/links`,
/// `/oai_dc`, `/object`, `/object/…` or a replication action.
fn parse_resource(rest: &str) -> Result<(&str, ApiItemResource), Problem> {
    let bad = || Problem::not_found("there is no identifier in this address");
    match address::split_label(rest).ok_or_else(bad)? {
        (label, "" | "/") => Ok((label, ApiItemResource::Item)),
        (label, "/statistics") => Ok((label, ApiItemResource::Statistics)),
        (label, "/relations") => Ok((label, ApiItemResource::Relations)),
        (label, "/links") => Ok((label, ApiItemResource::Links)),
        (label, "/oai_dc") => Ok((label, ApiItemResource::OaiDc)),
        (label, "/object") => Ok((label, ApiItemResource::Object(None))),
        (label, rest) => match rest.strip_prefix("/object/") {
            Some(file) => Ok((label, ApiItemResource::Object(Some(file.to_owned())))),
            None => {
                let between = rest.strip_prefix('/').and_then(ApiReplicationAction::parse);
                between.map(|between| (label, ApiItemResource::Between(between))).ok_or_else(|| {
                    Problem::not_found("no such endpoint of an item; see /api/v1/openapi.json")
                })
            }
        },
    }
}

/// Whether the last part of a label is the name of a replication action.
fn ends_in_action(label: &str) -> bool {
    label.rsplit('/').next().and_then(ApiReplicationAction::parse).is_some()
}

fn method_not_allowed(methods: &'static str) -> Response {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let problem = Problem::new(status, "method", "Method not allowed", format!("this takes {methods}"));
    ([(header::ALLOW, methods)], problem).into_response()
}

/// Routes requests below `/items/`.
pub(super) async fn dispatch(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let rest = request.uri().path().split_once("/items/").map(|(_, rest)| rest).unwrap_or_default();
    let rest =
        percent_decode_str(rest).decode_utf8().map_err(|_| Problem::not_found("labels are plain ASCII"))?;
    let rest = rest.into_owned();
    let (label, what) = parse_resource(&rest)?;
    let label = label.to_owned();
    match (request.method().as_str(), what) {
        ("GET" | "HEAD", ApiItemResource::Object(file)) => object::get(site, label, file, request).await,
        ("GET" | "HEAD", ApiItemResource::Between(ApiReplicationAction::Transfer)) => {
            holders::get_transfer(&site, &label, &request)
        }
        ("GET" | "HEAD", ApiItemResource::Between(ApiReplicationAction::Handover)) => {
            holders::get_handover(&site, &label, &request)
        }
        ("POST", ApiItemResource::Between(between)) => holders::post(site, label, between, request).await,
        (_, ApiItemResource::Between(between)) => {
            let is_read = matches!(between, ApiReplicationAction::Transfer | ApiReplicationAction::Handover);
            let takes = if is_read { "GET, HEAD, POST" } else { "POST" };
            Ok(method_not_allowed(takes))
        }
        ("GET" | "HEAD", what) => get(&site, &label, what, request).await,
        ("PATCH", ApiItemResource::Item) => update(site, label, request).await,
        ("DELETE", ApiItemResource::Item) => remove(site, label, request).await,
        // `Zp/audit` is a valid label too; a POST to it lacks the label before `/audit`.
        ("POST", ApiItemResource::Item) if ends_in_action(&label) => {
            Err(Problem::not_found("there is no identifier before the last part of this address"))
        }
        (_, what) => {
            let takes =
                if let ApiItemResource::Item = what { "GET, HEAD, PATCH, DELETE" } else { "GET, HEAD" };
            Ok(method_not_allowed(takes))
        }
    }
}

async fn get(
    site: &Arc<ArchiveSite>,
    label: &str,
    what: ApiItemResource,
    request: Request,
) -> Result<Response, Problem> {
    let holdings = site.desk.read().map_err(archive_problem)?;
    let (holding, role) = holdings.find_bare(label).map_err(archive_problem)?;
    match what {
        ApiItemResource::Statistics => Ok(axum::Json(statistics(site, &holding, role)?).into_response()),
        ApiItemResource::OaiDc if holding.state != ItemState::Deleted => {
            let bytes = large_response::metadata_bytes(&holdings, &holding)?;
            item_routes::answer_by_size(site, holdings, holding, bytes, &(), |site, holdings, holding, ()| {
                item_routes::oai_dc(site, holdings, holding)
            })
            .await
        }
        ApiItemResource::OaiDc => Err(archive_problem(ArchiveError::Removed { label: label.to_owned() })),
        ApiItemResource::Relations => {
            drop(holdings);
            let told = run_site_blocking(site, move |site| {
                let holdings = site.desk.read().map_err(archive_problem)?;
                relations(&holdings, holding, role)
            });
            Ok(axum::Json(told.await?).into_response())
        }
        ApiItemResource::Links => links::report(site, &holding, &request),
        ApiItemResource::Item => {
            let open = may_open(&holding, Some(site.client_address(&request)), site.now())
                || authorize(site, request.headers(), ServiceRole::Depositor)
                    .is_ok_and(|token| may_change(&holdings, &holding, &token).is_ok());
            let status = if holding.state == ItemState::Deleted { StatusCode::GONE } else { StatusCode::OK };
            let bytes = large_response::metadata_bytes(&holdings, &holding)?;
            item_routes::answer_by_size(
                site,
                holdings,
                holding,
                bytes,
                &(),
                move |site, holdings, holding, ()| {
                    item_response(site, holdings, holding, (role, open), status, Vec::new())
                },
            )
            .await
        }
        // Handled by [`dispatch`]: they wait for the disk or for other Archives.
        ApiItemResource::Object(_) | ApiItemResource::Between(_) => Err(Problem::internal()),
    }
}

/// An item as JSON; many files are streamed.
fn item_response(
    site: &Arc<ArchiveSite>,
    holdings: &Holdings,
    holding: &HeldItem,
    (role, open): (Leads, bool),
    status: StatusCode,
    warnings: Vec<String>,
) -> Result<Response, Problem> {
    let is_of_item = role != Leads::Metadata;
    if open
        && is_of_item
        && holdings
            .has_more_files(&holding.path, large_response::MAX_UNSTREAMED_FILES)
            .map_err(archive_problem)?
    {
        let mut response = large_response::streamed_item_response(site, holdings, holding, role, warnings)?;
        *response.status_mut() = status;
        return Ok(response);
    }
    let told = ItemView { warnings, ..full_item_view(holdings, holding, role, open)? };
    Ok((status, axum::Json(told)).into_response())
}

/// An item with its history; files only for clients with access (threat W14).
fn full_item_view<'a>(
    holdings: &Holdings,
    holding: &'a HeldItem,
    role: Leads,
    open: bool,
) -> Result<ItemView<'a>, Problem> {
    let told = if open { ItemView::of(holdings, holding, role) } else { Ok(public_item_view(holding, role)) };
    told.and_then(|told| told.with_history(holdings, holding)).map_err(archive_problem)
}

fn public_item_view(holding: &HeldItem, role: Leads) -> ItemView<'_> {
    ItemView::without_target(holding, role)
}

/// Statistics of the item, or of its metadata if the label is theirs (clause 3.5).
fn statistics<'a>(
    site: &ArchiveSite,
    holding: &'a HeldItem,
    role: Leads,
) -> Result<StatisticsReport<'a>, Problem> {
    let (labels, kind) = statistics_subject(holding, role);
    let counted = site.statistics.item_counts(&holding.path, kind).map_err(archive_problem)?;
    Ok(StatisticsReport::new(labels.primary(), kind, counted))
}

/// All relations of an item (clause 2.4).
fn relations(holdings: &Holdings, holding: HeldItem, role: Leads) -> Result<Value, Problem> {
    let from = relations::target_of(holding, role);
    let mut found = Vec::new();
    for relation in Relation::all() {
        let offers = holdings.relation_offers(&from, &relation).map_err(archive_problem)?;
        for (relation, led) in offers.whole {
            found.push(json!({
                "relation": relation.to_string(),
                "modifiers": relation.modifiers(),
                "ibi": labels_of(&led).primary(),
                "state": led.holding.state.name(),
            }));
        }
        // Known, but held by another Archive.
        let is_whole = |found: &&(Relation, ItemLabels)| found.0.parts().len() == relation.parts().len();
        for (relation, labels) in offers.elsewhere.iter().filter(is_whole) {
            found.push(json!({
                "relation": relation.to_string(),
                "modifiers": relation.modifiers(),
                "ibi": labels.primary(),
            }));
        }
    }
    Ok(json!({ "item": labels_of(&from).primary(), "relations": found }))
}

/// Lists items in order of their paths. The cursor is the last path of a page, so it stays valid
/// when items are added or removed.
pub(super) async fn list(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let query = request.uri().query();
    let limit = query_number(query, "limit", DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
    let after = query.and_then(|query| query_value(query, "after")).unwrap_or_default();
    let from = after.clone();
    match run_site_blocking(&site, move |site| page_of_items(site, from, limit, None)).await? {
        Ok(text) => Ok(idempotency::json_response(StatusCode::OK, text)),
        Err(longest) => {
            let bytes = (longest + MAX_ITEMS_PAGE_BYTES as u64) * large_response::METADATA_MEMORY_FACTOR;
            large_response::answer_with_grant(&site, bytes, move |site| {
                let text = page_of_items(site, after, limit, Some(longest))?;
                text.map(|text| idempotency::json_response(StatusCode::OK, text))
                    .map_err(|_| Problem::internal())
            })
            .await
        }
    }
}

/// A page of items as JSON. `longest` is the largest metadata size that the memory grant covers.
/// The page ends before an item with larger metadata; if it is the first, returns `Err` with its
/// size.
fn page_of_items(
    site: &ArchiveSite,
    mut after: String,
    limit: u64,
    longest: Option<u64>,
) -> Result<Result<String, u64>, Problem> {
    let holdings = site.desk.read().map_err(archive_problem)?;
    let (mut text, mut count) = (String::from("{\"items\":["), 0);
    let mut next = None;
    // Read in small steps: the page is limited by size, whatever the metadata weigh.
    'page: loop {
        let items = holdings.list_bare(&after, ITEMS_PER_READ).map_err(archive_problem)?;
        if items.is_empty() {
            break;
        }
        for holding in &items {
            if count == limit || text.len() > MAX_ITEMS_PAGE_BYTES {
                next = Some(after);
                break 'page;
            }
            if holding.metadata.is_not_loaded() {
                let size = holdings.metadata_size(&holding.path).map_err(archive_problem)?;
                match (longest.is_none_or(|longest| size > longest), count) {
                    (true, 0) => return Ok(Err(size)),
                    (true, _) => {
                        next = Some(after);
                        break 'page;
                    }
                    (false, _) => holdings.load_long_metadata(holding).map_err(archive_problem)?,
                }
            }
            if count > 0 {
                text.push(',');
            }
            // Strings, numbers and lists only: serialization cannot fail.
            text += &serde_json::to_string(&public_item_view(holding, Leads::Item)).unwrap_or_default();
            after.clone_from(&holding.path);
            count += 1;
        }
    }
    text += &format!("],\"next\":{}}}", json!(next));
    Ok(Ok(text))
}

/// Changes in order, the latest per item, with everything that a resolver or a mirror needs.
pub(super) async fn changes(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let query = request.uri().query();
    let limit = query_number(query, "limit", DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
    let after = query_number(query, "after", 0, i64::MAX as u64)?;
    let page = run_site_blocking(&site, move |site| page_of_changes(site, after, limit));
    Ok(axum::Json(page.await?).into_response())
}

/// A page of changes. It ends early if it gets long.
fn page_of_changes(site: &ArchiveSite, after: u64, limit: u64) -> Result<Value, Problem> {
    let holdings = site.desk.read().map_err(archive_problem)?;
    let last = holdings.last_change().map_err(archive_problem)?;
    let (mut changes, mut next): (Vec<Value>, u64) = (Vec::new(), after);
    let mut aliases = 0;
    while (changes.len() as u64) < limit && aliases < MAX_PAGE_ALIASES {
        let step = ITEMS_PER_READ.min(limit as usize - changes.len());
        let changed = holdings.changes_bare(next, step).map_err(archive_problem)?;
        let Some(to) = changed.last().map(|last| last.change) else {
            next = next.max(last);
            break;
        };
        next = to;
        for holding in &changed {
            aliases += holding.item.aliases.len();
            let links = holdings.link_list(&holding.item, false).map_err(archive_problem)?;
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
                "removed": holdings.public_removal(holding).map_err(archive_problem)?,
                "links": links,
            }));
        }
    }
    Ok(json!({ "changes": changes, "next": next, "last": last }))
}

/// Creates a new version without new files.
async fn update(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    let token = authorize(&site, request.headers(), ServiceRole::Depositor)?;
    let (described, _): (ItemPatch, String) = json_body(&site, request).await?;
    may_describe(&site, &token, &described)?;
    {
        let holdings = site.desk.read().map_err(archive_problem)?;
        let (holding, _) = holdings.find_bare(&label).map_err(archive_problem)?;
        may_change(&holdings, &holding, &token)?;
    }
    let changes = described.into_changes().map_err(archive_problem)?;
    if changes.is_empty() {
        return Err(archive_problem(ArchiveError::NothingToChange));
    }
    let (asked, authority) = (label.clone(), authority(&token));
    let made = site.desk.change(move |archive| {
        let prepared = archive.prepare_update(&asked, None, changes, &token.name, &|_| ())?;
        Ok(prepared.map(|prepared| prepared.with_authority(authority).owned_by(&token.id)))
    });
    made.await.map_err(archive_problem)?;
    changed_item_response(&site, &label, StatusCode::OK).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a `reason`")]
struct ApiRemovalBody {
    reason: String,
    #[serde(default)]
    purge: bool,
}

async fn remove(site: Arc<ArchiveSite>, label: String, request: Request) -> Result<Response, Problem> {
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiRemovalBody { reason, purge }, _): (ApiRemovalBody, String) = json_body(&site, request).await?;
    if reason.trim().is_empty() {
        return Err(archive_problem(ArchiveError::Value(
            "`reason` is required; the tombstone shows it permanently".to_owned(),
        )));
    }
    let asked = label.clone();
    let made = site.desk.change(move |archive| {
        let prepared = archive.prepare_removal(&asked, &reason, &token.name, purge)?;
        Ok(Some(prepared.owned_by(&token.id)))
    });
    made.await.map_err(archive_problem)?;
    changed_item_response(&site, &label, StatusCode::OK).await
}

/// The full item, after a change.
pub(super) async fn changed_item_response(
    site: &Arc<ArchiveSite>,
    label: &str,
    status: StatusCode,
) -> Result<Response, Problem> {
    let holdings = site.desk.read().map_err(archive_problem)?;
    let (holding, _) = holdings.find_bare(label).map_err(archive_problem)?;
    let to = format!("/api/v1/items/{}", holding.item.labels.primary());
    let bytes = large_response::metadata_bytes(&holdings, &holding)?;
    let shown = item_routes::answer_by_size(
        site,
        holdings,
        holding,
        bytes,
        &(),
        move |site, holdings, holding, ()| {
            let warnings = holdings.warnings(holding).map_err(archive_problem)?;
            item_response(site, holdings, holding, (Leads::Item, true), status, warnings)
        },
    );
    // The change is committed, even if there is no memory to show the item.
    match shown.await {
        Ok(response) => Ok(([(header::LOCATION, to)], response).into_response()),
        Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE => {
            let short = idempotency::json_response(status, json!({ "path": label }).to_string());
            Ok(([(header::LOCATION, to)], short).into_response())
        }
        Err(problem) => Err(problem),
    }
}
