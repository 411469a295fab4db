//! An item, taken out as a bag (BagIt 1.0, RFC 8493), every byte checked on its way.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ibi_store::content::CopyOut;
use ibi_store::digests::sha512;
use ibi_store::ocfl::{LONGEST_NAME, raw};
use ibi_store::records::FileRecord;

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::bag::{Algorithm, BagError, Kind, ManifestName, Oxum, Version, write_info};
use crate::object::Object;

/// Files that are listed at a time.
const PAGE: usize = 1000;

/// What was exported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// How many files.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Files whose names are not UTF-8: in the bag they have the names that the Archive writes for them.
    pub renamed: Vec<String>,
    /// Files whose names `bagit` of PyPI does not find, though the bag is right.
    pub unusual: Vec<String>,
}

impl Holdings {
    /// Writes an item as a bag into a folder that is not there yet.
    pub fn export(
        &self,
        holding: &Holding,
        out: &Path,
        progress: &dyn Fn(u64),
    ) -> Result<Exported, ArchiveError> {
        if let Some(removed) = &holding.item.removed {
            let label = holding.item.labels.primary().to_owned();
            return Err(ArchiveError::Gone { label, at: removed.at.clone(), reason: removed.reason.clone() });
        }
        let name = out
            .file_name()
            .ok_or_else(|| ArchiveError::Value("--out needs the name of a folder".to_owned()))?;
        if out.symlink_metadata().is_ok() {
            return Err(ArchiveError::Value(format!(
                "{} is there already: name a new folder",
                out.display()
            )));
        }
        // Under another name until it is whole.
        let mut partial = name.to_owned();
        partial.push(".partial");
        let partial = out.with_file_name(partial);
        fs::create_dir(&partial).map_err(ArchiveError::io("create", &partial))?;
        let written =
            Bag { folder: partial.clone(), tags: Vec::new(), holdings: self }.write(holding, progress);
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

/// The name that a file has in a bag: its own, or one that stands in for it if it is not UTF-8, which manifests have to be.
pub(crate) fn name_in_bag(logical: &str) -> Result<String, String> {
    String::from_utf8(raw(logical)).map_err(|_| {
        let fits = logical.split('/').all(|name| name.len() <= LONGEST_NAME);
        if fits { logical.to_owned() } else { format!("%~{}", &sha512(logical.as_bytes())[..32]) }
    })
}

struct Bag<'a> {
    folder: PathBuf,
    /// Tag files with their digests.
    tags: Vec<(String, String)>,
    holdings: &'a Holdings,
}

impl Bag<'_> {
    fn write(mut self, holding: &Holding, progress: &dyn Fn(u64)) -> Result<Exported, ArchiveError> {
        let mut exported = Exported::default();
        let mut payload: Vec<(String, String)> = Vec::new();
        fs::create_dir(self.folder.join("data")).map_err(ArchiveError::io("create", &self.folder))?;
        let mut after = String::new();
        loop {
            let files = self.holdings.files(&holding.path, &after, PAGE)?;
            let Some(last) = files.last() else { break };
            after.clone_from(&last.name);
            for file in &files {
                let name = name_in_bag(&file.name).unwrap_or_else(|stand_in| {
                    exported.renamed.push(stand_in.clone());
                    stand_in
                });
                self.payload(&holding.path, file, &name)?;
                progress(file.size);
                exported.files += 1;
                exported.bytes += file.size;
                payload.push((file.sha512.clone(), format!("data/{name}")));
            }
        }
        let version = Version::best_for(payload.iter().map(|(_, path)| path.as_str()));
        exported.unusual = payload
            .iter()
            .filter(|(_, path)| !version.suits_pypi(path))
            .map(|(_, path)| path.clone())
            .collect();
        self.tag("bagit.txt", version.declaration())?;
        let oxum = Oxum { bytes: exported.bytes, files: exported.files };
        self.info(holding, &oxum)?;
        let object = Object::read(&*self.holdings.content, &holding.path)?;
        let description = object.as_ref().map(|object| object.item.to_bytes()).unwrap_or_default();
        self.tag("item.json", &String::from_utf8_lossy(&description))?;
        self.tag("metadata/oai_dc.xml", &holding.metadata.to_xml())?;
        self.manifest(Kind::Payload, version, &payload)?;
        let tags = std::mem::take(&mut self.tags);
        self.manifest(Kind::Tag, version, &tags)?;
        Ok(exported)
    }

    fn payload(&self, object: &str, file: &FileRecord, name: &str) -> Result<(), ArchiveError> {
        let path = self.folder.join("data").join(name);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(ArchiveError::io("create", above))?;
        }
        let mut out = File::create_new(&path).map_err(ArchiveError::io("create", &path))?;
        self.holdings.open_file(object, file)?.copy_to(&mut out).map_err(|error| match error {
            CopyOut::Kept(error) => error.into(),
            CopyOut::Write(error) => ArchiveError::io("write", &path)(error),
        })
    }

    fn info(&mut self, holding: &Holding, oxum: &Oxum) -> Result<(), ArchiveError> {
        let item = &holding.item;
        let oxum = oxum.to_string();
        let mut pairs: Vec<(&str, &str)> =
            item.labels.iter().map(|label| ("External-Identifier", label)).collect();
        pairs.push((Oxum::LABEL, &oxum));
        let date = item.updated.get(..10).unwrap_or(&item.updated);
        pairs.push(("Bagging-Date", date));
        let titles = holding.metadata.of(crate::dublin_core::Element::Title);
        pairs.extend(titles.map(|title| ("External-Description", title.value())));
        let info = write_info(pairs).map_err(bag_error(&self.folder))?;
        self.tag("bag-info.txt", &info)
    }

    fn manifest(
        &mut self,
        kind: Kind,
        version: Version,
        entries: &[(String, String)],
    ) -> Result<(), ArchiveError> {
        let name = ManifestName { kind, algorithm: Algorithm::Sha512 };
        let entries = entries.iter().map(|(digest, path)| (digest.as_str(), path.as_str()));
        let text = name.write(version, entries).map_err(bag_error(&self.folder))?;
        self.tag(&name.to_string(), &text)
    }

    fn tag(&mut self, name: &str, text: &str) -> Result<(), ArchiveError> {
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
