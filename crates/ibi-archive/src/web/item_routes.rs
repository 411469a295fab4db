//! `/col/<label>/…`: items, their files, their metadata (clause 2.3).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use ibi_http::Problem;
use ibi_http::accept::{PreferredFormat, query_value};
use ibi_protocol::{ContentType, FilePath};
use ibi_store::index::{FileRecord, LabelRole};
use ibi_store::journal::State as ItemState;
use ibi_store::ocfl::logical_path;
use percent_encoding::percent_decode_str;

use crate::ArchiveError;
use crate::access::AccessRule;
use crate::archive::{HeldItem, Holdings};
use crate::engine::EngineReader;
use crate::engine::shared_objects::{self, SharedObjectPart, SharedReadError};
use crate::full_record::full_record;
use crate::item::ItemLabels;
use crate::item_view::ItemView;
use crate::object::listing::VersionListing;
use crate::relations::METADATA_FORMATS;
use crate::replica::stale_copies::StaleCopyNote;
use crate::service::StatisticsEvent;
use crate::service::address;
use crate::service::answer::may_open;
use crate::web::file::{self, ServedFile};
use crate::web::large_response;
use crate::web::pages::problem_response;
use crate::web::pages::{self, words::PageLanguage};
use crate::web::site::{ArchiveSite, problem, user_agent_of};
use crate::web::target_redirect;

/// The resource that a path names.
enum PageResource {
    Page,
    Files,
    /// A file, possibly of an older version.
    File(Option<u32>, FilePath),
    /// A folder, or all files, possibly of an older version.
    Folder(Option<u32>, Option<FilePath>),
    /// The metadata in the only supported format.
    Format,
}

pub(super) async fn get(State(site): State<Arc<ArchiveSite>>, request: Request) -> Response {
    let client = PageRequest::of(&site, &request);
    match answer(&site, &client).await {
        Ok(response) => response,
        Err(problem) => problem_response(&client.headers, client.uri.query(), problem),
    }
}

/// A request, with its client.
#[derive(Clone)]
pub(super) struct PageRequest {
    pub(super) ip: std::net::IpAddr,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
}

impl PageRequest {
    pub(super) fn of(site: &ArchiveSite, request: &Request) -> Self {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        Self { ip: site.client_address(request), method, uri, headers: request.headers().clone() }
    }

    pub(super) fn language(&self) -> PageLanguage {
        PageLanguage::of(&self.headers, self.uri.query())
    }
}

async fn answer(site: &Arc<ArchiveSite>, client: &PageRequest) -> Result<Response, Problem> {
    let path = client.uri.path().strip_prefix("/col/").unwrap_or_default();
    let holdings = site.desk.read().map_err(|error| problem(&error))?;
    // Labels are ASCII; some clients encode `@` or `:`.
    let Some((label, rest)) = split_label(path) else {
        return redirect_from_older(&holdings, path, client.uri.query()).ok_or_else(|| {
            Problem::not_found(
                "no identifier in this address: write it like /col/sid.inpe.br/mtc-m18/2009/02.16.17.46/",
            )
            .in_portuguese(
                "não há identificador neste endereço: escreva-o como /col/sid.inpe.br/mtc-m18/2009/02.16.17.46/",
            )
        });
    };
    let (holding, role) = match holdings.find_bare(&label) {
        Ok(found) => found,
        Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. }) => {
            return Err(unknown_item_problem(site, &label));
        }
        Err(error) => return Err(problem(&error)),
    };
    let labels = if role == LabelRole::Metadata { &holding.item.metadata } else { &holding.item.labels };
    if label != labels.primary() || rest.is_empty() {
        // One canonical address per item, so that relative links between items work.
        let query = client.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let rest = if rest.is_empty() { "/" } else { rest };
        return Ok(Redirect::permanent(&format!("/col/{}{rest}{query}", labels.primary())).into_response());
    }
    let asked = parse_page_resource(rest)?;
    if holding.state == ItemState::Deleted {
        let bytes = large_response::metadata_bytes(&holdings, &holding)?;
        return answer_by_size(
            site,
            holdings,
            holding,
            bytes,
            client,
            move |_, holdings, holding, client| tombstone(holdings, holding, role, client),
        )
        .await;
    }
    let behind = holdings.stale_copy_note(&holding);
    let label = holding.item.labels.primary().to_owned();
    let mut response = serve_item(site, holdings, holding, role, asked, client).await?;
    if let Some(behind) = behind {
        add_behind_headers(response.headers_mut(), &behind, &label);
    }
    Ok(response)
}

/// Marks an outdated copy and names a holder of a later version (clause 2.1): `Link` with
/// `latest-version` (RFC 5829), and both versions.
fn add_behind_headers(headers: &mut HeaderMap, behind: &StaleCopyNote, label: &str) {
    let StaleCopyNote { version, latest, holder, .. } = behind;
    let link = HeaderValue::from_str(&format!("<{holder}/col/{label}/>; rel=\"latest-version\""));
    if let Ok(link) = link {
        headers.append(header::LINK, link);
    }
    if let Ok(told) = HeaderValue::from_str(&format!("version={version}, latest={latest}")) {
        headers.insert("ibi-copy-behind", told);
    }
}

/// Serves an item that was not removed.
async fn serve_item(
    site: &Arc<ArchiveSite>,
    holdings: EngineReader<'_>,
    holding: HeldItem,
    role: LabelRole,
    asked: PageResource,
    client: &PageRequest,
) -> Result<Response, Problem> {
    match asked {
        PageResource::Page if role == LabelRole::Metadata => {
            let bytes = large_response::metadata_bytes(&holdings, &holding)?;
            answer_by_size(site, holdings, holding, bytes, client, |site, _, holding, client| {
                metadata_page(site, holding, client)
            })
            .await
        }
        PageResource::Format => {
            let bytes = large_response::metadata_bytes(&holdings, &holding)?;
            answer_by_size(site, holdings, holding, bytes, client, |site, holdings, holding, _| {
                oai_dc(site, holdings, holding)
            })
            .await
        }
        PageResource::Page => {
            let bytes =
                large_response::metadata_bytes(&holdings, &holding)? + files_bytes(&holdings, &holding)?;
            answer_by_size(site, holdings, holding, bytes, client, item_page).await
        }
        _ if role == LabelRole::Metadata => {
            let item = holding.item.labels.primary();
            Err(Problem::not_found(format!("metadata have no files: {item} is the item"))
                .in_portuguese(format!("metadados não têm arquivos: o item é {item}")))
        }
        PageResource::Files => {
            let bytes = large_response::metadata_bytes(&holdings, &holding)?;
            answer_by_size(site, holdings, holding, bytes, client, file_list).await
        }
        PageResource::Folder(..) | PageResource::File(..)
            if !may_open(&holding, Some(client.ip), site.now()) =>
        {
            let bytes = large_response::metadata_bytes(&holdings, &holding)?;
            answer_by_size(site, holdings, holding, bytes, client, |_, _, holding, client| {
                Ok(closed_response(holding, client))
            })
            .await
        }
        PageResource::Folder(version, folder) => {
            let older = match version {
                None => None,
                Some(version) => Some((version, older_version_listing(site, &holding, version).await?)),
            };
            match folder {
                None => open_item(site, &holding, older.as_ref(), client),
                Some(folder) => match redirect_below_target(site, &holding, older.as_ref(), &folder, client)?
                {
                    Some(response) => Ok(response),
                    None => folder_page(&holdings, &holding, older.as_ref(), &folder),
                },
            }
        }
        PageResource::File(version, path) => {
            let older = match version {
                None => None,
                Some(version) => Some((version, older_version_listing(site, &holding, version).await?)),
            };
            let found = match &older {
                // Looked up by name: paths are never joined (threat W1).
                None => {
                    holdings.file_named(&holding.path, path.as_bytes()).map_err(|error| problem(&error))?
                }
                Some((_, older)) => older_file(older, path.as_bytes()),
            };
            let Some(found) = found else {
                let led = redirect_below_target(site, &holding, older.as_ref(), &path, client)?;
                return led.ok_or_else(|| no_such_file(&address::file_list_path(&holding.item.labels)));
            };
            let checked = holdings.open_file(&holding.path, &found).map_err(|error| problem(&error))?;
            // Release the index while the file is sent.
            drop(holdings);
            let changed =
                holding.item.data_time().parse::<ibi_id::Instant>().map_or(0, |time| time.seconds());
            let public = holding.item.access == AccessRule::Public;
            let served = ServedFile { file: &found, checked, changed, now: site.now(), public };
            let response = file::serve(&site.blocks, served, &client.method, &client.headers).await;
            if response.status().is_success() {
                count_access(
                    site,
                    &holding.path,
                    ContentType::Data,
                    StatisticsEvent::Download,
                    &found.name,
                    client,
                );
            }
            Ok(response)
        }
    }
}

/// Links between items are relative (clause 2.3). On a page of an older version, one folder deeper,
/// they resolve to a path after the first word of that item's own label.
fn redirect_from_older(holdings: &Holdings, path: &str, query: Option<&str>) -> Option<Response> {
    let (_, meant) = path.split_once('/')?;
    let (label, _) = split_label(meant)?;
    holdings.find_bare(&label).ok()?;
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Some(Redirect::temporary(&format!("/col/{meant}{query}")).into_response())
}

/// Splits a path into its label, percent-decoded once, and the rest as sent.
fn split_label(path: &str) -> Option<(String, &str)> {
    if let Some((label, rest)) = address::split_label(path) {
        return Some((label.to_owned(), rest));
    }
    // An encoded slash is not a separator, and no label contains one within a word.
    let decoded =
        percent_decode_str(path).decode_utf8().ok().filter(|_| !path.to_ascii_lowercase().contains("%2f"))?;
    let (label, _) = address::split_label(&decoded)?;
    let slashes = label.matches('/').count();
    let end = path.match_indices('/').nth(slashes).map_or(path.len(), |(at, _)| at);
    Some((label.to_owned(), path.get(end..)?))
}

fn parse_page_resource(rest: &str) -> Result<PageResource, Problem> {
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    match rest {
        "" => return Ok(PageResource::Page),
        "files" => return Ok(PageResource::Files),
        format if METADATA_FORMATS.contains(&format) => return Ok(PageResource::Format),
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
    let bad = |error: ibi_protocol::FilePathError| {
        Problem::bad_request(error.to_string()).in_portuguese(error.in_portuguese())
    };
    match FilePath::from_url(file).map_err(bad)? {
        Some(path) if !file.ends_with('/') => Ok(PageResource::File(version, path)),
        folder => Ok(PageResource::Folder(version, folder)),
    }
}

fn no_such_page() -> Problem {
    Problem::not_found(
        "an item has a page at /col/<label>/, files below doc/, a list of them at files, and oai_dc",
    )
    .in_portuguese(
        "um item tem uma página em /col/<rótulo>/, arquivos abaixo de doc/, a lista deles em files, e oai_dc",
    )
}

/// The item has no such file; `list` is the address of its file list.
pub(super) fn no_such_file(list: &str) -> Problem {
    Problem::not_found(format!("the item has no file of this name; {list} lists its files"))
        .in_portuguese(format!("o item não tem arquivo com este nome; {list} lista os arquivos"))
}

fn unknown_item_problem(site: &ArchiveSite, label: &str) -> Problem {
    let (english, portuguese) = match &site.resolver {
        Some(resolver) => (
            format!(
                "{label} is not in this Archive. If another Archive has it, {resolver}{label} redirects there."
            ),
            format!("{label} não está neste acervo. Se outro acervo o tem, {resolver}{label} leva até ele."),
        ),
        None => (
            format!("{label} is not in this Archive. A resolver may know which Archive has it."),
            format!("{label} não está neste acervo. Um resolvedor pode saber que acervo o tem."),
        ),
    };
    Problem::not_found(english).in_portuguese(portuguese)
}

/// Builds the response directly if it is small, otherwise within a memory grant.
pub(super) async fn answer_by_size<C: Clone + Send + 'static>(
    site: &Arc<ArchiveSite>,
    holdings: EngineReader<'_>,
    holding: HeldItem,
    bytes: u64,
    client: &C,
    answer: impl FnOnce(&Arc<ArchiveSite>, &Holdings, &HeldItem, &C) -> Result<Response, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    if bytes == 0 {
        return answer(site, &holdings, &holding, client);
    }
    // Release the index while waiting.
    drop(holdings);
    let client = client.clone();
    large_response::answer_with_grant(site, bytes, move |site| {
        let holdings = site.desk.read().map_err(|error| problem(&error))?;
        holdings.load_long_metadata(&holding).map_err(|error| problem(&error))?;
        answer(site, &holdings, &holding, &client)
    })
    .await
}

/// Memory to show the files of an item; 0 if there are few.
fn files_bytes(holdings: &Holdings, holding: &HeldItem) -> Result<u64, Problem> {
    let many = has_many_files(holdings, holding)?;
    Ok(if many { large_response::FILES_PAGE_BYTES } else { 0 })
}

fn has_many_files(holdings: &Holdings, holding: &HeldItem) -> Result<bool, Problem> {
    holdings
        .has_more_files(&holding.path, large_response::MAX_UNSTREAMED_FILES)
        .map_err(|error| problem(&error))
}

async fn older_version_listing(
    site: &Arc<ArchiveSite>,
    holding: &HeldItem,
    version: u32,
) -> Result<OlderVersionListing, Problem> {
    let found = shared_objects::listing(&site.desk, &holding.path, version).await;
    let found = found.map_err(|error| match error {
        SharedReadError::Archive(error) => problem(&error),
        SharedReadError::Refused(problem) => problem,
    })?;
    found.ok_or_else(|| {
        Problem::not_found("the item has no such version").in_portuguese("o item não tem essa versão")
    })
}

/// The listing of an older version, shared between requests.
type OlderVersionListing = Arc<SharedObjectPart<VersionListing>>;

fn older_file(older: &VersionListing, name: &[u8]) -> Option<FileRecord> {
    older.file(&logical_path(name.strip_prefix(b"/").unwrap_or(name)).ok()?)
}

/// Redirects to a file of a version.
fn redirect_to_file(labels: &ItemLabels, version: Option<u32>, name: &str) -> Response {
    let place = version.map(|version| format!("v{version}/")).unwrap_or_default();
    let to = address::item_file_path(labels, name).replacen("/doc/", &format!("/{place}doc/"), 1);
    Redirect::temporary(&to).into_response()
}

/// Opens an item, or an older version of it: its target file, its target URL or its page.
fn open_item(
    site: &ArchiveSite,
    holding: &HeldItem,
    older: Option<&(u32, OlderVersionListing)>,
    client: &PageRequest,
) -> Result<Response, Problem> {
    let (url, target) = match older {
        None => (&holding.item.url, &holding.item.target),
        Some((_, older)) => (&older.url, &older.target),
    };
    if let Some(url) = url {
        let pairs = target_redirect::encode_query(client.uri.query());
        return target_redirect::redirect_to_target(site, holding, url, None, client, &pairs);
    }
    let labels = &holding.item.labels;
    Ok(match target {
        Some(target) => redirect_to_file(labels, older.map(|(version, _)| *version), target),
        None => Redirect::temporary(&address::item_page_path(labels)).into_response(),
    })
}

/// Redirects below the target URL of an item that has one instead of files (D31).
fn redirect_below_target(
    site: &ArchiveSite,
    holding: &HeldItem,
    older: Option<&(u32, OlderVersionListing)>,
    path: &FilePath,
    client: &PageRequest,
) -> Result<Option<Response>, Problem> {
    let url = older.map_or(&holding.item.url, |(_, older)| &older.url);
    let Some(url) = url else { return Ok(None) };
    let pairs = target_redirect::encode_query(client.uri.query());
    target_redirect::redirect_to_target(site, holding, url, Some(path), client, &pairs).map(Some)
}

/// Redirects to the index page of a folder.
fn folder_page(
    holdings: &Holdings,
    holding: &HeldItem,
    older: Option<&(u32, OlderVersionListing)>,
    folder: &FilePath,
) -> Result<Response, Problem> {
    let labels = &holding.item.labels;
    let folder = folder.as_bytes().strip_prefix(b"/").unwrap_or_default();
    for index in ["index.html", "index.htm"] {
        let Ok(name) = logical_path(&[folder, index.as_bytes()].concat()) else { continue };
        let found = match older {
            None => holdings.file(&holding.path, &name).map_err(|error| problem(&error))?,
            Some((_, older)) => older.file(&name),
        };
        if found.is_some() {
            return Ok(redirect_to_file(labels, older.map(|(version, _)| *version), &name));
        }
    }
    let list = address::file_list_path(labels);
    Err(Problem::not_found(format!("folders have no page; {list} lists all files"))
        .in_portuguese(format!("pastas não têm página; {list} lista todos os arquivos")))
}

pub(super) fn count_access(
    site: &ArchiveSite,
    path: &str,
    kind: ContentType,
    what: StatisticsEvent,
    thing: &str,
    client: &PageRequest,
) {
    // HEAD requests and resumed downloads do not count.
    let begins = match client.headers.get(header::RANGE).and_then(|range| range.to_str().ok()) {
        Some(range) => range.trim_start_matches("bytes=").starts_with("0-"),
        None => true,
    };
    if client.method == Method::GET && begins {
        let who = crate::service::StatisticsClient { ip: client.ip, agent: user_agent_of(&client.headers) };
        site.statistics.count((path, kind), what, thing, &who, site.now());
    }
}

fn item_page(
    site: &Arc<ArchiveSite>,
    holdings: &Holdings,
    holding: &HeldItem,
    client: &PageRequest,
) -> Result<Response, Problem> {
    let open = may_open(holding, Some(client.ip), site.now());
    let failed = |error: ArchiveError| problem(&error);
    if PreferredFormat::of(&client.headers) == PreferredFormat::Json {
        if open && has_many_files(holdings, holding)? {
            return large_response::streamed_item_response(
                site,
                holdings,
                holding,
                LabelRole::Item,
                Vec::new(),
            );
        }
        let told = if open {
            ItemView::of(holdings, holding, LabelRole::Item)
        } else {
            Ok(ItemView::without_target(holding, LabelRole::Item))
        };
        let told = told.and_then(|told| told.with_history(holdings, holding)).map_err(failed)?;
        return Ok(axum::Json(told).into_response());
    }
    count_access(site, &holding.path, ContentType::Data, StatisticsEvent::View, "page", client);
    pages::item(holdings, holding, open, client.language()).map_err(failed)
}

fn metadata_page(site: &ArchiveSite, holding: &HeldItem, client: &PageRequest) -> Result<Response, Problem> {
    if PreferredFormat::of(&client.headers) == PreferredFormat::Json {
        return Ok(axum::Json(ItemView::without_files(holding, LabelRole::Metadata)).into_response());
    }
    count_access(site, &holding.path, ContentType::Metadata, StatisticsEvent::View, "metadata", client);
    let asked = client.uri.query().and_then(|query| query_value(query, "lang"));
    let open = may_open(holding, Some(client.ip), site.now());
    Ok(pages::metadata(holding, open, client.language(), asked.as_deref()))
}

/// The `oai_dc` record of an item, identical wherever it is served (clause 2.2).
pub(super) fn oai_dc(
    site: &ArchiveSite,
    holdings: &Holdings,
    holding: &HeldItem,
) -> Result<Response, Problem> {
    // The same bytes for everyone: what is closed to some clients is shown to none.
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
    Ok(pages::with_last_modified((headers, record.to_xml()).into_response(), &holding.item.updated))
}

fn file_list(
    site: &Arc<ArchiveSite>,
    holdings: &Holdings,
    holding: &HeldItem,
    client: &PageRequest,
) -> Result<Response, Problem> {
    let open = may_open(holding, Some(client.ip), site.now());
    if open && has_many_files(holdings, holding)? {
        return Ok(pages::streamed_files(site, holding, client.language()));
    }
    pages::files(holdings, holding, open, client.language()).map_err(|error| problem(&error))
}

fn closed_response(holding: &HeldItem, client: &PageRequest) -> Response {
    let detail = format!(
        "the files of {} are restricted ({}); its metadata are public: {}",
        holding.item.labels.primary(),
        holding.item.access,
        address::item_page_path(&holding.item.metadata)
    );
    if PreferredFormat::of(&client.headers) == PreferredFormat::Page {
        return pages::closed(holding, client.language());
    }
    problem_response(&client.headers, client.uri.query(), Problem::forbidden(detail))
}

pub(super) fn tombstone(
    holdings: &Holdings,
    holding: &HeldItem,
    role: LabelRole,
    client: &PageRequest,
) -> Result<Response, Problem> {
    if PreferredFormat::of(&client.headers) == PreferredFormat::Json {
        let told = ItemView::without_files(holding, role)
            .with_history(holdings, holding)
            .map_err(|error| problem(&error))?;
        return Ok((http::StatusCode::GONE, axum::Json(told)).into_response());
    }
    let removed = holdings.public_removal(holding).map_err(|error| problem(&error))?;
    Ok(pages::tombstone(holding, removed, client.language()))
}
