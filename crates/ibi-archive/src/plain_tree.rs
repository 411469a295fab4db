//! The plain tree: the newest version of each item as ordinary folders, `<rep>/doc/…`, in which
//! relative links between items work on disk (clause 2.3, 001 §5; `docs/formats/plain-tree.md`). It
//! is derived from the Archive and not part of it. Each item has its metadata repository beside it,
//! as in the founding documents. The Archive's own service is left out.

mod layout;

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;

use ibi_store::DataFolderLock;
use ibi_store::journal::{Journal, JournalLine, JournalPosition, State};

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::backup::check_separate_folders;
use ibi_mint::trusted_clock::TrustedClock;
use layout::{PlainTreeEntry, TreeLayout, TreePart};

/// The file beside `doc` that names the item and version of a folder. A folder without it is not
/// ours to replace.
pub(crate) const STAMP_FILE: &str = ".ibi-plain";

/// The private folder of the plain tree: its marker and staging area.
const TREE_STATE_FOLDER: &str = ".ibi-plain-tree";

/// Items per sync.
const ITEMS_PER_SYNC: usize = 128;

/// Items that are read from the index per page.
const TREE_PAGE_ITEMS: usize = 256;

/// Options of a plain tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlainTreeOptions {
    /// Include restricted items.
    pub all: bool,
    /// Where reflinks are not available, use hard links to the Archive's own files, made read-only.
    pub link: bool,
    /// The resolver whose persistent URLs the records contain.
    pub resolver: Option<String>,
}

/// The outcome for an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainTreeChange {
    /// Written, in its newest version.
    Laid {
        /// Number of files.
        files: u64,
        /// Total size, in bytes.
        bytes: u64,
    },
    /// Removed from the tree.
    Removed,
    /// It cannot be represented in a tree of files, and why.
    LeftOut(&'static str),
    /// Writing failed; the previous version is unchanged.
    Failed(String),
}

/// Called with the label of each changed item. Returns whether to continue.
pub type PlainTreeCallback<'a> = dyn FnMut(&str, PlainTreeChange) -> bool + 'a;

/// A plain tree opened for writing, under an exclusive lock.
pub struct PlainTree {
    layout: TreeLayout,
    options: PlainTreeOptions,
    /// Decides about access.
    clock: TrustedClock,
    /// The journal position from which to follow.
    position: JournalPosition,
    _lock: DataFolderLock,
}

impl PlainTree {
    /// Opens a plain tree, or creates one in a new or empty folder.
    pub fn open(holdings: &Holdings, out: &Path, options: PlainTreeOptions) -> Result<Self, ArchiveError> {
        check_separate_folders(&holdings.data, out)?;
        fs::create_dir_all(out).map_err(ArchiveError::io("create", out))?;
        let lock = DataFolderLock::try_lock_open_folder(out)?.ok_or_else(|| {
            ArchiveError::Value(format!("another process works on the plain tree in {}", out.display()))
        })?;
        let own = out.join(TREE_STATE_FOLDER);
        let marker = own.join("of");
        let service = format!("ibi plain tree, format 1\nservice {}\n", holdings.settings.service.primary());
        match fs::read_to_string(&marker) {
            Ok(found) if found == service => {}
            Ok(_) => {
                let what =
                    format!("{} is the plain tree of another Archive: name another folder", out.display());
                return Err(ArchiveError::Value(what));
            }
            Err(_) => {
                let mut entries = fs::read_dir(out).map_err(ArchiveError::io("read", out))?;
                if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != TREE_STATE_FOLDER)) {
                    let what =
                        format!("{} is neither empty nor a plain tree: name another folder", out.display());
                    return Err(ArchiveError::Value(what));
                }
                fs::create_dir_all(&own).map_err(ArchiveError::io("create", &own))?;
                write_marker(&marker, &service)?;
            }
        }
        let layout = TreeLayout::open(out, &own.join("staging"), &holdings.data.join("tree"), &options)?;
        Ok(Self {
            layout,
            options,
            clock: TrustedClock::new(&holdings.data),
            position: JournalPosition::START,
            _lock: lock,
        })
    }

    /// Brings the whole tree up to date. `tell` returns whether to continue.
    pub fn bring_up_to_date(
        &mut self,
        holdings: &Holdings,
        tell: &mut PlainTreeCallback<'_>,
    ) -> Result<bool, ArchiveError> {
        // Later changes are in the journal after this position.
        self.position = holdings.records.position()?;
        let mut after = String::new();
        loop {
            let page = holdings.list(&after, TREE_PAGE_ITEMS)?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.path);
            if !self.update_items(holdings, page, tell)? {
                return Ok(false);
            }
        }
        for laid in self.layout.tree_entries() {
            let laid = laid?;
            let stays = match holdings.item(&laid.path) {
                Ok(holding) => {
                    self.is_wanted(holdings, &holding)
                        && holding.item.url.is_none()
                        && self.layout.folder(&holding, laid.part) == laid.folder
                }
                Err(ArchiveError::Unknown { .. }) => false,
                Err(error) => return Err(error),
            };
            if !stays && !self.remove_item(&laid.folder, laid.part, tell)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Follows the journal from the position of the tree. Returns whether it reached the end: the
    /// index may lag behind.
    pub fn follow(
        &mut self,
        holdings: &Holdings,
        tell: &mut PlainTreeCallback<'_>,
    ) -> Result<bool, ArchiveError> {
        let known = holdings.last_change()?;
        let (mut paths, mut behind) = (Vec::new(), false);
        let reading = Journal::read(&holdings.data, self.position, &mut |told| {
            if let JournalLine::Entry(entry) = told {
                if entry.change > known { behind = true } else { paths.push(entry.path) }
            }
            Ok(())
        })?;
        paths.sort();
        paths.dedup();
        for path in paths {
            match holdings.item(&path) {
                Ok(holding) => drop(self.update_items(holdings, vec![holding], tell)?),
                // Dropped: its label is no longer known, so find its folders by path.
                Err(ArchiveError::Unknown { .. }) => {
                    for PlainTreeEntry { folder, part, .. } in self.layout.find(&path)? {
                        self.remove_item(&folder, part, tell)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if !behind {
            self.position = reading.end;
        }
        Ok(!behind)
    }

    /// The length of the journal that the tree has followed, in bytes.
    pub fn followed_bytes(&self) -> u64 {
        self.position.place
    }

    /// Whether an item belongs in the tree.
    fn is_wanted(&self, holdings: &Holdings, holding: &HeldItem) -> bool {
        // Imported elsewhere, the service would be a second Archive of the same name (clause 2).
        if holding.item.labels == holdings.settings.service {
            return false;
        }
        let nobody = IpAddr::from([0, 0, 0, 0]);
        let open = || holding.item.access.allows(nobody, self.clock.unix_seconds());
        holding.state != State::Deleted && (self.options.all || open())
    }

    /// Writes the items that belong here and removes those that do not.
    fn update_items(
        &self,
        holdings: &Holdings,
        items: Vec<HeldItem>,
        tell: &mut PlainTreeCallback<'_>,
    ) -> Result<bool, ArchiveError> {
        let mut written = Vec::new();
        for holding in items {
            let label = holding.item.labels.primary().to_owned();
            let (wanted, leads_away) = (self.is_wanted(holdings, &holding), holding.item.url.is_some());
            if !wanted || leads_away {
                for part in TreePart::ALL {
                    let folder = self.layout.folder(&holding, part);
                    if self.layout.has_item(&folder) && !self.remove_item(&folder, part, tell)? {
                        return Ok(false);
                    }
                }
                if wanted && !tell(&label, PlainTreeChange::LeftOut("it leads to a URL and has no files")) {
                    return Ok(false);
                }
                continue;
            }
            for part in TreePart::ALL {
                match self.layout.write(holdings, &holding, part) {
                    Ok(None) => {}
                    Ok(Some(item)) => written.push((label.clone(), item)),
                    Err(error) if !tell(&label, PlainTreeChange::Failed(error.to_string())) => {
                        return Ok(false);
                    }
                    Err(_) => {}
                }
            }
            if written.len() >= ITEMS_PER_SYNC && !self.put_in_place(std::mem::take(&mut written), tell)? {
                return Ok(false);
            }
        }
        self.put_in_place(written, tell)
    }

    fn put_in_place(
        &self,
        written: Vec<(String, layout::StagedTreeItem)>,
        tell: &mut PlainTreeCallback<'_>,
    ) -> Result<bool, ArchiveError> {
        if written.is_empty() {
            return Ok(true);
        }
        self.layout.sync()?;
        for (label, item) in written {
            let change = match self.layout.put_in_place(&item) {
                // Reported with its item.
                Ok(()) if item.part == TreePart::Metadata => continue,
                Ok(()) => PlainTreeChange::Laid { files: item.files, bytes: item.bytes },
                Err(error) => PlainTreeChange::Failed(error.to_string()),
            };
            if !tell(&label, change) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn remove_item(
        &self,
        folder: &Path,
        part: TreePart,
        tell: &mut PlainTreeCallback<'_>,
    ) -> Result<bool, ArchiveError> {
        self.layout.remove_entry(folder)?;
        Ok(part == TreePart::Metadata || tell(&folder.to_string_lossy(), PlainTreeChange::Removed))
    }
}

/// Atomic: a truncated marker would look like that of another Archive.
fn write_marker(marker: &Path, text: &str) -> Result<(), ArchiveError> {
    let aside = marker.with_extension("new");
    let mut file = fs::File::create(&aside).map_err(ArchiveError::io("create", &aside))?;
    file.write_all(text.as_bytes()).map_err(ArchiveError::io("write", &aside))?;
    file.sync_all().map_err(ArchiveError::io("sync", &aside))?;
    fs::rename(&aside, marker).map_err(ArchiveError::io("put in its place", marker))
}
