//! An Archive of a test's own, and all that can be asked of one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ibi_archive::deposit::{DepositRequest, DepositSource};
use ibi_archive::dublin_core::DublinCore;
use ibi_archive::opening::{self, OpeningReport};
use ibi_archive::{Archive, ArchiveError, Holdings};
use ibi_id::Host;
use ibi_mint::DistributorEdition;
use tempfile::TempDir;

/// A data folder with prefixes that no other test, and no other run of the tests, has. Its claims
/// go with it.
pub(crate) struct Ours {
    folder: TempDir,
    host: String,
}

impl Ours {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let host = format!("a{}x{number}.archive.test", std::process::id());
        Self { folder: tempfile::tempdir().unwrap(), host }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn init(&self) -> Archive {
        let host = Host::parse(&self.host).unwrap();
        let from = ibi_mint::MinterConfig {
            host: Some((host, None)),
            ip: None,
            edition: DistributorEdition::Rtc2015,
            allow_private: true,
        };
        opening::init(&self.data(), &from, [7; 16], "tester").unwrap().0
    }

    pub(crate) fn open(&self) -> (Archive, OpeningReport) {
        opening::open(&self.data(), "tester").unwrap()
    }

    /// A folder with these files in it.
    pub(crate) fn files(&self, files: &BTreeMap<String, Vec<u8>>) -> PathBuf {
        let folder = self.folder.path().join("deposit");
        let _ = fs::remove_dir_all(&folder);
        for (name, bytes) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let (machine, domain) = self.host.split_once('.').unwrap();
        for folder in ["/run/lock", "/var/tmp"] {
            let _ = fs::remove_file(format!("{folder}/ibi-{domain}+{machine}"));
        }
    }
}

/// A draft with a title and nothing else.
pub(crate) fn titled(title: &str) -> DepositRequest {
    DepositRequest {
        metadata: DublinCore::parse(&format!("title={title}")).unwrap(),
        ..DepositRequest::new("tester")
    }
}

/// Deposits what lies at a path; the label of the item, or why not.
pub(crate) fn deposit(
    archive: &mut Archive,
    path: &Path,
    draft: DepositRequest,
) -> Result<String, ArchiveError> {
    let source = DepositSource::at(path)?;
    let staged = archive.stage(&source, None, &|_| ())?;
    let change = archive.prepare_deposit(staged, draft)?;
    let path = archive.commit(vec![change]).pop().unwrap()?;
    Ok(archive.holdings().item(&path)?.item.labels.primary().to_owned())
}

/// Every answer that the Archive gives, as text: of each item all that is told of it, each file's
/// bytes, and where each of its labels leads.
pub(crate) fn answers(holdings: &Holdings) -> String {
    let mut text = format!("{:#?}\n", holdings.all_links(None).unwrap());
    for holding in holdings.list("", 10_000).unwrap() {
        text += &format!("{holding:?}\n{:?}\n", holdings.history(&holding.path).unwrap());
        for file in holdings.files(&holding.path, "", 10_000).unwrap() {
            let mut bytes = Vec::new();
            let copied = holdings.open_file(&holding.path, &file).unwrap().copy_to(&mut bytes);
            text += &format!("{file:?} {copied:?} {}\n", bytes.escape_ascii());
        }
        let item = &holding.item;
        for label in
            item.labels.iter().chain(item.metadata.iter()).chain(item.aliases.iter().map(String::as_str))
        {
            let (found, role) = holdings.find(label).unwrap();
            text += &format!("{label} {} {role:?}\n", found.path);
        }
    }
    text
}
