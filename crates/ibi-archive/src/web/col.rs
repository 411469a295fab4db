//! `/col/<label>/…`: items, their files, their metadata (clause 2.3).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use ibi_http::Problem;
use ibi_http::accept::{Taste, Tongue, value};
use ibi_protocol::{ContentType, FilePath};
use ibi_store::journal::State as ItemState;
use ibi_store::ocfl::logical;
use ibi_store::records::{FileRecord, Role};
use percent_encoding::percent_decode_str;

use crate::ArchiveError;
use crate::access::Access;
use crate::archive::{Holding, Holdings};
use crate::full_record::full_record;
use crate::holders::behind::BehindNote;
use crate::item::Labels;
use crate::relations::FORMATS;
use crate::service::address;
use crate::service::answer::may_open;
use crate::service::{Reader, What};
use crate::told::Told;
use crate::web::errors::told;
use crate::web::file::{self, Served};
use crate::web::leaving;
use crate::web::pages;
use crate::web::site::{Site, agent, problem};

/// What a path asks for.
enum Asked {
    Page,
    Files,
    /// A file, maybe of an older version.
    File(Option<u32>, FilePath),
    /// A folder of files, maybe all of them.
    Folder(Option<u32>, Option<FilePath>),
    /// Its metadata in the one format that there is.
    Format,
}

pub(super) async fn get(State(site): State<Arc<Site>>, request: Request) -> Response {
    let client = Client::of(&site, &request);
    match answer(&site, &client).await {
        Ok(response) => response,
        Err(problem) => told(&client.headers, client.uri.query(), problem),
    }
}

/// Who asks, and what for.
pub(super) struct Client {
    pub(super) ip: std::net::IpAddr,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
}

impl Client {
    pub(super) fn of(site: &Site, request: &Request) -> Self {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        Self { ip: site.client(request), method, uri, headers: request.headers().clone() }
    }

    pub(super) fn tongue(&self) -> Tongue {
        Tongue::of(&self.headers, self.uri.query())
    }
}

async fn answer(site: &Arc<Site>, client: &Client) -> Result<Response, Problem> {
    let path = client.uri.path().strip_prefix("/col/").unwrap_or_default();
    let holdings = site.desk.read().map_err(|error| problem(&error))?;
    // Labels are ASCII; some clients encode `@` or `:`.
    let Some((label, rest)) = split(path) else {
        return from_older(&holdings, path, client.uri.query()).ok_or_else(|| {
            Problem::not_found("there is no identifier in this address: it would look like /col/sid.inpe.br/mtc-m18/2009/02.16.17.46/")
        });
    };
    let (holding, role) = match holdings.find(&label) {
        Ok(found) => found,
        Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. }) => {
            return Err(unknown(site, &label));
        }
        Err(error) => return Err(problem(&error)),
    };
    let labels = if role == Role::Metadata { &holding.item.metadata } else { &holding.item.labels };
    if label != labels.primary() || rest.is_empty() {
        // One address for each thing, so that links between items work from there.
        let query = client.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let rest = if rest.is_empty() { "/" } else { rest };
        return Ok(Redirect::permanent(&format!("/col/{}{rest}{query}", labels.primary())).into_response());
    }
    let asked = read(rest)?;
    if holding.state == ItemState::Deleted {
        return tombstone(&holdings, &holding, role, client);
    }
    let behind = holdings.behind(&holding);
    let label = holding.item.labels.primary().to_owned();
    let mut response = held(site, holdings, holding, role, asked, client).await?;
    if let Some(behind) = behind {
        say_behind(response.headers_mut(), &behind, &label);
    }
    Ok(response)
}

/// Says that a copy is behind, and who has a later version (clause 2.1): `Link` with
/// `latest-version` (RFC 5829), and both versions.
fn say_behind(headers: &mut HeaderMap, behind: &BehindNote, label: &str) {
    let BehindNote { version, latest, holder, .. } = behind;
    let link = HeaderValue::from_str(&format!("<{holder}/col/{label}/>; rel=\"latest-version\""));
    if let Ok(link) = link {
        headers.append(header::LINK, link);
    }
    if let Ok(told) = HeaderValue::from_str(&format!("version={version}, latest={latest}")) {
        headers.insert("ibi-copy-behind", told);
    }
}

/// What is here of an item that was not removed.
async fn held(
    site: &Arc<Site>,
    holdings: Reader<'_>,
    holding: Holding,
    role: Role,
    asked: Asked,
    client: &Client,
) -> Result<Response, Problem> {
    match asked {
        Asked::Page if role == Role::Metadata => metadata_page(site, &holding, client),
        Asked::Page => item_page(site, &holdings, &holding, client),
        Asked::Format => oai_dc(site, &holdings, &holding),
        _ if role == Role::Metadata => Err(Problem::not_found(format!(
            "metadata have no files: {} is the item",
            holding.item.labels.primary()
        ))),
        Asked::Files => file_list(site, &holdings, &holding, client),
        Asked::Folder(..) if !may_open(&holding, Some(client.ip), site.now()) => Ok(closed(&holding, client)),
        Asked::Folder(version, None) => opened(site, &holdings, &holding, version, client),
        Asked::Folder(version, Some(folder)) => folder_page(&holdings, &holding, version, &folder),
        Asked::File(version, path) => {
            if !may_open(&holding, Some(client.ip), site.now()) {
                return Ok(closed(&holding, client));
            }
            let found = find_file(&holdings, &holding, version, &path)?;
            let checked = holdings.open_file(&holding.path, &found).map_err(|error| problem(&error))?;
            // Nothing of the index is held while bytes go out.
            drop(holdings);
            let changed =
                holding.item.data_time().parse::<ibi_id::Instant>().map_or(0, |time| time.seconds());
            let public = holding.item.access == Access::Public;
            let served = Served { file: &found, checked, changed, now: site.now(), public };
            let response = file::serve(&site.blocks, served, &client.method, &client.headers).await;
            if response.status().is_success() {
                count(site, &holding.path, ContentType::Data, What::Download, &found.name, client);
            }
            Ok(response)
        }
    }
}

/// Links between items are relative (clause 2.3). On a page of an older version, which lies one folder deeper, they come out behind
/// the first word of that item's own label.
fn from_older(holdings: &Holdings, path: &str, query: Option<&str>) -> Option<Response> {
    let (_, meant) = path.split_once('/')?;
    let (label, _) = split(meant)?;
    holdings.find(&label).ok()?;
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Some(Redirect::temporary(&format!("/col/{meant}{query}")).into_response())
}

/// The label at the beginning of a path, decoded once, and the rest as it is.
fn split(path: &str) -> Option<(String, &str)> {
    if let Some((label, rest)) = address::split(path) {
        return Some((label.to_owned(), rest));
    }
    // A slash that is encoded is no slash, and no label has one in a word.
    let decoded =
        percent_decode_str(path).decode_utf8().ok().filter(|_| !path.to_ascii_lowercase().contains("%2f"))?;
    let (label, _) = address::split(&decoded)?;
    let slashes = label.matches('/').count();
    let end = path.match_indices('/').nth(slashes).map_or(path.len(), |(at, _)| at);
    Some((label.to_owned(), path.get(end..)?))
}

fn read(rest: &str) -> Result<Asked, Problem> {
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    match rest {
        "" => return Ok(Asked::Page),
        "files" => return Ok(Asked::Files),
        format if FORMATS.contains(&format) => return Ok(Asked::Format),
        _ => {}
    }
    let (version, file) = match rest.split_once('/') {
        Some(("doc", file)) => (None, file),
        None if rest == "doc" => (None, ""),
        Some((version, file)) => {
            let number = version.strip_prefix('v').filter(|number| !number.starts_with('0'));
            let number = number.and_then(|number| number.parse::<u32>().ok());
            let file = file.strip_prefix("doc").filter(|file| file.is_empty() || file.starts_with('/'));
            let (Some(number), Some(file)) = (number, file) else { return Err(no_such_page()) };
            (Some(number), file)
        }
        None => return Err(no_such_page()),
    };
    let bad = |error: ibi_protocol::FilePathError| Problem::bad_request(error.to_string());
    match FilePath::from_url(file).map_err(bad)? {
        Some(path) if !file.ends_with('/') => Ok(Asked::File(version, path)),
        folder => Ok(Asked::Folder(version, folder)),
    }
}

fn no_such_page() -> Problem {
    Problem::not_found(
        "an item has a page at /col/<label>/, files below doc/, a list of them at files, and oai_dc",
    )
}

fn unknown(site: &Site, label: &str) -> Problem {
    let elsewhere = match &site.resolver {
        Some(resolver) => format!(" If it is elsewhere, {resolver}{label} leads there."),
        None => " A resolver may know who has it.".to_owned(),
    };
    Problem::not_found(format!("{label} is not in this Archive.{elsewhere}"))
}

fn find_file(
    holdings: &Holdings,
    holding: &Holding,
    version: Option<u32>,
    path: &FilePath,
) -> Result<FileRecord, Problem> {
    // It is looked up by its name: no path is ever joined (threat W1).
    let found = match version {
        None => holdings.file_named(&holding.path, path.as_bytes()),
        Some(version) => older(holdings, holding, version, path.as_bytes()),
    };
    found.map_err(|error| problem(&error))?.ok_or_else(|| {
        let list = address::file_list(&holding.item.labels);
        Problem::not_found(format!("the item has no file of this name; {list} lists those it has"))
    })
}

fn older(
    holdings: &Holdings,
    holding: &Holding,
    version: u32,
    name: &[u8],
) -> Result<Option<FileRecord>, ArchiveError> {
    let Ok(name) = logical(name.strip_prefix(b"/").unwrap_or(name)) else { return Ok(None) };
    holdings.file_of_version(&holding.path, version, &name)
}

/// To a file of a version.
fn to_file(labels: &Labels, version: Option<u32>, name: &str) -> Response {
    let place = version.map(|version| format!("v{version}/")).unwrap_or_default();
    let to = address::file(labels, name).replacen("/doc/", &format!("/{place}doc/"), 1);
    Redirect::temporary(&to).into_response()
}

/// What an item opens, or opened in an older version: its target file, its target URL, or its page.
fn opened(
    site: &Site,
    holdings: &Holdings,
    holding: &Holding,
    version: Option<u32>,
    client: &Client,
) -> Result<Response, Problem> {
    let older = match version {
        None => None,
        Some(version) => {
            let item = holdings.item_of_version(&holding.path, version).map_err(|error| problem(&error))?;
            Some(item.ok_or_else(|| Problem::not_found("the item has no such version"))?)
        }
    };
    let item = older.as_ref().unwrap_or(&holding.item);
    if let Some(url) = &item.url {
        let pairs = leaving::raw_pairs(client.uri.query());
        return Ok(leaving::lead(site, holding, url, client, &pairs));
    }
    let labels = &holding.item.labels;
    Ok(match &item.target {
        Some(target) => to_file(labels, version, target),
        None => Redirect::temporary(&address::item(labels)).into_response(),
    })
}

/// A folder: its index.
fn folder_page(
    holdings: &Holdings,
    holding: &Holding,
    version: Option<u32>,
    folder: &FilePath,
) -> Result<Response, Problem> {
    let labels = &holding.item.labels;
    let folder = folder.as_bytes().strip_prefix(b"/").unwrap_or_default();
    for index in ["index.html", "index.htm"] {
        let Ok(name) = logical(&[folder, index.as_bytes()].concat()) else { continue };
        let found = match version {
            None => holdings.file(&holding.path, &name),
            Some(version) => holdings.file_of_version(&holding.path, version, &name),
        };
        if found.map_err(|error| problem(&error))?.is_some() {
            return Ok(to_file(labels, version, &name));
        }
    }
    Err(Problem::not_found(format!("a folder has no page; {} lists all files", address::file_list(labels))))
}

pub(super) fn count(site: &Site, path: &str, kind: ContentType, what: What, thing: &str, client: &Client) {
    // Looking at headers is not fetching, nor is going on in the middle.
    let begins = match client.headers.get(header::RANGE).and_then(|range| range.to_str().ok()) {
        Some(range) => range.trim_start_matches("bytes=").starts_with("0-"),
        None => true,
    };
    if client.method == Method::GET && begins {
        let who = crate::service::Client { ip: client.ip, agent: agent(&client.headers) };
        site.statistics.count((path, kind), what, thing, &who, site.now());
    }
}

fn item_page(
    site: &Site,
    holdings: &Holdings,
    holding: &Holding,
    client: &Client,
) -> Result<Response, Problem> {
    let open = may_open(holding, Some(client.ip), site.now());
    let failed = |error: ArchiveError| problem(&error);
    if Taste::of(&client.headers) == Taste::Json {
        let told = if open {
            Told::of(holdings, holding, Role::Item)
        } else {
            Ok(Told::hidden(holding, Role::Item))
        };
        let told = told.and_then(|told| told.with_history(holdings, holding)).map_err(failed)?;
        return Ok(axum::Json(told).into_response());
    }
    count(site, &holding.path, ContentType::Data, What::View, "page", client);
    pages::item(holdings, holding, open, client.tongue()).map_err(failed)
}

fn metadata_page(site: &Site, holding: &Holding, client: &Client) -> Result<Response, Problem> {
    if Taste::of(&client.headers) == Taste::Json {
        return Ok(axum::Json(Told::without_files(holding, Role::Metadata)).into_response());
    }
    count(site, &holding.path, ContentType::Metadata, What::View, "metadata", client);
    let asked = client.uri.query().and_then(|query| value(query, "lang"));
    Ok(pages::metadata(holding, client.tongue(), asked.as_deref()))
}

/// The `oai_dc` record of an item, the same wherever it is served (clause 2.2).
pub(super) fn oai_dc(site: &Site, holdings: &Holdings, holding: &Holding) -> Result<Response, Problem> {
    // The same bytes for all: what is closed to some is told to nobody.
    let open = may_open(holding, None, site.now());
    let record = full_record(holdings, holding, site.resolver.as_deref(), open);
    let record = record.map_err(|error| problem(&error))?;
    let kind = HeaderValue::from_static("application/xml; charset=utf-8");
    let safe = HeaderValue::from_static("nosniff");
    let fresh = HeaderValue::from_static("no-cache");
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, safe),
        (header::CACHE_CONTROL, fresh),
    ];
    Ok(pages::dated((headers, record.to_xml()).into_response(), &holding.item.updated))
}

fn file_list(
    site: &Site,
    holdings: &Holdings,
    holding: &Holding,
    client: &Client,
) -> Result<Response, Problem> {
    let open = may_open(holding, Some(client.ip), site.now());
    pages::files(holdings, holding, open, client.tongue()).map_err(|error| problem(&error))
}

fn closed(holding: &Holding, client: &Client) -> Response {
    let detail = format!(
        "the files of {} are open to others, or later ({}); its metadata are open to all: {}",
        holding.item.labels.primary(),
        holding.item.access,
        address::item(&holding.item.metadata)
    );
    if Taste::of(&client.headers) == Taste::Page {
        return pages::closed(holding, client.tongue());
    }
    told(&client.headers, client.uri.query(), Problem::forbidden(detail))
}

pub(super) fn tombstone(
    holdings: &Holdings,
    holding: &Holding,
    role: Role,
    client: &Client,
) -> Result<Response, Problem> {
    if Taste::of(&client.headers) == Taste::Json {
        let told = Told::without_files(holding, role)
            .with_history(holdings, holding)
            .map_err(|error| problem(&error))?;
        return Ok((http::StatusCode::GONE, axum::Json(told)).into_response());
    }
    Ok(pages::tombstone(holding, client.tongue()))
}
