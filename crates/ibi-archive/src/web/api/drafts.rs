//! Deposits over the API: a draft, its files, and then all of it published at once.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::{Problem, paced};
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
use crate::archive::{Archive, Holding, Holdings};
use crate::service::answer::may_open;
use crate::service::{Described, Draft, DraftFile, Role, Token};
use crate::web::api::items::shown;
use crate::web::api::once::{self, Once};
use crate::web::api::{allowed, aside, authority, json_body, not_taken, refused};
use crate::web::site::Site;

#[derive(Deserialize)]
#[serde(expecting = "an object that describes an item")]
struct Begun {
    /// The item to update; without, a new one.
    item: Option<String>,
    #[serde(flatten)]
    described: serde_json::Map<String, Value>,
}

fn told_file(file: &DraftFile) -> Value {
    json!({ "path": file.name, "size": file.size, "sha512": file.sha512 })
}

/// A draft, told to its owner.
fn told(draft: &Draft) -> Value {
    let files: Vec<Value> = draft.files().map(told_file).collect();
    let mut told = json!({
        "id": draft.id,
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

/// The name of a draft, from the path as it was sent: one that is encoded is none of ours.
fn id(request: &Request) -> String {
    request.uri().path().split('/').nth(2).unwrap_or_default().to_owned()
}

/// The token of one whose draft it is; and whether it updates an item.
fn own(site: &Site, headers: &HeaderMap, id: &str) -> Result<(Token, bool), Problem> {
    let token = allowed(site, headers, Role::Depositor)?;
    let draft = site.drafts.owner(id).filter(|(owner, _)| *owner == token.id || token.role == Role::Operator);
    let (_, updates) = draft.ok_or_else(no_draft)?;
    Ok((token, updates))
}

fn no_draft() -> Problem {
    Problem::not_found("there is no such draft of yours")
}

/// Whether a token may make the next version of an item: of one whose files are closed, who deposited it, and operators.
pub(super) fn may_update(
    site: &Site,
    holdings: &Holdings,
    holding: &Holding,
    token: &Token,
    client: IpAddr,
) -> Result<(), Problem> {
    if token.role == Role::Operator || may_open(holding, Some(client), site.now()) {
        return Ok(());
    }
    let past = holdings.history(&holding.path).map_err(refused)?;
    if past.first().is_some_and(|deposit| deposit.by == token.name) {
        return Ok(());
    }
    Err(Problem::forbidden("its files are closed: who deposited it may update it, or an operator"))
}

/// Whether a token may say what is said (clause 2.1).
pub(super) fn may_say(token: &Token, described: &Described) -> Result<(), Problem> {
    if described.claims() && token.role < Role::Operator {
        let detail = "only an operator declares an Original of elsewhere, or gives an item other labels";
        return Err(Problem::forbidden(detail));
    }
    Ok(())
}

pub(super) async fn begin(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let token = allowed(&site, &headers, Role::Depositor)?;
    let client = site.client(&request);
    let (Begun { item, described }, asked): (Begun, String) = json_body(&site, request).await?;
    let described: Described =
        serde_json::from_value(Value::Object(described)).map_err(|error| not_taken(&error))?;
    may_say(&token, &described)?;
    let once = Once::of(&headers, &token, "drafts", &asked)?;
    let _alone = if once.is_some() { Some(site.once.lock().await) } else { None };
    aside(&site, move |site| {
        if let Some(before) = once.as_ref().map(|once| once.before(site)).transpose()?.flatten() {
            return Ok(before);
        }
        let now = site.now_text();
        let draft = match item {
            None => site.drafts.begin(&token.id, &now, None, described),
            Some(label) => {
                let holdings = site.desk.read().map_err(refused)?;
                let (holding, _) = holdings.find(&label).map_err(refused)?;
                may_update(site, &holdings, &holding, &token, client)?;
                described.clone().changes().map_err(refused)?;
                site.drafts.begin(&token.id, &now, Some((&holdings, &holding)), described)
            }
        };
        let draft = draft.map_err(refused)?;
        let answer = told(&draft).to_string();
        if let Some(once) = once {
            once.remember(site, StatusCode::CREATED, &answer)?;
        }
        let to = format!("/api/v1/drafts/{}", draft.id);
        Ok(([(header::LOCATION, to)], once::json(StatusCode::CREATED, answer)).into_response())
    })
    .await
}

pub(super) async fn list(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let token = allowed(&site, request.headers(), Role::Depositor)?;
    aside(&site, move |site| {
        let drafts = site.drafts.of(&token.id).map_err(refused)?;
        let drafts: Vec<Value> = drafts.iter().map(told).collect();
        Ok(axum::Json(json!({ "drafts": drafts })).into_response())
    })
    .await
}

pub(super) async fn get(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let id = id(&request);
    let headers = request.headers().clone();
    aside(&site, move |site| {
        own(site, &headers, &id)?;
        let draft = site.drafts.get(&id).ok_or(ArchiveError::NoDraft).map_err(refused)?;
        Ok(axum::Json(told(&draft)).into_response())
    })
    .await
}

pub(super) async fn describe(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let (id, headers) = (id(&request), request.headers().clone());
    allowed(&site, &headers, Role::Depositor)?;
    let (more, _): (Described, String) = json_body(&site, request).await?;
    aside(&site, move |site| {
        let (token, updates) = own(site, &headers, &id)?;
        may_say(&token, &more)?;
        if updates {
            more.clone().changes().map_err(refused)?;
        }
        let draft = site.drafts.describe(&id, more).map_err(refused)?;
        Ok(axum::Json(told(&draft)).into_response())
    })
    .await
}

pub(super) async fn delete(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let (id, headers) = (id(&request), request.headers().clone());
    aside(&site, move |site| {
        own(site, &headers, &id)?;
        site.drafts.delete(&id).map_err(refused)?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// The name of a file, from the path as it was sent: decoded once, in any bytes.
fn file_name(request: &Request) -> Result<Vec<u8>, Problem> {
    let name = request.uri().path().split_once("/files/").map(|(_, name)| name).unwrap_or_default();
    let digits =
        |rest: &str| rest.get(..2).is_some_and(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !name.split('%').skip(1).all(digits) {
        return Err(Problem::bad_request("`%` in a name stands before two hex digits: itself, it is %25"));
    }
    let name: Vec<u8> = percent_decode_str(name).collect();
    match ibi_protocol::FilePath::new(&name) {
        Ok(Some(_)) => Ok(name),
        Ok(None) => Err(Problem::bad_request("say the name of the file")),
        Err(error) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "bad-name", "Not a name for a file", error.to_string()))
        }
    }
}

/// Who only asks does not wait for who deposits: this thread, and those that it starts, give the core up at once to any that
/// wakes. A mere nice value would let each finish its slice of some milliseconds first.
fn stand_back() {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // A system that does not let us loses no more than that.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
}

/// A part of a file would be taken for the file (RFC 9110 §14.5), and what is packed for what is in it.
fn check_whole(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(header::CONTENT_RANGE) {
        return Err(Problem::bad_request("a file arrives whole: send all of it, without Content-Range"));
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let detail = "bytes are kept as they arrive: send them without Content-Encoding";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(Problem::new(status, "encoding", "Content-Encoding is not undone", detail))
        }
        _ => Ok(()),
    }
}

/// Takes a file in as it arrives, in constant memory.
pub(super) async fn put(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let id = id(&request);
    let (headers, asked) = (request.headers().clone(), id.clone());
    let (token, _) = aside(&site, move |site| own(site, &headers, &asked)).await?;
    let name = file_name(&request)?;
    check_whole(request.headers())?;
    let _place = site.arriving.place(&token.id).await.ok_or_else(Problem::internal)?;
    let (mut reading, feeding) = paced::to_reader(request.into_body(), &site.limits);
    let (tell, told_written) = oneshot::channel();
    let taking = {
        let site = Arc::clone(&site);
        move || {
            stand_back();
            // Whoever sent it may have gone.
            let _ = tell.send(site.drafts.put(&id, &name, &mut reading));
        }
    };
    std::thread::Builder::new().name("arriving".to_owned()).spawn(taking).map_err(|_| Problem::internal())?;
    let (fed, written) = tokio::join!(feeding, told_written);
    // What went wrong on the way in is the cause of what went wrong after.
    fed?;
    let file = written.map_err(|_| Problem::internal())?.map_err(refused)?;
    Ok(axum::Json(told_file(&file)).into_response())
}

pub(super) async fn take_out(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let id = id(&request);
    let (headers, name) = (request.headers().clone(), file_name(&request));
    aside(&site, move |site| {
        own(site, &headers, &id)?;
        if !site.drafts.take_out(&id, &name?).map_err(refused)? {
            return Err(Problem::not_found("the draft has no file of this name"));
        }
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// Makes it an item, or a version of one.
pub(super) async fn publish(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let id = id(&request);
    let token = allowed(&site, request.headers(), Role::Depositor)?;
    // What was published under this name stays published, also when the answer was lost.
    let key = format!("draft:{id}");
    let (headers, asked, name, asking) = (request.headers().clone(), id.clone(), key.clone(), token.clone());
    let claimed = aside(&site, move |site| {
        let holdings = site.desk.read().map_err(refused)?;
        if let Some(path) = holdings.made_by(&name).map_err(refused)? {
            site.drafts.delete(&asked).map_err(refused)?;
            let past = holdings.history(&path).map_err(refused)?;
            let made = past.iter().find(|event| event.key.as_ref() == Some(&name));
            let made = made.filter(|event| event.by == asking.name || asking.role == Role::Operator);
            let made = made.ok_or_else(no_draft)?;
            let updated = made.verb == Verb::Update;
            return Ok(Err((path, if updated { StatusCode::OK } else { StatusCode::CREATED })));
        }
        own(site, &headers, &asked)?;
        site.drafts.claim(&asked).map_err(refused).map(Ok)
    });
    let draft = match claimed.await? {
        Ok(draft) => draft,
        Err((path, status)) => return shown(&site, &path, status),
    };
    let updates = draft.updates.as_ref().map(|(path, _)| path.clone());
    let desk = Arc::clone(&site.desk);
    let change = {
        let site = Arc::clone(&site);
        move |archive: &mut Archive| {
            let prepared = site.drafts.prepare(archive, draft, &token.name, Some(key))?;
            Ok(prepared.map(|prepared| prepared.with_authority(authority(&token))))
        }
    };
    // Whether the one who asks waits or goes, it is done, or given up.
    let done = tokio::spawn({
        let site = Arc::clone(&site);
        async move {
            let done = desk.change(change).await;
            let is_done = done.is_ok();
            let ended = aside(&site, move |site| match is_done {
                true => site.drafts.delete(&id).map_err(refused),
                false => {
                    site.drafts.release(&id);
                    Ok(())
                }
            });
            // Left behind, it goes when it is published again.
            let _ = ended.await;
            done
        }
    });
    let path = done.await.map_err(|_| Problem::internal())?.map_err(refused)?;
    let status = if updates.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    metrics::counter!("ibi_published_total").increment(1);
    shown(&site, &path.or(updates).unwrap_or_default(), status)
}
