//! An object, fetched from another Archive: whole, every file checked as it arrives, and going on where it was cut off
//! (`docs/formats/holders.md`).

mod arriving;
mod described;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, io};

use ibi_store::KeepError;
use ibi_store::digests::{Digests, sha512};
use ibi_store::ocfl::{INVENTORY, Inventory};

use crate::dublin_core::DublinCore;
use crate::holders::bring::Bytes;
use crate::holders::held::Held;
use crate::holders::peer::{Peer, PeerError};
use crate::holders::whole::{self, LONGEST_INVENTORIES, LONGEST_INVENTORY, WholeError};
use crate::item::Item;
use crate::object::{DESCRIPTION, METADATA};

use arriving::{Expected, Feed, Looked, TooLong};

/// A description or metadata has at most so many bytes.
const LONGEST_TEXT: u64 = 256 << 20;

/// Bytes of a file after which the disk is looked at again.
const LOOK: u64 = 16 << 20;

/// Inventories of so many bytes are checked at once; the check of longer ones makes nobody else wait.
const SHORT: usize = 64 << 10;

/// An object that was fetched: all of it is here, and is what its digests say.
#[derive(Debug)]
pub struct Fetched {
    /// Its last inventory.
    pub inventory: Inventory,
    /// The inventories of v1 and all that follow, as they were written.
    pub inventories: Vec<Vec<u8>>,
    /// Every path of the manifest, and its bytes.
    pub files: Vec<(String, Bytes)>,
    /// What the item has.
    pub item: Item,
    /// Its metadata.
    pub metadata: DublinCore,
}

/// Why an object could not be fetched. What has arrived stays, and the next fetch goes on from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The other Archive.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// Not one whole object.
    #[error(
        "what {peer} has of {item} is not one whole object: {error}. Nothing was taken; ask another holder, or its operator"
    )]
    NotWhole {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// What is wrong.
        error: WholeError,
    },
    /// Not what its digest says.
    #[error(
        "{peer} gave {file} of {item}, and it is not what its digest says: ask another holder, or try again"
    )]
    Wrong {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// The file, by its path in the object.
        file: String,
    },
    /// More bytes than told.
    #[error(
        "{peer} gave more than the {most} bytes that {file} of {item} has: ask another holder, or its operator"
    )]
    TooLong {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// The file, by its path in the object.
        file: String,
        /// As many as were expected.
        most: u64,
    },
    /// Its description would make it unreadable here, or is that of something else.
    #[error(
        "{peer} describes {item} wrongly: {what}. Nothing was taken; ask another holder, or its operator"
    )]
    Description {
        /// The Archive.
        peer: String,
        /// The item.
        item: String,
        /// What is wrong.
        what: String,
    },
    /// Too little room on our own disk.
    #[error("{0}; what came of it before stays")]
    Room(#[from] KeepError),
    /// Our own disk.
    #[error("cannot {doing} {}: {error}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl FetchError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| FetchError::Io { doing, path, error }
    }
}

/// Fetches all files of an object into a folder of its own. `have` names a file on this disk that has the bytes of a digest:
/// it is read and checked, and not asked for. `progress` is told of bytes as they arrive.
pub async fn fetch(
    peer: &Peer,
    label: &str,
    held: &Held,
    have: &(dyn Fn(&str) -> Option<PathBuf> + Sync),
    place: &Path,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Fetched, FetchError> {
    let fetch = Fetch { peer, label, held, have, place, progress };
    let inventories = fetch.inventories().await?;
    let (inventory, inventories) = fetch.checked(inventories).await?;
    let texts = fetch.all(texts(&inventory)).await?;
    let described = described::read(&inventory, &texts).map_err(|what| fetch.description(what))?;
    if !described.item.label_records().iter().any(|record| described::is_same(label, record))
        || described.item.object_path().ok().as_ref() != Some(&held.path)
    {
        return Err(fetch.description(format!("it is not {label}, but {}", described.item.labels.primary())));
    }
    let docs = inventory.manifest.iter().filter(|(digest, _)| !texts.contains_key(*digest));
    let mut wanted = Vec::new();
    for (digest, paths) in docs {
        let expected = described.files.get(digest).cloned();
        let expected = expected.ok_or_else(|| fetch.description(format!("nothing tells of {digest}")))?;
        wanted.push(Wanted {
            digest: digest.clone(),
            path: paths.first().cloned().unwrap_or_default(),
            once: paths.len() == 1,
            expected,
        });
    }
    fetch.room(&wanted)?;
    let docs = fetch.all(wanted).await?;
    let mut files = Vec::new();
    for (digest, paths) in &inventory.manifest {
        let bytes = docs.get(digest).or_else(|| texts.get(digest));
        let bytes = bytes.ok_or_else(|| fetch.description(format!("nothing tells of {digest}")))?;
        files.extend(paths.iter().map(|path| (path.clone(), bytes.clone())));
    }
    Ok(Fetched { inventory, inventories, files, item: described.item, metadata: described.metadata })
}

/// Fetches one file of an object by its digest, and of at most so many bytes, into a folder.
pub(super) async fn file(
    peer: &Peer,
    held: &Held,
    path: &str,
    digest: &str,
    most: u64,
    place: &Path,
) -> Result<Bytes, FetchError> {
    let fetch = Fetch { peer, label: &held.item, held, have: &|_| None, place, progress: &|_| () };
    let expected = Expected { size: None, most, blocks: None, stations: Vec::new() };
    fetch.bring(&Wanted { digest: digest.to_owned(), path: path.to_owned(), once: true, expected }).await
}

/// How long all bytes of an object are, by their digests, as its own descriptions tell; `read` reads a file of it.
pub(super) fn lengths(
    inventory: &Inventory,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> Option<BTreeMap<String, u64>> {
    let texts = texts(inventory).into_iter().map(|wanted| {
        let bytes = read(&wanted.path).filter(|bytes| sha512(bytes) == wanted.digest)?;
        Some((wanted.digest, Bytes::Here(bytes)))
    });
    let texts = texts.collect::<Option<BTreeMap<_, _>>>()?;
    let described = described::read(inventory, &texts).ok()?;
    let docs = described.files.into_iter().map(|(digest, expected)| (digest, expected.most));
    let texts = texts.into_iter().map(|(digest, bytes)| match bytes {
        Bytes::Here(bytes) => (digest, bytes.len() as u64),
        Bytes::At(_) => (digest, LONGEST_TEXT),
    });
    Some(docs.chain(texts).collect())
}

/// Fetches an inventory of an object, which nothing vouches for yet.
pub(super) async fn inventory(peer: &Peer, held: &Held, path: &str) -> Result<Vec<u8>, FetchError> {
    let fetch =
        Fetch { peer, label: &held.item, held, have: &|_| None, place: Path::new(""), progress: &|_| () };
    fetch.inventory(path, LONGEST_INVENTORY).await
}

/// Throws away what was fetched.
pub fn clear(place: &Path) -> io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Bytes that are wanted.
#[derive(Debug, Clone)]
struct Wanted {
    digest: String,
    /// Where they lie in the object.
    path: String,
    /// Whether they lie nowhere else in it.
    once: bool,
    expected: Expected,
}

/// Descriptions and metadata of all versions.
fn texts(inventory: &Inventory) -> Vec<Wanted> {
    let states = inventory.versions.values().flat_map(|version| &version.state);
    let texts = states.filter(|(_, paths)| paths.iter().any(|path| path == DESCRIPTION || path == METADATA));
    let digests: BTreeSet<&String> = texts.map(|(digest, _)| digest).collect();
    let places = |digest: &String| inventory.manifest.get(digest).map_or(&[][..], Vec::as_slice);
    let wanted = |digest: &String| Wanted {
        digest: digest.clone(),
        path: places(digest).first().cloned().unwrap_or_default(),
        once: places(digest).len() == 1,
        expected: Expected { size: None, most: LONGEST_TEXT, blocks: None, stations: Vec::new() },
    };
    digests.into_iter().map(wanted).collect()
}

struct Fetch<'a> {
    peer: &'a Peer,
    label: &'a str,
    held: &'a Held,
    have: &'a (dyn Fn(&str) -> Option<PathBuf> + Sync),
    place: &'a Path,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Fetch<'_> {
    /// The inventories of all versions. That of the last one is the root's.
    async fn inventories(&self) -> Result<Vec<Vec<u8>>, FetchError> {
        let last = self.inventory(INVENTORY, LONGEST_INVENTORY).await?;
        let own = self.held.file(&format!("v{}/{INVENTORY}", self.held.version));
        if sha512(&last) != self.held.inventory || own.is_some_and(|own| own != last) {
            return Err(self.wrong(INVENTORY));
        }
        let mut left = LONGEST_INVENTORIES.saturating_sub(last.len());
        let mut all = Vec::new();
        for version in 1..self.held.version {
            let path = format!("v{version}/{INVENTORY}");
            let inventory = self.inventory(&path, LONGEST_INVENTORY.min(left)).await?;
            left -= inventory.len();
            all.push(inventory);
        }
        all.push(last);
        Ok(all)
    }

    async fn inventory(&self, path: &str, most: usize) -> Result<Vec<u8>, FetchError> {
        let too_long = || self.too_long(path, most as u64);
        if let Some(bytes) = self.held.file(path) {
            return if bytes.len() > most { Err(too_long()) } else { Ok(bytes) };
        }
        let mut coming = self.peer.file(self.label, path, None).await?;
        let mut all = Vec::new();
        while let Some(piece) = coming.piece().await? {
            if all.len() + piece.len() > most {
                return Err(too_long());
            }
            all.extend_from_slice(&piece);
            (self.progress)(piece.len() as u64);
        }
        Ok(all)
    }

    /// Whether the inventories are those of one object; if so, the last of them.
    async fn checked(&self, inventories: Vec<Vec<u8>>) -> Result<(Inventory, Vec<Vec<u8>>), FetchError> {
        let path = self.held.path.clone();
        let length: usize = inventories.iter().map(Vec::len).sum();
        let check = move || (whole::check(&path, &inventories), inventories);
        let checked = match length {
            ..=SHORT => Ok(check()),
            _ => tokio::task::spawn_blocking(check).await,
        };
        let checked =
            checked.map_err(|error| FetchError::io("check in", self.place)(io::Error::other(error)));
        let (inventory, inventories) = checked?;
        Ok((inventory.map_err(|error| self.not_whole(error))?, inventories))
    }

    /// Whether there is room for all that is wanted, and not here yet.
    fn room(&self, wanted: &[Wanted]) -> Result<(), FetchError> {
        let there = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let mut bytes = 0_u64;
        for Wanted { digest, path, expected, .. } in wanted {
            let kept = self.place.join(digest);
            let near = self.held.files.contains_key(path) || (self.have)(digest).is_some() || kept.exists();
            let left = expected.most.saturating_sub(there(&kept.with_extension("part")));
            bytes = bytes.saturating_add(if near { 0 } else { left });
        }
        if bytes == 0 {
            return Ok(());
        }
        fs::create_dir_all(self.place).map_err(FetchError::io("make", self.place))?;
        Ok(ibi_store::fits(self.place, bytes)?)
    }

    /// Brings all that is wanted, four at a time.
    async fn all(&self, wanted: Vec<Wanted>) -> Result<BTreeMap<String, Bytes>, FetchError> {
        let (wanted, done) = (Mutex::new(wanted.into_iter()), Mutex::new(BTreeMap::new()));
        let next = || wanted.lock().ok().and_then(|mut wanted| wanted.next());
        let work = || async {
            while let Some(wanted) = next() {
                let bytes = self.bring(&wanted).await?;
                if let Ok(mut done) = done.lock() {
                    done.insert(wanted.digest, bytes);
                }
            }
            Ok::<(), FetchError>(())
        };
        tokio::try_join!(work(), work(), work(), work())?;
        done.into_inner().map_err(|_| FetchError::io("fetch into", self.place)(io::ErrorKind::Other.into()))
    }

    /// Brings some bytes: from what came with the object, from this disk, or from the other Archive.
    async fn bring(&self, wanted: &Wanted) -> Result<Bytes, FetchError> {
        // In several places of the object, they are to be one file on this disk.
        if let Some(bytes) = self.held.file(&wanted.path).filter(|_| wanted.once) {
            return match arriving::judge(&Digests::of(&bytes), &wanted.digest, &wanted.expected) {
                Looked::Whole => Ok(Bytes::Here(bytes)),
                Looked::Misdescribed => Err(self.misdescribed(&wanted.path)),
                Looked::Not => Err(self.wrong(&wanted.path)),
            };
        }
        let kept = self.place.join(&wanted.digest);
        for near in [(self.have)(&wanted.digest), Some(kept.clone())].into_iter().flatten() {
            let (path, expected, digest) = (near.clone(), wanted.expected.clone(), wanted.digest.clone());
            let trusted = near == kept;
            let looked =
                tokio::task::spawn_blocking(move || arriving::look(&path, &digest, &expected, trusted));
            match looked.await.map_err(|error| FetchError::io("read", &near)(io::Error::other(error)))? {
                Looked::Whole => return Ok(Bytes::At(near)),
                Looked::Misdescribed => return Err(self.misdescribed(&wanted.path)),
                Looked::Not => {}
            }
        }
        match self.once(wanted, &kept).await? {
            Came::Whole => Ok(Bytes::At(kept)),
            // What was there before may have been the fault.
            Came::Wrong { resumed: true } => match self.once(wanted, &kept).await? {
                Came::Whole => Ok(Bytes::At(kept)),
                Came::Wrong { .. } => Err(self.wrong(&wanted.path)),
            },
            Came::Wrong { resumed: false } => Err(self.wrong(&wanted.path)),
        }
    }

    async fn once(&self, wanted: &Wanted, kept: &Path) -> Result<Came, FetchError> {
        fs::create_dir_all(self.place).map_err(FetchError::io("make", self.place))?;
        let (taking, feed) = arriving::take_in(kept, &wanted.expected);
        let (fed, taken) = tokio::join!(self.feed(wanted, feed), taking);
        fed?;
        let taken = taken.map_err(|error| FetchError::io("write", kept)(io::Error::other(error)))?;
        let taken = taken.map_err(FetchError::io("write", kept))?;
        let settled = arriving::settle(kept, &wanted.digest, &wanted.expected, taken);
        match settled.map_err(FetchError::io("write", kept))? {
            (Looked::Whole, _) => Ok(Came::Whole),
            (Looked::Misdescribed, _) => Err(self.misdescribed(&wanted.path)),
            (Looked::Not, resumed) => Ok(Came::Wrong { resumed }),
        }
    }

    /// Hands on what is to be taken in. What does not come to its end is cut off.
    async fn feed(&self, wanted: &Wanted, mut feed: Feed) -> Result<(), FetchError> {
        let too_long = |_: TooLong| self.too_long(&wanted.path, wanted.expected.most);
        // It takes care of itself if nothing has to be asked for.
        let Some(from) = feed.asked().await else { return Ok(()) };
        if from > 0 && wanted.expected.size == Some(from) {
            feed.begin(from).await;
        } else {
            let mut coming = self.peer.file(self.label, &wanted.path, Some((from, &wanted.digest))).await?;
            feed.begin(coming.from).await;
            let mut unseen = 0;
            while let Some(piece) = coming.piece().await? {
                let arrived = piece.len() as u64;
                feed.give(piece).await.map_err(too_long)?;
                (self.progress)(arrived);
                unseen += arrived;
                // Others write, too.
                if unseen >= LOOK {
                    unseen = 0;
                    ibi_store::fits(self.place, 0)?;
                }
            }
        }
        feed.end().await;
        Ok(())
    }

    fn names(&self) -> (String, String) {
        (self.peer.url().to_owned(), self.held.item.clone())
    }

    fn not_whole(&self, error: WholeError) -> FetchError {
        let (peer, item) = self.names();
        FetchError::NotWhole { peer, item, error }
    }

    fn wrong(&self, file: &str) -> FetchError {
        let (peer, item) = self.names();
        FetchError::Wrong { peer, item, file: file.to_owned() }
    }

    fn too_long(&self, file: &str, most: u64) -> FetchError {
        let (peer, item) = self.names();
        FetchError::TooLong { peer, item, file: file.to_owned(), most }
    }

    fn description(&self, what: String) -> FetchError {
        let (peer, item) = self.names();
        FetchError::Description { peer, item, what }
    }

    fn misdescribed(&self, file: &str) -> FetchError {
        self.description(format!("{file} has other blocks, or another length, than its description says"))
    }
}

/// How bytes came.
enum Came {
    Whole,
    /// Not what was wanted; maybe since what was there before was not.
    Wrong {
        resumed: bool,
    },
}
