//! Bags that are deposited: checked as RFC 8493 wants a complete and valid bag, the payload while
//! it is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ibi_store::digests::{ContentDigests, hex};
use ibi_store::ocfl::decode_logical_path;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use crate::ArchiveError;
use crate::bag::{
    BagVersion, ChecksumAlgorithm, ManifestEntry, ManifestKind, ManifestName, PayloadOxum, read_info,
};
use crate::deposit::source::DepositSource;
use crate::dublin_core::DublinCore;
use crate::export::name_in_bag;
use crate::item::ItemDescription;

/// Tag files are read whole; larger ones are not what they should be.
const MAX_TAG_FILE_BYTES: u64 = 64 << 20;

/// The checksum that a bag says a file has.
#[derive(Debug, Clone)]
pub(crate) struct BagChecksum {
    algorithm: ChecksumAlgorithm,
    checksum: String,
}

/// A digest that is computed beside SHA-512, for a bag that has none of that.
pub(crate) enum BagHasher {
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
}

impl BagHasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            BagHasher::Md5(hash) => hash.update(bytes),
            BagHasher::Sha1(hash) => hash.update(bytes),
            BagHasher::Sha256(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            BagHasher::Md5(hash) => hex(&hash.finalize()),
            BagHasher::Sha1(hash) => hex(&hash.finalize()),
            BagHasher::Sha256(hash) => hex(&hash.finalize()),
        }
    }
}

impl BagChecksum {
    pub(super) fn new_hasher(&self) -> Option<BagHasher> {
        match self.algorithm {
            ChecksumAlgorithm::Md5 => Some(BagHasher::Md5(Md5::new())),
            ChecksumAlgorithm::Sha1 => Some(BagHasher::Sha1(Sha1::new())),
            ChecksumAlgorithm::Sha256 => Some(BagHasher::Sha256(Sha256::new())),
            ChecksumAlgorithm::Sha512 => None,
        }
    }

    pub(super) fn check(&self, digests: &ContentDigests, hash: Option<BagHasher>) -> Result<(), String> {
        let found = hash.map_or_else(|| digests.sha512.clone(), BagHasher::finish);
        if found == self.checksum {
            return Ok(());
        }
        Err(format!("its {} is {found}, and the manifest says {}", self.algorithm.name(), self.checksum))
    }
}

/// Lists the payload of a bag, with what its manifests say of it; checks its tag files.
pub(super) fn open_bag(bag: &Path) -> Result<DepositSource, ArchiveError> {
    let failed = |what: String| ArchiveError::Bag { path: bag.to_owned(), what };
    let version = BagVersion::of_declaration(&read_tag_text(bag, "bagit.txt")?)
        .map_err(|error| failed(error.to_string()))?;
    if bag.join("fetch.txt").exists() {
        return Err(failed("it has a fetch.txt: fetch what that lists first".to_owned()));
    }
    let payload = bag.join("data");
    if !payload.is_dir() {
        return Err(failed("it has no folder data".to_owned()));
    }
    let mut source = DepositSource::folder(&payload)?;
    let mut payload_manifests = 0;
    for name in list_names(bag)? {
        let manifest = ManifestName::of_file(&name).map_err(|error| failed(error.to_string()))?;
        let Some(manifest) = manifest else { continue };
        let text = read_tag_text(bag, &name)?;
        let entries = manifest.read(&text, version).map_err(|error| failed(error.to_string()))?.entries;
        match manifest.kind {
            ManifestKind::Payload => {
                payload_manifests += 1;
                let unlisted =
                    match_payload(&mut source, &entries, manifest.algorithm, &name).map_err(failed)?;
                // Before 1.0, a file needs to be in one of the manifests only.
                if let Some(unlisted) = unlisted.filter(|_| version == BagVersion::V1_0) {
                    return Err(failed(format!("{name} does not list data/{unlisted}")));
                }
            }
            ManifestKind::Tag => {
                entries.iter().try_for_each(|entry| check_tag_file(bag, entry, manifest.algorithm))?;
            }
        }
    }
    if payload_manifests == 0 {
        return Err(failed("it has no payload manifest, as manifest-sha512.txt".to_owned()));
    }
    if let Some(file) = source.files().iter().find(|file| !file.has_expected_checksum()) {
        return Err(failed(format!("no manifest lists data/{}", String::from_utf8_lossy(file.name()))));
    }
    check_oxum(bag, &source)?;
    let described = read_description(bag)?;
    // A record, and an item that leads to a URL, have none; others were left out by mistake.
    if source.files().is_empty() && !described.as_ref().is_some_and(|item| item.files.is_empty()) {
        return Err(ArchiveError::NoFiles { path: payload });
    }
    if let Some(item) = &described {
        restore_names(item, &mut source);
    }
    let metadata = match bag.join("metadata/oai_dc.xml").exists() {
        true => Some(
            DublinCore::from_xml(&read_tag_text(bag, "metadata/oai_dc.xml")?)
                .map_err(|error| failed(format!("metadata/oai_dc.xml: {error}")))?,
        ),
        false => None,
    };
    Ok(source.into_bag(metadata, described))
}

/// Every listed file is there; tells one that is not listed. Manifests come in order of their
/// algorithms' strength, so that the strongest checksum is the one to check.
fn match_payload(
    source: &mut DepositSource,
    entries: &[ManifestEntry],
    algorithm: ChecksumAlgorithm,
    manifest: &str,
) -> Result<Option<String>, String> {
    let mut files: HashMap<Vec<u8>, usize> =
        source.files().iter().enumerate().map(|(at, file)| (file.name().to_vec(), at)).collect();
    for entry in entries {
        let name = |path: &str| path.strip_prefix("data/").map(|name| name.as_bytes().to_vec());
        let mut found = name(&entry.path).and_then(|name| files.remove(&name));
        if found.is_none() {
            found = entry.otherwise.as_deref().and_then(name).and_then(|name| files.remove(&name));
        }
        let at = found.ok_or_else(|| format!("{manifest} lists {}, which is not there", entry.path))?;
        let file = &mut source.files_mut()[at];
        file.expect_checksum(BagChecksum { algorithm, checksum: entry.checksum.clone() });
    }
    Ok(files.keys().min().map(|name| String::from_utf8_lossy(name).into_owned()))
}

fn check_tag_file(
    bag: &Path,
    entry: &ManifestEntry,
    algorithm: ChecksumAlgorithm,
) -> Result<(), ArchiveError> {
    let failed = |what: String| ArchiveError::Bag { path: bag.to_owned(), what };
    let path = [Some(&entry.path), entry.otherwise.as_ref()];
    let path = path.into_iter().flatten().find(|path| bag.join(path).is_file());
    let path = path.ok_or_else(|| failed(format!("the tag file {} is missing", entry.path)))?;
    let bytes = read_tag_bytes(&bag.join(path))?;
    let found = match algorithm {
        ChecksumAlgorithm::Md5 => hex(&Md5::digest(&bytes)),
        ChecksumAlgorithm::Sha1 => hex(&Sha1::digest(&bytes)),
        ChecksumAlgorithm::Sha256 => hex(&Sha256::digest(&bytes)),
        ChecksumAlgorithm::Sha512 => hex(&Sha512::digest(&bytes)),
    };
    if found == entry.checksum {
        return Ok(());
    }
    Err(failed(format!("the {} of the tag file {path} is not what the manifest says", algorithm.name())))
}

fn check_oxum(bag: &Path, source: &DepositSource) -> Result<(), ArchiveError> {
    let failed = |what: String| ArchiveError::Bag { path: bag.to_owned(), what };
    if !bag.join("bag-info.txt").exists() {
        return Ok(());
    }
    let info = read_info(&read_tag_text(bag, "bag-info.txt")?).map_err(|error| failed(error.to_string()))?;
    let Some((_, oxum)) = info.iter().find(|(label, _)| label.eq_ignore_ascii_case(PayloadOxum::INFO_LABEL))
    else {
        return Ok(());
    };
    let said: PayloadOxum = oxum.parse().map_err(|error: crate::bag::BagError| failed(error.to_string()))?;
    let found = PayloadOxum { bytes: source.size(), files: source.files().len() as u64 };
    if said == found {
        return Ok(());
    }
    Err(failed(format!("bag-info.txt says that its payload is {said}, and it is {found}")))
}

/// What a bag of ours says of the item. Somebody else's `item.json` says nothing to us.
fn read_description(bag: &Path) -> Result<Option<ItemDescription>, ArchiveError> {
    if !bag.join("item.json").exists() {
        return Ok(None);
    }
    Ok(ItemDescription::parse(&read_tag_bytes(&bag.join("item.json"))?).ok())
}

/// A bag of ours tells the names that its manifests could not: those that are not UTF-8.
fn restore_names(item: &ItemDescription, source: &mut DepositSource) {
    let names = item
        .files
        .iter()
        .filter_map(|file| Some((name_in_bag(&file.path).err()?, decode_logical_path(&file.path))));
    let stand_ins: BTreeMap<Vec<u8>, Vec<u8>> = names.map(|(name, raw)| (name.into_bytes(), raw)).collect();
    let there: BTreeSet<Vec<u8>> = source.files().iter().map(|file| file.name().to_vec()).collect();
    for file in source.files_mut() {
        if let Some(name) = stand_ins.get(file.name()).filter(|name| !there.contains(*name)) {
            let name = name.clone();
            file.rename(name);
        }
    }
}

fn list_names(bag: &Path) -> Result<BTreeSet<String>, ArchiveError> {
    let failed = || ArchiveError::io("read", bag);
    let entries = fs::read_dir(bag).map_err(failed())?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(failed()));
    names.map(|name| name.map(|name| OsStr::to_string_lossy(&name).into_owned())).collect()
}

fn read_tag_text(bag: &Path, name: &str) -> Result<String, ArchiveError> {
    let bytes = read_tag_bytes(&bag.join(OsStr::from_bytes(name.as_bytes())))?;
    String::from_utf8(bytes)
        .map_err(|_| ArchiveError::Bag { path: bag.to_owned(), what: format!("{name} is not UTF-8") })
}

fn read_tag_bytes(path: &Path) -> Result<Vec<u8>, ArchiveError> {
    // Not followed: a bag of strangers could name any file of ours.
    let metadata = fs::symlink_metadata(path).map_err(ArchiveError::io("read", path))?;
    if !metadata.is_file() || metadata.len() > MAX_TAG_FILE_BYTES {
        let what = "it is not a tag file, or too large for one".to_owned();
        return Err(ArchiveError::Bag { path: path.to_owned(), what });
    }
    fs::read(path).map_err(ArchiveError::io("read", path))
}
