//! What a plain tree is like: names, bytes, modes and dates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::archive::Tally;

/// The file beside `doc` that every item has.
const ITEM_STAMP: &str = ".ibi-plain";

/// A plain tree at one instant.
#[derive(Default, Clone, PartialEq, Eq)]
pub(super) struct TreeSnapshot {
    entries: BTreeMap<PathBuf, TreeEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TreeEntry {
    Folder,
    File {
        bytes: Vec<u8>,
        mode: u32,
        /// Of files in a `doc`: it is the item's.
        modified: Option<i64>,
    },
    Other,
}

impl TreeSnapshot {
    pub(super) fn of(folder: &Path) -> Self {
        let mut found = Self::default();
        found.read(folder, Path::new(""));
        found
    }

    fn read(&mut self, root: &Path, below: &Path) {
        for entry in fs::read_dir(root.join(below)).into_iter().flatten().flatten() {
            let place = below.join(entry.file_name());
            let Ok(metadata) = entry.metadata() else { continue };
            let kind = if metadata.is_dir() {
                self.read(root, &place);
                TreeEntry::Folder
            } else if metadata.is_file() {
                let in_doc = place.components().any(|part| part.as_os_str() == "doc");
                TreeEntry::File {
                    bytes: fs::read(root.join(&place)).unwrap_or_default(),
                    mode: metadata.mode(),
                    modified: in_doc.then(|| metadata.mtime()),
                }
            } else {
                TreeEntry::Other
            };
            self.entries.insert(place, kind);
        }
    }

    /// Each item that lies in the tree: the folder that has a `doc` or a stamp, and all below it.
    fn items(&self) -> BTreeMap<PathBuf, BTreeMap<&Path, &TreeEntry>> {
        let visible = |place: &Path| !place.starts_with(".ibi-plain-tree");
        let is_mark = |place: &&PathBuf| {
            place.file_name().is_some_and(|name| name == "doc" || name == ITEM_STAMP) && visible(place)
        };
        let marks = self.entries.keys().filter(is_mark).filter_map(|place| place.parent());
        // A file of an item may be called `doc`: only the outermost folder is an item.
        let mut folders: BTreeSet<&Path> = BTreeSet::new();
        for folder in marks {
            if !folder.ancestors().skip(1).any(|above| folders.contains(above)) {
                folders.insert(folder);
            }
        }
        let below = |folder: &Path| {
            let inside = self.entries.iter().filter(|(place, _)| place.starts_with(folder));
            inside.map(|(place, entry)| (place.as_path(), entry)).collect()
        };
        folders.into_iter().map(|folder| (folder.to_owned(), below(folder))).collect()
    }

    /// At any instant each item is as it was before or as it will be, and one that is in both is
    /// there.
    pub(super) fn check_items(&self, [before, after]: &[&Self; 2], about: &str, tally: &mut Tally) {
        let (here, earlier, later) = (self.items(), before.items(), after.items());
        for (folder, item) in &here {
            if earlier.get(folder) != Some(item) && later.get(folder) != Some(item) {
                tally.half(format!("{about}: {}", folder.display()));
            }
        }
        for folder in earlier.keys().filter(|folder| later.contains_key(*folder)) {
            if !here.contains_key(folder) {
                tally.lost(format!("{about}: {} is in the older tree and the newer one", folder.display()));
            }
        }
    }

    /// The first thing that differs.
    pub(super) fn difference(&self, wanted: &Self) -> Option<String> {
        let places: BTreeSet<&PathBuf> = self.entries.keys().chain(wanted.entries.keys()).collect();
        places.into_iter().find_map(|place| match (self.entries.get(place), wanted.entries.get(place)) {
            (here, there) if here == there => None,
            (Some(_), None) => Some(format!("{} should not be there", place.display())),
            (None, _) => Some(format!("{} is missing", place.display())),
            (Some(_), Some(_)) => Some(format!("{} is another", place.display())),
        })
    }
}
