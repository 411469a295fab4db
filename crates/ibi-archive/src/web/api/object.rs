//! OCFL objects over the API, for other Archives that hold copies: `docs/formats/holders.md`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use ibi_http::Problem;
use ibi_http::memory::LargeBody;
use ibi_store::StorageError;
use ibi_store::index::FileRecord;
use ibi_store::journal::State;

use crate::ArchiveError;
use crate::access::AccessRule;
use crate::archive::{HeldItem, Holdings};
use crate::engine::shared_objects::{self, SharedReadError};
use crate::replica::object_description::ObjectDescription;
use crate::replica::object_reader::{ObjectFile, ObjectFileKind, ObjectReader};
use crate::replication::outgoing_transfer::OutgoingTransfer;
use crate::service::ServiceRole;
use crate::service::answer::may_open;
use crate::web::api::{archive_problem, authorize, run_site_blocking};
use crate::web::file::{self, ServedFile};
use crate::web::large_response;
use crate::web::site::ArchiveSite;

/// The object of an item, or one file of it.
pub(super) async fn get(
    site: Arc<ArchiveSite>,
    label: String,
    file: Option<String>,
    request: Request,
) -> Result<Response, Problem> {
    let client = site.client_address(&request);
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let asked = run_site_blocking(&site, move |site| {
        let holdings = site.desk.read().map_err(archive_problem)?;
        let (holding, _) = holdings.find_bare(&label).map_err(archive_problem)?;
        let asks =
            ApiObjectRequest { site: Arc::clone(site), client, headers: request.headers().clone(), holding };
        // Reject clients without any access before doing work.
        asks.check_readable(ObjectFileKind::Doc)
            .or_else(|problem| asks.check_readable(ObjectFileKind::Text).map_err(|_| problem))?;
        let recorded = match &file {
            Some(file) => asks.indexed_file(&holdings, file),
            None => Ok(None),
        };
        Ok((asks, file, recorded))
    });
    let (asks, file, recorded) = asked.await?;
    let found = match (file, recorded) {
        (None, _) => return asks.describe_object().await,
        (Some(_), Ok(Some(file))) => Ok(Some((ObjectFileKind::Doc, file))),
        (Some(file), Ok(None)) => asks.find_object_file(&file).await,
        (Some(_), Err(error)) => Err(error.into()),
    };
    // A client without access must not learn whether the file exists or is intact.
    let kind = match &found {
        Ok(Some((kind, _))) => *kind,
        Ok(None) | Err(_) => ObjectFileKind::Doc,
    };
    asks.check_readable(kind)?;
    let (_, mut file) = match found {
        Ok(found) => found.ok_or_else(|| asks.no_such_file())?,
        Err(error) => return damaged_object_response(error),
    };
    // For programs only: browsers must not display deposited content from here.
    "application/octet-stream".clone_into(&mut file.media);
    let opened = site.desk.read().and_then(|holdings| holdings.open_file(&asks.holding.path, &file));
    let checked = match opened {
        Ok(checked) => checked,
        Err(error) => return damaged_object_response(error.into()),
    };
    let updated = asks.holding.item.updated.parse::<ibi_id::Instant>();
    let changed = updated.map_or(0, |time| time.seconds());
    let served = ServedFile { file: &file, checked, changed, now: site.now(), public: asks.is_public() };
    Ok(file::serve(&site.blocks, served, &method, &headers).await)
}

/// A request for an object, with its client.
struct ApiObjectRequest {
    site: Arc<ArchiveSite>,
    client: IpAddr,
    headers: HeaderMap,
    holding: HeldItem,
}

impl ApiObjectRequest {
    async fn describe_object(self) -> Result<Response, Problem> {
        // The tombstone is sent; only the removed bytes are withheld.
        let is_open = self.check_readable(ObjectFileKind::Doc).is_ok();
        let path = self.holding.path.clone();
        let inventory = match shared_objects::inventory(&self.site.desk, &path).await {
            Ok(Some(inventory)) => inventory,
            // Recorded in the index, but missing from the tree.
            Ok(None) => {
                let label = self.holding.item.labels.primary().to_owned();
                return damaged_object_response(ArchiveError::Lost { label }.into());
            }
            Err(error) => return damaged_object_response(error),
        };
        let files = shared_objects::small_files_json(&self.site.desk, &path, &inventory, is_open).await;
        let files = match files {
            Ok(files) => files,
            Err(error) => return damaged_object_response(error),
        };
        let caching = if self.is_public() && is_open { "no-cache" } else { "private, no-cache" };
        let site = Arc::clone(&self.site);
        let held = run_site_blocking(&site, move |site| {
            let holdings = site.desk.read().map_err(archive_problem)?;
            let held = ObjectDescription::without_files(&holdings, &self.holding, &inventory)
                .map_err(archive_problem)?;
            held.to_json_around_files().ok_or_else(Problem::internal)
        });
        let (before, after) = held.await?;
        let parts = [before.into(), files, Bytes::from_static(after.as_bytes())];
        let mut response = Response::new(Body::new(LargeBody::new(parts, None)));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        Ok(large_response::mark_accounted(response))
    }

    /// A file of the object that the index does not list under its path.
    async fn find_object_file(
        &self,
        path: &str,
    ) -> Result<Option<(ObjectFileKind, FileRecord)>, SharedReadError> {
        let (desk, object) = (&self.site.desk, &self.holding.path);
        let Some(inventory) = shared_objects::inventory(desk, object).await? else { return Ok(None) };
        let (read, asked, from) = (Arc::clone(&inventory), path.to_owned(), object.clone());
        let found = self.site.run_blocking(move |site| {
            let holdings = site.desk.read()?;
            ObjectReader::for_object(&holdings, &from, &read).file(&asked)
        });
        match found.await.map_err(SharedReadError::Refused)?? {
            None => Ok(None),
            Some(ObjectFile::Whole { kind, place, digest }) => {
                let named = (path, place.as_str(), digest.as_str());
                let file = shared_objects::whole_file(desk, object, &inventory, named).await?;
                Ok(Some((kind, FileRecord::clone(&file))))
            }
            Some(ObjectFile::Described { version, name }) => {
                let listing = shared_objects::listing(desk, object, version).await?;
                let found = listing.and_then(|listing| listing.file(&name));
                let found = found.ok_or_else(|| ArchiveError::DamagedObject {
                    path: object.clone(),
                    what: format!("v{version} does not describe {name}"),
                })?;
                Ok(Some((ObjectFileKind::Doc, FileRecord { content: path.to_owned(), ..found })))
            }
        }
    }

    /// A file of the last version that is stored under its own name. The index lists it, so no
    /// inventory is read. This matters for objects with many files.
    fn indexed_file(&self, holdings: &Holdings, path: &str) -> Result<Option<FileRecord>, ArchiveError> {
        let name = path.split_once("/content/doc/").map(|(_, name)| name);
        let Some(name) = name else { return Ok(None) };
        let file = holdings.file(&self.holding.path, name)?;
        Ok(file.filter(|file| file.content == path))
    }

    /// Whether the client may read files of a kind.
    fn check_readable(&self, kind: ObjectFileKind) -> Result<(), Problem> {
        let is_removed = self.holding.state == State::Deleted;
        let is_open = match kind {
            ObjectFileKind::Doc => !is_removed && self.may_open(),
            // Which files a closed item had is not public (threat W14).
            ObjectFileKind::Inventory | ObjectFileKind::Text => {
                (is_removed && self.holding.item.access == AccessRule::Public) || self.may_open()
            }
        };
        if is_open {
            return Ok(());
        }
        if !self.headers.contains_key(header::AUTHORIZATION) {
            let why = if is_removed { "was removed" } else { "is not open to all" };
            return Err(Problem::forbidden(format!(
                "{} {why}: a token with the role `holder` is required",
                self.holding.item.labels.primary()
            )));
        }
        // The recipient of a transfer has a bearer token for the item.
        let given = self.headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
        let pass = given.and_then(|given| given.split_once(' ')).map(|(_, pass)| pass.trim());
        if pass.is_some_and(|pass| {
            OutgoingTransfer::pass_allows(self.site.desk.data(), &self.holding.path, pass)
        }) {
            return Ok(());
        }
        authorize(&self.site, &self.headers, ServiceRole::Holder).map(drop)
    }

    fn may_open(&self) -> bool {
        may_open(&self.holding, Some(self.client), self.site.now())
    }

    fn is_public(&self) -> bool {
        self.holding.item.access == AccessRule::Public && self.holding.state != State::Deleted
    }

    fn no_such_file(&self) -> Problem {
        let label = self.holding.item.labels.primary();
        Problem::not_found(format!(
            "the object of {label} has no such file: /api/v1/items/{label}/object/inventory.json tells what it has"
        ))
    }
}

/// Reports damage as such: other Archives may hold an intact copy.
fn damaged_object_response(error: SharedReadError) -> Result<Response, Problem> {
    let error = match error {
        SharedReadError::Archive(error) => error,
        SharedReadError::Refused(problem) => return Err(problem),
    };
    match error {
        ArchiveError::DamagedObject { .. }
        | ArchiveError::Lost { .. }
        | ArchiveError::Storage(
            StorageError::DamagedInventory { .. }
            | StorageError::MissingFile { .. }
            | StorageError::DamagedBlock { .. },
        ) => {
            tracing::error!(%error, "a damaged object was not served");
            Ok(file::damaged_file_response())
        }
        error => Err(archive_problem(error)),
    }
}
