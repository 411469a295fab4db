//! The plain tree: the newest version of each item as ordinary folders, `<rep>/doc/…`, in which
//! relative links between items work on disk (clause 2.3, 001 §5; `docs/formats/plain-tree.md`). It
//! is made from the Archive and is no part of it. Beside each item lies the repository of its
//! metadata, as in the founding documents; the Archive's own service is not there.

mod layout;

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use ibi_store::DataLock;
use ibi_store::journal::{Journal, Position, State, Told};

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::backup::check_apart;
use crate::mint::clock::{Clock as _, SystemClock};
use layout::{LaidItem, TreeLayout, TreePart};

/// The file beside `doc` that says which version of what lies there: a folder without it is not
/// ours to replace.
pub(crate) const STAMP: &str = ".ibi-plain";

/// The folder of the plain tree that is its own: what it is, and what is being written.
const OWN_FOLDER: &str = ".ibi-plain-tree";

/// Items that are made durable with one sync.
const ITEMS_PER_SYNC: usize = 128;

/// Items that are read from the index at a time.
const PAGE: usize = 256;

/// How a plain tree is laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlainOptions {
    /// Also items that are not open to all.
    pub all: bool,
    /// Hard links to the Archive's own files, made read-only, where bytes cannot be shared
    /// otherwise.
    pub link: bool,
}

/// What was done with an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainChange {
    /// It is laid out, in its newest version.
    Laid {
        /// Its files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// It is there no more.
    Removed,
    /// It has no place in a tree of files: why.
    LeftOut(&'static str),
    /// It could not be laid out: what was there is as it was.
    Failed(String),
}

/// Told of each item that is changed, by its label.
pub type TellPlain<'a> = dyn FnMut(&str, PlainChange) -> bool + 'a;

/// A plain tree that this process alone changes.
pub struct PlainTree {
    layout: TreeLayout,
    options: PlainOptions,
    clock: SystemClock,
    /// From here on the journal is to be followed.
    position: Position,
    _lock: DataLock,
}

impl PlainTree {
    /// Opens a plain tree, or begins one in a folder that is new or empty.
    pub fn open(holdings: &Holdings, out: &Path, options: PlainOptions) -> Result<Self, ArchiveError> {
        check_apart(&holdings.data, out)?;
        fs::create_dir_all(out).map_err(ArchiveError::io("create", out))?;
        let lock = DataLock::take(out)?.ok_or_else(|| {
            ArchiveError::Value(format!("another process works on the plain tree in {}", out.display()))
        })?;
        let own = out.join(OWN_FOLDER);
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
                if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != OWN_FOLDER)) {
                    let what =
                        format!("{} is neither empty nor a plain tree: name another folder", out.display());
                    return Err(ArchiveError::Value(what));
                }
                fs::create_dir_all(&own).map_err(ArchiveError::io("create", &own))?;
                fs::write(&marker, service).map_err(ArchiveError::io("write", &marker))?;
            }
        }
        let layout = TreeLayout::open(out, &own.join("staging"), &holdings.data.join("tree"), options.link)?;
        Ok(Self { layout, options, clock: SystemClock::new(), position: Position::START, _lock: lock })
    }

    /// Brings the whole tree up to date. Whether to go on is told by `tell`.
    pub fn bring_up_to_date(
        &mut self,
        holdings: &Holdings,
        tell: &mut TellPlain<'_>,
    ) -> Result<bool, ArchiveError> {
        // What happens from here on is in the journal behind this.
        self.position = holdings.records.position()?;
        let mut after = String::new();
        loop {
            let page = holdings.list(&after, PAGE)?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.path);
            if !self.lay(holdings, page, tell)? {
                return Ok(false);
            }
        }
        for laid in self.layout.laid() {
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
            if !stays && !self.take_away(&laid.folder, laid.part, tell)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Follows the journal from where the tree stands. Whether it has come to its end: the index
    /// may be behind it.
    pub fn follow(&mut self, holdings: &Holdings, tell: &mut TellPlain<'_>) -> Result<bool, ArchiveError> {
        let known = holdings.last_change()?;
        let (mut paths, mut behind) = (Vec::new(), false);
        let reading = Journal::read(&holdings.data, self.position, &mut |told| {
            if let Told::Entry(entry) = told {
                if entry.change > known { behind = true } else { paths.push(entry.path) }
            }
            Ok(())
        })?;
        paths.sort();
        paths.dedup();
        for path in paths {
            match holdings.item(&path) {
                Ok(holding) => drop(self.lay(holdings, vec![holding], tell)?),
                // Dropped: under which label it lay is known by its path alone.
                Err(ArchiveError::Unknown { .. }) => {
                    for LaidItem { folder, part, .. } in self.layout.find(&path)? {
                        self.take_away(&folder, part, tell)?;
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

    /// How long the journal is by now, as far as the tree follows it.
    pub fn followed(&self) -> u64 {
        self.position.place
    }

    /// Whether an item belongs into the tree.
    fn is_wanted(&self, holdings: &Holdings, holding: &Holding) -> bool {
        // Brought in elsewhere, the service would be a second Archive of the same name (clause 2).
        if holding.item.labels == holdings.settings.service {
            return false;
        }
        let nobody = IpAddr::from([0, 0, 0, 0]);
        let open = || holding.item.access.allows(nobody, self.clock.read().wall.seconds());
        holding.state != State::Deleted && (self.options.all || open())
    }

    /// Lays items out that belong here, and takes away those that do not.
    fn lay(
        &self,
        holdings: &Holdings,
        items: Vec<Holding>,
        tell: &mut TellPlain<'_>,
    ) -> Result<bool, ArchiveError> {
        let mut written = Vec::new();
        for holding in items {
            let label = holding.item.labels.primary().to_owned();
            let (wanted, leads_away) = (self.is_wanted(holdings, &holding), holding.item.url.is_some());
            if !wanted || leads_away {
                for part in TreePart::ALL {
                    let folder = self.layout.folder(&holding, part);
                    if self.layout.is_laid(&folder) && !self.take_away(&folder, part, tell)? {
                        return Ok(false);
                    }
                }
                if wanted && !tell(&label, PlainChange::LeftOut("it leads to a URL and has no files")) {
                    return Ok(false);
                }
                continue;
            }
            for part in TreePart::ALL {
                match self.layout.write(holdings, &holding, part) {
                    Ok(None) => {}
                    Ok(Some(item)) => written.push((label.clone(), item)),
                    Err(error) if !tell(&label, PlainChange::Failed(error.to_string())) => return Ok(false),
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
        written: Vec<(String, layout::WrittenItem)>,
        tell: &mut TellPlain<'_>,
    ) -> Result<bool, ArchiveError> {
        if written.is_empty() {
            return Ok(true);
        }
        self.layout.sync()?;
        for (label, item) in written {
            let change = match self.layout.put_in_place(&item) {
                // The item is told of.
                Ok(()) if item.part == TreePart::Metadata => continue,
                Ok(()) => PlainChange::Laid { files: item.files, bytes: item.bytes },
                Err(error) => PlainChange::Failed(error.to_string()),
            };
            if !tell(&label, change) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take_away(
        &self,
        folder: &Path,
        part: TreePart,
        tell: &mut TellPlain<'_>,
    ) -> Result<bool, ArchiveError> {
        self.layout.take_away(folder)?;
        Ok(part == TreePart::Metadata || tell(&folder.to_string_lossy(), PlainChange::Removed))
    }
}
