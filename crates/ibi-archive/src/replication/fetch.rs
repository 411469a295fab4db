//! Fetches a whole object from another Archive. Every file is verified as it arrives, and an
//! interrupted fetch resumes (`docs/formats/holders.md`).

mod descriptions;
mod download;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, io};

use ibi_store::StorageError;
use ibi_store::digests::{ContentDigests, sha512};
use ibi_store::ocfl::{INVENTORY_FILE, Inventory};

use crate::dublin_core::DublinCore;
use crate::item::ItemDescription;
use crate::object::{DESCRIPTION_FILE, METADATA_FILE};
use crate::replica::object_description::ObjectDescription;
use crate::replica::object_validation::{self, MAX_OBJECT_INVENTORIES_BYTES, ObjectValidationError};
use crate::replica::replica_object::ReplicaBytes;
use crate::replication::peer::{PeerArchive, PeerError};

use download::{DownloadCheck, DownloadExpectation, DownloadFeed, DownloadTooLong};

/// Maximum size of a description or metadata file.
const MAX_TEXT_FILE_BYTES: u64 = 256 << 20;

/// Free disk space is checked again after this many bytes of a file.
const DISK_CHECK_INTERVAL_BYTES: u64 = 16 << 20;

/// Inventories up to this size are checked inline; longer ones must not block other tasks.
const MAX_INLINE_CHECK_BYTES: usize = 64 << 10;

/// A complete object whose files match their digests.
#[derive(Debug)]
pub struct FetchedObject {
    /// Its last inventory.
    pub inventory: Inventory,
    /// The inventories from v1 on, byte for byte.
    pub inventories: Vec<Vec<u8>>,
    /// Every path of the manifest, with its bytes.
    pub files: Vec<(String, ReplicaBytes)>,
    /// The item's description.
    pub item: ItemDescription,
    /// Its metadata.
    pub metadata: DublinCore,
}

/// Why an object could not be fetched. What has arrived is kept, and the next fetch resumes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The other Archive failed.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// Not one complete object.
    #[error("the object of {item} at {peer} is invalid: {error}. Rejected; try another source")]
    NotWhole {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// What is wrong.
        error: ObjectValidationError,
    },
    /// Digest mismatch.
    #[error("digest mismatch: {file} of {item} from {peer}. Try another source, or retry")]
    Wrong {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// The file, by its path in the object.
        file: String,
    },
    /// More bytes than announced.
    #[error("{peer} sent more than the {most} bytes of {file} of {item}. Rejected; try another source")]
    TooLong {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// The file, by its path in the object.
        file: String,
        /// Expected number of bytes.
        most: u64,
    },
    /// The description is invalid here, or describes another object.
    #[error("the description of {item} by {peer} is invalid: {what}. Rejected; try another source")]
    Description {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// What is wrong.
        what: String,
    },
    /// Not enough free disk space.
    #[error("{0}; the partial download is kept")]
    Room(#[from] StorageError),
    /// Local I/O error.
    #[error("cannot {doing} {}: {error}", .path.display())]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        error: io::Error,
    },
}

impl FetchError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| FetchError::Io { doing, path, error }
    }
}

/// Fetches all files of an object into a folder of its own. `have` maps a digest to a local file,
/// which is read and verified instead of downloaded. `progress` is called with the number of bytes
/// as they arrive.
pub async fn fetch_object(
    peer: &PeerArchive,
    label: &str,
    held: &ObjectDescription,
    have: &(dyn Fn(&str) -> Option<PathBuf> + Sync),
    place: &Path,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<FetchedObject, FetchError> {
    let fetch = ObjectFetch { peer, label, held, have, place, progress };
    let inventories = fetch.download_inventories().await?;
    let (inventory, inventories) = fetch.validate_inventories(inventories).await?;
    let mut wanted = text_file_requests(&inventory);
    // Each is read into memory.
    let most = MAX_TEXT_FILE_BYTES.min(2 * peer.max_inventory_bytes() as u64);
    wanted.iter_mut().for_each(|wanted| wanted.expected.most = most);
    let texts = fetch.fetch_files(wanted).await?;
    let described =
        descriptions::read_descriptions(&inventory, &texts).map_err(|what| fetch.description(what))?;
    if !described.item.label_records().iter().any(|record| descriptions::is_same_label(label, record))
        || described.item.object_path().ok().as_ref() != Some(&held.path)
    {
        return Err(fetch.description(format!("it is not {label}, but {}", described.item.labels.primary())));
    }
    let docs = inventory.manifest.iter().filter(|(digest, _)| !texts.contains_key(*digest));
    let mut wanted = Vec::new();
    for (digest, paths) in docs {
        let expected = described.files.get(digest).cloned();
        let expected = expected.ok_or_else(|| fetch.description(format!("no entry for digest {digest}")))?;
        wanted.push(PeerFileRequest {
            digest: digest.clone(),
            path: paths.first().cloned().unwrap_or_default(),
            once: paths.len() == 1,
            expected,
        });
    }
    fetch.check_disk_room(&wanted)?;
    let docs = fetch.fetch_files(wanted).await?;
    let mut files = Vec::new();
    for (digest, paths) in &inventory.manifest {
        let bytes = docs.get(digest).or_else(|| texts.get(digest));
        let bytes = bytes.ok_or_else(|| fetch.description(format!("no entry for digest {digest}")))?;
        files.extend(paths.iter().map(|path| (path.clone(), bytes.clone())));
    }
    Ok(FetchedObject { inventory, inventories, files, item: described.item, metadata: described.metadata })
}

/// Fetches one file of an object by its digest, with a size limit, into a folder.
pub(super) async fn fetch_file(
    peer: &PeerArchive,
    held: &ObjectDescription,
    path: &str,
    digest: &str,
    most: u64,
    place: &Path,
) -> Result<ReplicaBytes, FetchError> {
    let fetch = ObjectFetch { peer, label: &held.item, held, have: &|_| None, place, progress: &|_| () };
    let expected = DownloadExpectation { size: None, most, blocks: None, stations: Vec::new() };
    fetch
        .fetch_content(&PeerFileRequest {
            digest: digest.to_owned(),
            path: path.to_owned(),
            once: true,
            expected,
        })
        .await
}

/// The length of each digest's bytes, as the object's own descriptions state; `read` reads a file
/// of the object.
pub(super) fn content_lengths(
    inventory: &Inventory,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> Option<BTreeMap<String, u64>> {
    let texts = text_file_requests(inventory).into_iter().map(|wanted| {
        let bytes = read(&wanted.path).filter(|bytes| sha512(bytes) == wanted.digest)?;
        Some((wanted.digest, ReplicaBytes::Here(bytes)))
    });
    let texts = texts.collect::<Option<BTreeMap<_, _>>>()?;
    let described = descriptions::read_descriptions(inventory, &texts).ok()?;
    let docs = described.files.into_iter().map(|(digest, expected)| (digest, expected.most));
    let texts = texts.into_iter().map(|(digest, bytes)| match bytes {
        ReplicaBytes::Here(bytes) => (digest, bytes.len() as u64),
        ReplicaBytes::At(_) => (digest, MAX_TEXT_FILE_BYTES),
    });
    Some(docs.chain(texts).collect())
}

/// Fetches an inventory of an object, with no digest to verify it yet.
pub(super) async fn fetch_inventory(
    peer: &PeerArchive,
    held: &ObjectDescription,
    path: &str,
) -> Result<Vec<u8>, FetchError> {
    let fetch = ObjectFetch {
        peer,
        label: &held.item,
        held,
        have: &|_| None,
        place: Path::new(""),
        progress: &|_| (),
    };
    fetch.download_inventory(path, peer.max_inventory_bytes()).await
}

/// Removes a fetch folder.
pub fn remove_fetch_folder(place: &Path) -> io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Bytes to fetch.
#[derive(Debug, Clone)]
struct PeerFileRequest {
    digest: String,
    /// Their path in the object.
    path: String,
    /// Whether they occur only once in it.
    once: bool,
    expected: DownloadExpectation,
}

/// Requests for the descriptions and metadata of all versions.
fn text_file_requests(inventory: &Inventory) -> Vec<PeerFileRequest> {
    let states = inventory.versions.values().flat_map(|version| &version.state);
    let texts = states
        .filter(|(_, paths)| paths.iter().any(|path| path == DESCRIPTION_FILE || path == METADATA_FILE));
    let digests: BTreeSet<&String> = texts.map(|(digest, _)| digest).collect();
    let places = |digest: &String| inventory.manifest.get(digest).map_or(&[][..], Vec::as_slice);
    let wanted = |digest: &String| PeerFileRequest {
        digest: digest.clone(),
        path: places(digest).first().cloned().unwrap_or_default(),
        once: places(digest).len() == 1,
        expected: DownloadExpectation {
            size: None,
            most: MAX_TEXT_FILE_BYTES,
            blocks: None,
            stations: Vec::new(),
        },
    };
    digests.into_iter().map(wanted).collect()
}

struct ObjectFetch<'a> {
    peer: &'a PeerArchive,
    label: &'a str,
    held: &'a ObjectDescription,
    have: &'a (dyn Fn(&str) -> Option<PathBuf> + Sync),
    place: &'a Path,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl ObjectFetch<'_> {
    /// The inventories of all versions. The last version's is the root inventory.
    async fn download_inventories(&self) -> Result<Vec<Vec<u8>>, FetchError> {
        let most = self.peer.max_inventory_bytes();
        let last = self.download_inventory(INVENTORY_FILE, most).await?;
        let own = self.held.embedded_file(&format!("v{}/{INVENTORY_FILE}", self.held.version));
        if sha512(&last) != self.held.inventory || own.is_some_and(|own| own != last) {
            return Err(self.wrong(INVENTORY_FILE));
        }
        let mut left = MAX_OBJECT_INVENTORIES_BYTES.saturating_sub(last.len());
        let mut all = Vec::new();
        for version in 1..self.held.version {
            let path = format!("v{version}/{INVENTORY_FILE}");
            let inventory = self.download_inventory(&path, most.min(left)).await?;
            left -= inventory.len();
            all.push(inventory);
        }
        all.push(last);
        Ok(all)
    }

    async fn download_inventory(&self, path: &str, most: usize) -> Result<Vec<u8>, FetchError> {
        let too_long = || self.too_long(path, most as u64);
        if let Some(bytes) = self.held.embedded_file(path) {
            return if bytes.len() > most { Err(too_long()) } else { Ok(bytes) };
        }
        let mut coming = self.peer.file(self.label, path, None).await?;
        let mut all = Vec::new();
        while let Some(piece) = coming.next_chunk().await? {
            if all.len() + piece.len() > most {
                return Err(too_long());
            }
            all.extend_from_slice(&piece);
            (self.progress)(piece.len() as u64);
        }
        Ok(all)
    }

    /// Checks that the inventories form one object; returns the last.
    async fn validate_inventories(
        &self,
        inventories: Vec<Vec<u8>>,
    ) -> Result<(Inventory, Vec<Vec<u8>>), FetchError> {
        let path = self.held.path.clone();
        let length: usize = inventories.iter().map(Vec::len).sum();
        let check = move || (object_validation::validate_object(&path, &inventories), inventories);
        let checked = match length {
            ..=MAX_INLINE_CHECK_BYTES => Ok(check()),
            _ => tokio::task::spawn_blocking(check).await,
        };
        let checked =
            checked.map_err(|error| FetchError::io("check in", self.place)(io::Error::other(error)));
        let (inventory, inventories) = checked?;
        Ok((inventory.map_err(|error| self.not_whole(error))?, inventories))
    }

    /// Checks that there is disk space for everything not here yet.
    fn check_disk_room(&self, wanted: &[PeerFileRequest]) -> Result<(), FetchError> {
        let there = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let mut bytes = 0_u64;
        for PeerFileRequest { digest, path, expected, .. } in wanted {
            let kept = self.place.join(digest);
            let near = self.held.files.contains_key(path) || (self.have)(digest).is_some() || kept.exists();
            let left = expected.most.saturating_sub(there(&kept.with_extension("part")));
            bytes = bytes.saturating_add(if near { 0 } else { left });
        }
        if bytes == 0 {
            return Ok(());
        }
        fs::create_dir_all(self.place).map_err(FetchError::io("make", self.place))?;
        Ok(ibi_store::check_disk_space(self.place, bytes)?)
    }

    /// Fetches all requests, four at a time.
    async fn fetch_files(
        &self,
        wanted: Vec<PeerFileRequest>,
    ) -> Result<BTreeMap<String, ReplicaBytes>, FetchError> {
        let (wanted, done) = (Mutex::new(wanted.into_iter()), Mutex::new(BTreeMap::new()));
        let next = || wanted.lock().ok().and_then(|mut wanted| wanted.next());
        let work = || async {
            while let Some(wanted) = next() {
                let bytes = self.fetch_content(&wanted).await?;
                if let Ok(mut done) = done.lock() {
                    done.insert(wanted.digest, bytes);
                }
            }
            Ok::<(), FetchError>(())
        };
        tokio::try_join!(work(), work(), work(), work())?;
        done.into_inner().map_err(|_| FetchError::io("fetch into", self.place)(io::ErrorKind::Other.into()))
    }

    /// Gets bytes from the description's embedded files, from a local file, or from the peer.
    async fn fetch_content(&self, wanted: &PeerFileRequest) -> Result<ReplicaBytes, FetchError> {
        // Bytes that occur several times in the object must be one file on disk.
        if let Some(bytes) = self.held.embedded_file(&wanted.path).filter(|_| wanted.once) {
            return match download::check_digests(
                &ContentDigests::of(&bytes),
                &wanted.digest,
                &wanted.expected,
            ) {
                DownloadCheck::Whole => Ok(ReplicaBytes::Here(bytes)),
                DownloadCheck::Misdescribed => Err(self.misdescribed(&wanted.path)),
                DownloadCheck::Not => Err(self.wrong(&wanted.path)),
            };
        }
        let kept = self.place.join(&wanted.digest);
        for near in [(self.have)(&wanted.digest), Some(kept.clone())].into_iter().flatten() {
            let (path, expected, digest) = (near.clone(), wanted.expected.clone(), wanted.digest.clone());
            let trusted = near == kept;
            let looked =
                tokio::task::spawn_blocking(move || download::check_file(&path, &digest, &expected, trusted));
            match looked.await.map_err(|error| FetchError::io("read", &near)(io::Error::other(error)))? {
                DownloadCheck::Whole => return Ok(ReplicaBytes::At(near)),
                DownloadCheck::Misdescribed => return Err(self.misdescribed(&wanted.path)),
                DownloadCheck::Not => {}
            }
        }
        match self.download_once(wanted, &kept).await? {
            FetchOutcome::Whole => Ok(ReplicaBytes::At(kept)),
            // The partial file may have been the cause: download once more.
            FetchOutcome::Wrong { resumed: true } => match self.download_once(wanted, &kept).await? {
                FetchOutcome::Whole => Ok(ReplicaBytes::At(kept)),
                FetchOutcome::Wrong { .. } => Err(self.wrong(&wanted.path)),
            },
            FetchOutcome::Wrong { resumed: false } => Err(self.wrong(&wanted.path)),
        }
    }

    async fn download_once(&self, wanted: &PeerFileRequest, kept: &Path) -> Result<FetchOutcome, FetchError> {
        fs::create_dir_all(self.place).map_err(FetchError::io("make", self.place))?;
        let (taking, feed) = download::start_download(kept, &wanted.expected);
        let (fed, taken) = tokio::join!(self.stream_into_feed(wanted, feed), taking);
        fed?;
        let taken = taken.map_err(|error| FetchError::io("write", kept)(io::Error::other(error)))?;
        let taken = taken.map_err(FetchError::io("write", kept))?;
        let settled = download::finish_download(kept, &wanted.digest, &wanted.expected, taken);
        match settled.map_err(FetchError::io("write", kept))? {
            (DownloadCheck::Whole, _) => Ok(FetchOutcome::Whole),
            (DownloadCheck::Misdescribed, _) => Err(self.misdescribed(&wanted.path)),
            (DownloadCheck::Not, resumed) => Ok(FetchOutcome::Wrong { resumed }),
        }
    }

    /// Streams a download into the feed. If it fails before the end, the feed is aborted.
    async fn stream_into_feed(
        &self,
        wanted: &PeerFileRequest,
        mut feed: DownloadFeed,
    ) -> Result<(), FetchError> {
        let too_long = |_: DownloadTooLong| self.too_long(&wanted.path, wanted.expected.most);
        // Without an offset there is nothing to request.
        let Some(from) = feed.resume_offset().await else { return Ok(()) };
        if from > 0 && wanted.expected.size == Some(from) {
            feed.begin(from).await;
        } else {
            let mut coming = self.peer.file(self.label, &wanted.path, Some((from, &wanted.digest))).await?;
            feed.begin(coming.from).await;
            let mut unseen = 0;
            while let Some(piece) = coming.next_chunk().await? {
                let arrived = piece.len() as u64;
                feed.push_bytes(piece).await.map_err(too_long)?;
                (self.progress)(arrived);
                unseen += arrived;
                // Other writers use the disk, too.
                if unseen >= DISK_CHECK_INTERVAL_BYTES {
                    unseen = 0;
                    ibi_store::check_disk_space(self.place, 0)?;
                }
            }
        }
        feed.end().await;
        Ok(())
    }

    fn peer_and_item(&self) -> (String, String) {
        (self.peer.url().to_owned(), self.held.item.clone())
    }

    fn not_whole(&self, error: ObjectValidationError) -> FetchError {
        let (peer, item) = self.peer_and_item();
        FetchError::NotWhole { peer, item, error }
    }

    fn wrong(&self, file: &str) -> FetchError {
        let (peer, item) = self.peer_and_item();
        FetchError::Wrong { peer, item, file: file.to_owned() }
    }

    fn too_long(&self, file: &str, most: u64) -> FetchError {
        let (peer, item) = self.peer_and_item();
        FetchError::TooLong { peer, item, file: file.to_owned(), most }
    }

    fn description(&self, what: String) -> FetchError {
        let (peer, item) = self.peer_and_item();
        FetchError::Description { peer, item, what }
    }

    fn misdescribed(&self, file: &str) -> FetchError {
        self.description(format!("{file} has other blocks, or another length, than its description says"))
    }
}

enum FetchOutcome {
    Whole,
    /// Digest mismatch; with `resumed`, the partial file may be the cause.
    Wrong {
        resumed: bool,
    },
}
