//! Deposits over the API: create a draft, upload its files, then publish all of it atomically.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::accept::query_value;
use ibi_http::{Problem, body};
use ibi_store::journal::Verb;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tokio::sync::oneshot;

use crate::ArchiveError;
use crate::archive::{Archive, Holdings};
use crate::engine::shared_objects;
use crate::service::{DraftFile, DraftRecord, ItemPatch, ServiceRole, ServiceToken};
use crate::web::api::idempotency::{self, IdempotentRequest};
use crate::web::api::items::changed_item_response;
use crate::web::api::rights::{authority, may_change, may_describe};
use crate::web::api::{
    archive_problem, authorize, body_problem, json_body_with_grant, query_number, run_site_blocking,
};
use crate::web::large_response;
use crate::web::site::ArchiveSite;

/// Maximum and default number of drafts per page, and the size at which a page ends.
const MAX_PAGE_DRAFTS: u64 = 1000;
const DEFAULT_PAGE_DRAFTS: u64 = 100;
const MAX_DRAFT_PAGE_BYTES: usize = 1 << 20;

/// Memory to publish a draft, as a multiple of the memory to read it.
const PUBLISHING_MEMORY_FACTOR: u64 = 2;

#[derive(Deserialize)]
#[serde(expecting = "an object that describes an item")]
struct ApiDraftBody {
    /// The item to update; `None` for a new one.
    item: Option<String>,
    #[serde(flatten)]
    described: serde_json::Map<String, Value>,
}

fn draft_file_json(file: &DraftFile) -> Value {
    json!({ "path": file.name, "size": file.size, "sha512": file.sha512 })
}

/// Maximum size of a response about a draft, besides its description and files.
const MAX_DRAFT_FRAME_BYTES: u64 = 4 << 10;

/// The owner of drafts created with a token.
fn owner_of(token: &ServiceToken) -> &str {
    &token.id
}

fn draft_json(draft: &DraftRecord) -> Value {
    let files: Vec<Value> = draft.files().map(draft_file_json).collect();
    let mut told = json!({
        "id": draft.id,
        "owner": draft.owner,
        "created": draft.created,
        "description": draft.described,
        "files": files,
    });
    if let Some((item, version)) = &draft.updates {
        told["item"] = item.as_str().into();
        told["version"] = (*version).into();
    }
    told
}

/// The draft id, from the path as sent. It is not decoded: ids never need encoding.
fn draft_id(request: &Request) -> String {
    request.uri().path().split('/').nth(2).unwrap_or_default().to_owned()
}

/// The token, if it owns the draft or is an operator's; and whether the draft updates an item.
fn authorize_draft_owner(
    site: &ArchiveSite,
    headers: &HeaderMap,
    id: &str,
) -> Result<(ServiceToken, bool), Problem> {
    let token = authorize(site, headers, ServiceRole::Depositor)?;
    let draft = site
        .drafts
        .owner(id)
        .filter(|(owner, _)| owner == owner_of(&token) || token.role == ServiceRole::Operator);
    let (_, updates) = draft.ok_or_else(no_draft)?;
    Ok((token, updates))
}

fn no_draft() -> Problem {
    Problem::not_found("no such draft, or it belongs to another token")
}

pub(super) async fn begin(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let token = authorize(&site, &headers, ServiceRole::Depositor)?;
    let (ApiDraftBody { item, described }, asked, body): (ApiDraftBody, String, _) =
        json_body_with_grant(&site, request).await?;
    let described: ItemPatch =
        serde_json::from_value(Value::Object(described)).map_err(|error| body_problem(&error))?;
    // The item's files are read and written into the draft.
    let file_bytes = item.as_ref().map(|label| files_bytes(&site, label)).transpose()?;
    let _files = match file_bytes {
        Some(bytes) => Some(site.desk.grant(bytes).await?),
        None => None,
    };
    let once = IdempotentRequest::of(&headers, &token, "drafts", &asked)?;
    let _alone = if once.is_some() { Some(site.once.lock().await) } else { None };
    run_site_blocking(&site, move |site| {
        let _body = body;
        if let Some(before) = once.as_ref().map(|once| once.earlier_response(site)).transpose()?.flatten() {
            return Ok(before);
        }
        if once.is_some() {
            let described = serde_json::to_string(&described).map_or(0, |text| text.len() as u64);
            let bytes = described + file_bytes.unwrap_or(0) + MAX_DRAFT_FRAME_BYTES;
            site.statistics.check_room(bytes).map_err(archive_problem)?;
        }
        may_describe(site, &token, &described)?;
        let now = site.now_text();
        let draft = match item {
            None => site.drafts.begin(owner_of(&token), &now, None, described),
            Some(label) => {
                let holdings = site.desk.read().map_err(archive_problem)?;
                let (holding, _) = holdings.find_bare(&label).map_err(archive_problem)?;
                may_change(&holdings, &holding, &token)?;
                described.clone().into_changes().map_err(archive_problem)?;
                site.drafts.begin(owner_of(&token), &now, Some((&holdings, &holding)), described)
            }
        };
        let draft = draft.map_err(archive_problem)?;
        let answer = draft_json(&draft).to_string();
        if let Some(once) = once {
            once.store_response(site, StatusCode::CREATED, &answer)?;
        }
        let to = format!("/api/v1/drafts/{}", draft.id);
        Ok(([(header::LOCATION, to)], idempotency::json_response(StatusCode::CREATED, answer))
            .into_response())
    })
    .await
}

pub(super) async fn list(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let token = authorize(&site, request.headers(), ServiceRole::Depositor)?;
    let query = request.uri().query();
    let limit = query_number(query, "limit", DEFAULT_PAGE_DRAFTS, MAX_PAGE_DRAFTS)?;
    let after = query.and_then(|query| query_value(query, "after")).unwrap_or_default();
    // Operators see all drafts.
    let owner = match token.role {
        ServiceRole::Operator => query.and_then(|query| query_value(query, "owner")),
        _ => Some(owner_of(&token).to_owned()),
    };
    let names = site.drafts.list_draft_ids(owner.as_deref(), &after).map_err(archive_problem)?;
    let largest = names.iter().take(limit as usize).map(|id| site.drafts.memory_bytes(id)).max().unwrap_or(0);
    large_response::answer_with_grant(&site, 2 * MAX_DRAFT_PAGE_BYTES as u64 + largest, move |site| {
        let (mut text, mut last) = (String::from("{\"drafts\":["), None);
        let mut next = None;
        for (count, id) in names.into_iter().enumerate() {
            // Limit the page by size, whatever the drafts weigh; it has at least one.
            if count as u64 == limit || text.len() > MAX_DRAFT_PAGE_BYTES {
                next = last;
                break;
            }
            if let Some(draft) = site.drafts.get(&id) {
                text += if text.ends_with('[') { "" } else { "," };
                text += &draft_json(&draft).to_string();
            }
            last = Some(id);
        }
        text += &format!("],\"next\":{}}}", json!(next));
        Ok(idempotency::json_response(StatusCode::OK, text))
    })
    .await
}

/// Memory to read the files of an item into a draft.
fn files_bytes(site: &ArchiveSite, label: &str) -> Result<u64, Problem> {
    let holdings = site.desk.read().map_err(archive_problem)?;
    let (holding, _) = holdings.find_bare(label).map_err(archive_problem)?;
    Ok(3 * shared_objects::inventory_bytes(&site.desk, &holding.path))
}

pub(super) async fn get(State(site): State<Arc<ArchiveSite>>, request: Request) -> Result<Response, Problem> {
    let id = draft_id(&request);
    let headers = request.headers().clone();
    let bytes = site.drafts.memory_bytes(&id);
    large_response::answer_with_grant(&site, bytes, move |site| {
        authorize_draft_owner(site, &headers, &id)?;
        let draft = site.drafts.get(&id).ok_or(ArchiveError::NoDraft).map_err(archive_problem)?;
        Ok(axum::Json(draft_json(&draft)).into_response())
    })
    .await
}

pub(super) async fn describe(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let (id, headers) = (draft_id(&request), request.headers().clone());
    authorize(&site, &headers, ServiceRole::Depositor)?;
    let (more, _, body): (ItemPatch, String, _) = json_body_with_grant(&site, request).await?;
    let bytes = site.drafts.memory_bytes(&id);
    large_response::answer_with_grant(&site, bytes, move |site| {
        let _body = body;
        let (token, updates) = authorize_draft_owner(site, &headers, &id)?;
        may_describe(site, &token, &more)?;
        if updates {
            more.clone().into_changes().map_err(archive_problem)?;
        }
        let draft = site.drafts.patch_draft(&id, more).map_err(archive_problem)?;
        Ok(axum::Json(draft_json(&draft)).into_response())
    })
    .await
}

pub(super) async fn delete(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let (id, headers) = (draft_id(&request), request.headers().clone());
    run_site_blocking(&site, move |site| {
        authorize_draft_owner(site, &headers, &id)?;
        site.drafts.delete(&id).map_err(archive_problem)?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// The file name, from the path as sent: percent-decoded once, any bytes.
fn file_name(request: &Request) -> Result<Vec<u8>, Problem> {
    let name = request.uri().path().split_once("/files/").map(|(_, name)| name).unwrap_or_default();
    let digits =
        |rest: &str| rest.get(..2).is_some_and(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !name.split('%').skip(1).all(digits) {
        return Err(Problem::bad_request("invalid escape: write a literal % as %25"));
    }
    let name: Vec<u8> = percent_decode_str(name).collect();
    match ibi_protocol::FilePath::new(&name) {
        Ok(Some(_)) => Ok(name),
        Ok(None) => Err(Problem::bad_request("file name missing")),
        Err(error) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "bad-name", "Invalid file name", error.to_string()))
        }
    }
}

/// Runs uploads at idle priority so that reads stay responsive: this thread, and those that it
/// starts, yield the core at once to any thread that wakes. A nice value would let each finish its
/// time slice of some milliseconds first.
fn lower_priority() {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // If the system refuses, only responsiveness suffers.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
}

/// Rejects partial and encoded uploads: a part would be stored as the whole file (RFC 9110 §14.5),
/// and encoded bytes as the content.
fn check_whole(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(header::CONTENT_RANGE) {
        return Err(Problem::bad_request(
            "partial uploads are not supported: send the whole file, without \
            Content-Range",
        ));
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let detail = "files are stored as received: send them without Content-Encoding";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(Problem::new(status, "encoding", "Content-Encoding is not supported", detail))
        }
        _ => Ok(()),
    }
}

/// Stores an upload as it arrives, in constant memory.
pub(super) async fn put(State(site): State<Arc<ArchiveSite>>, request: Request) -> Result<Response, Problem> {
    let id = draft_id(&request);
    let (headers, asked) = (request.headers().clone(), id.clone());
    let (token, _) =
        run_site_blocking(&site, move |site| authorize_draft_owner(site, &headers, &asked)).await?;
    let name = file_name(&request)?;
    check_whole(request.headers())?;
    let _place = site.arriving.acquire_slot(&token.id).await.ok_or_else(Problem::internal)?;
    let (mut reading, feeding) = body::to_reader(request.into_body(), &site.limits);
    let (tell, told_written) = oneshot::channel();
    let taking = {
        let site = Arc::clone(&site);
        move || {
            lower_priority();
            // The client may have disconnected.
            let _ = tell.send(site.drafts.put(&id, &name, &mut reading));
        }
    };
    std::thread::Builder::new().name("arriving".to_owned()).spawn(taking).map_err(|_| Problem::internal())?;
    let (fed, written) = tokio::join!(feeding, told_written);
    // An error in receiving causes the one in writing, so it is reported first.
    fed?;
    let file = written.map_err(|_| Problem::internal())?.map_err(archive_problem)?;
    Ok(axum::Json(draft_file_json(&file)).into_response())
}

pub(super) async fn delete_file(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let id = draft_id(&request);
    let (headers, name) = (request.headers().clone(), file_name(&request));
    run_site_blocking(&site, move |site| {
        authorize_draft_owner(site, &headers, &id)?;
        if !site.drafts.remove_draft_file(&id, &name?).map_err(archive_problem)? {
            return Err(Problem::not_found("the draft has no file of this name"));
        }
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// Whether a token may publish a draft: it needs permission to change the updated item and to set
/// what the draft describes.
fn may_publish(
    site: &ArchiveSite,
    holdings: &Holdings,
    draft: &DraftRecord,
    token: &ServiceToken,
) -> Result<(), Problem> {
    if let Some((path, _)) = &draft.updates {
        may_change(holdings, &holdings.item_bare(path).map_err(archive_problem)?, token)?;
    }
    may_describe(site, token, &draft.described)
}

/// Publishes a draft as a new item or a new version.
pub(super) async fn publish(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let id = draft_id(&request);
    let token = authorize(&site, request.headers(), ServiceRole::Depositor)?;
    // What was published under this key stays published, even if the response was lost.
    let key = format!("draft:{id}");
    let (headers, asked, name, asking) = (request.headers().clone(), id.clone(), key.clone(), token.clone());
    // Its files and metadata are in memory until the change is committed.
    let share = site.desk.grant(PUBLISHING_MEMORY_FACTOR * site.drafts.memory_bytes(&id)).await?;
    let claimed = run_site_blocking(&site, move |site| {
        let holdings = site.desk.read().map_err(archive_problem)?;
        if let Some(path) = holdings.item_by_request(&name).map_err(archive_problem)? {
            site.drafts.delete(&asked).map_err(archive_problem)?;
            let past = holdings.history(&path).map_err(archive_problem)?;
            let made = past.iter().find(|event| event.key.as_ref() == Some(&name));
            let owner = Some(asking.id.as_str());
            let made =
                made.filter(|event| event.owner.as_deref() == owner || asking.role == ServiceRole::Operator);
            let made = made.ok_or_else(no_draft)?;
            let updated = made.verb == Verb::Update;
            return Ok(Err((path, if updated { StatusCode::OK } else { StatusCode::CREATED })));
        }
        authorize_draft_owner(site, &headers, &asked)?;
        let draft = site.drafts.claim(&asked).map_err(archive_problem)?;
        // Check the whole draft again: parts may be older, or described with another token.
        may_publish(site, &holdings, &draft, &asking).inspect_err(|_| site.drafts.release(&asked))?;
        Ok(Ok(draft))
    });
    let draft = match claimed.await? {
        Ok(draft) => draft,
        Err((path, status)) => return changed_item_response(&site, &path, status).await,
    };
    let updates = draft.updates.as_ref().map(|(path, _)| path.clone());
    // The item belongs to the draft's owner, whoever publishes it.
    let owner = draft.owner.clone();
    let desk = Arc::clone(&site.desk);
    let change = {
        let site = Arc::clone(&site);
        move |archive: &mut Archive| {
            let prepared = site.drafts.prepare(archive, draft, &token.name, Some(key))?;
            let authority = authority(&token);
            Ok(prepared.map(|prepared| prepared.with_authority(authority).owned_by(&owner)))
        }
    };
    // Completes or releases the draft even if the client disconnects.
    let done = tokio::spawn({
        let site = Arc::clone(&site);
        async move {
            let done = desk.change(change).await;
            drop(share);
            let is_done = done.is_ok();
            let ended = run_site_blocking(&site, move |site| match is_done {
                true => site.drafts.delete(&id).map_err(archive_problem),
                false => {
                    site.drafts.release(&id);
                    Ok(())
                }
            });
            // If deletion fails, the next request to publish deletes it.
            let _ = ended.await;
            done
        }
    });
    let path = done.await.map_err(|_| Problem::internal())?.map_err(archive_problem)?;
    let status = if updates.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    metrics::counter!("ibi_published_total").increment(1);
    changed_item_response(&site, &path.or(updates).unwrap_or_default(), status).await
}
