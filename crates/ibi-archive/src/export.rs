//! An item, taken out as a bag (BagIt 1.0, RFC 8493), every byte checked on its way.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ibi_store::content::VerifiedCopyError;
use ibi_store::digests::sha512;
use ibi_store::index::FileRecord;
use ibi_store::ocfl::{MAX_NAME_BYTES, decode_logical_path};

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::bag::{
    BagError, BagVersion, ChecksumAlgorithm, ManifestKind, ManifestName, PayloadOxum, write_info,
};
use crate::object::StoredObject;

/// Files that are listed at a time.
const EXPORT_PAGE_FILES: usize = 1000;

/// What was exported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// How many files.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Files whose names are not UTF-8: in the bag they have the names that the Archive writes for
    /// them.
    pub renamed: Vec<String>,
    /// Files whose names `bagit` of PyPI does not find, though the bag is right.
    pub unusual: Vec<String>,
}

impl Holdings {
    /// Writes an item as a bag into a folder that is not there yet.
    pub fn export(
        &self,
        holding: &HeldItem,
        out: &Path,
        progress: &dyn Fn(u64),
    ) -> Result<ExportReport, ArchiveError> {
        if let Some(removed) = &holding.item.removed {
            let label = holding.item.labels.primary().to_owned();
            return Err(ArchiveError::Gone { label, at: removed.at.clone(), reason: removed.reason.clone() });
        }
        let name = out.file_name().ok_or_else(|| {
            ArchiveError::Value("the output path must end in the name of a new folder".to_owned())
        })?;
        if out.symlink_metadata().is_ok() {
            return Err(ArchiveError::Value(format!("{} already exists: name a new folder", out.display())));
        }
        // Under another name until it is whole.
        let mut partial = name.to_owned();
        partial.push(".partial");
        let partial = out.with_file_name(partial);
        fs::create_dir(&partial).map_err(ArchiveError::io("create", &partial))?;
        let written = BagWriter { folder: partial.clone(), tags: Vec::new(), holdings: self }
            .write_bag(holding, progress);
        match written {
            Ok(exported) => {
                fs::rename(&partial, out).map_err(ArchiveError::io("create", out))?;
                Ok(exported)
            }
            Err(error) => {
                let _ = fs::remove_dir_all(&partial);
                Err(error)
            }
        }
    }
}

/// The name that a file has in a bag: its own, or one that stands in for it if it is not UTF-8,
/// which manifests have to be.
pub(crate) fn name_in_bag(logical: &str) -> Result<String, String> {
    String::from_utf8(decode_logical_path(logical)).map_err(|_| {
        let fits = logical.split('/').all(|name| name.len() <= MAX_NAME_BYTES);
        if fits { logical.to_owned() } else { format!("%~{}", &sha512(logical.as_bytes())[..32]) }
    })
}

struct BagWriter<'a> {
    folder: PathBuf,
    /// Tag files with their digests.
    tags: Vec<(String, String)>,
    holdings: &'a Holdings,
}

impl BagWriter<'_> {
    fn write_bag(mut self, holding: &HeldItem, progress: &dyn Fn(u64)) -> Result<ExportReport, ArchiveError> {
        let mut exported = ExportReport::default();
        let mut payload: Vec<(String, String)> = Vec::new();
        fs::create_dir(self.folder.join("data")).map_err(ArchiveError::io("create", &self.folder))?;
        let mut after = String::new();
        loop {
            let files = self.holdings.files(&holding.path, &after, EXPORT_PAGE_FILES)?;
            let Some(last) = files.last() else { break };
            after.clone_from(&last.name);
            for file in &files {
                let name = name_in_bag(&file.name).unwrap_or_else(|stand_in| {
                    exported.renamed.push(stand_in.clone());
                    stand_in
                });
                self.write_payload(&holding.path, file, &name)?;
                progress(file.size);
                exported.files += 1;
                exported.bytes += file.size;
                payload.push((file.sha512.clone(), format!("data/{name}")));
            }
        }
        let version = BagVersion::best_for(payload.iter().map(|(_, path)| path.as_str()));
        exported.unusual = payload
            .iter()
            .filter(|(_, path)| !version.suits_pypi(path))
            .map(|(_, path)| path.clone())
            .collect();
        self.write_tag_file("bagit.txt", version.declaration())?;
        let oxum = PayloadOxum { bytes: exported.bytes, files: exported.files };
        self.write_bag_info(holding, &oxum)?;
        let object = StoredObject::read(&*self.holdings.content, &holding.path)?;
        let description = object.as_ref().map(|object| object.item.to_bytes()).unwrap_or_default();
        self.write_tag_file("item.json", &String::from_utf8_lossy(&description))?;
        self.write_tag_file("metadata/oai_dc.xml", &holding.metadata.to_xml())?;
        self.write_manifest(ManifestKind::Payload, version, &payload)?;
        let tags = std::mem::take(&mut self.tags);
        self.write_manifest(ManifestKind::Tag, version, &tags)?;
        Ok(exported)
    }

    fn write_payload(&self, object: &str, file: &FileRecord, name: &str) -> Result<(), ArchiveError> {
        let path = self.folder.join("data").join(name);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(ArchiveError::io("create", above))?;
        }
        let mut out = File::create_new(&path).map_err(ArchiveError::io("create", &path))?;
        self.holdings.open_file(object, file)?.copy_to(&mut out).map_err(|error| match error {
            VerifiedCopyError::Kept(error) => error.into(),
            VerifiedCopyError::Write(error) => ArchiveError::io("write", &path)(error),
        })
    }

    fn write_bag_info(&mut self, holding: &HeldItem, oxum: &PayloadOxum) -> Result<(), ArchiveError> {
        let item = &holding.item;
        let oxum = oxum.to_string();
        let mut pairs: Vec<(&str, &str)> =
            item.labels.iter().map(|label| ("External-Identifier", label)).collect();
        pairs.push((PayloadOxum::INFO_LABEL, &oxum));
        let date = item.updated.get(..10).unwrap_or(&item.updated);
        pairs.push(("Bagging-Date", date));
        let titles = holding.metadata.of(crate::dublin_core::Element::Title);
        pairs.extend(titles.map(|title| ("External-Description", title.value())));
        let info = write_info(pairs).map_err(bag_error(&self.folder))?;
        self.write_tag_file("bag-info.txt", &info)
    }

    fn write_manifest(
        &mut self,
        kind: ManifestKind,
        version: BagVersion,
        entries: &[(String, String)],
    ) -> Result<(), ArchiveError> {
        let name = ManifestName { kind, algorithm: ChecksumAlgorithm::Sha512 };
        let entries = entries.iter().map(|(digest, path)| (digest.as_str(), path.as_str()));
        let text = name.write(version, entries).map_err(bag_error(&self.folder))?;
        self.write_tag_file(&name.to_string(), &text)
    }

    fn write_tag_file(&mut self, name: &str, text: &str) -> Result<(), ArchiveError> {
        let path = self.folder.join(name);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(ArchiveError::io("create", above))?;
        }
        let mut file = File::create_new(&path).map_err(ArchiveError::io("create", &path))?;
        file.write_all(text.as_bytes()).map_err(ArchiveError::io("write", &path))?;
        self.tags.push((sha512(text.as_bytes()), name.to_owned()));
        Ok(())
    }
}

fn bag_error(folder: &Path) -> impl Fn(BagError) -> ArchiveError {
    move |error| ArchiveError::Bag { path: folder.to_owned(), what: error.to_string() }
}
