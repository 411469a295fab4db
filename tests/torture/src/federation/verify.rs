//! What must be true in the end.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::asking::{number, text};
use super::count::Wrong;
use super::node::Node;
use super::{Federation, Known};

/// What an Archive has of an item.
struct Held {
    state: String,
    version: u64,
    purged: bool,
    /// Of its tree. That the files are what it says, the audit tells.
    inventory: Vec<u8>,
    /// The Archive that it is refreshed from.
    source: Option<usize>,
    /// How it stands, told to a person.
    told: String,
}

/// By their numbers, what Archives have of an item.
type Holders = BTreeMap<usize, Held>;

impl Federation {
    pub(super) fn verify(&self) {
        let world: Vec<BTreeMap<String, Held>> = self.each(|node| self.holdings(node));
        let mut holders: BTreeMap<String, Holders> = BTreeMap::new();
        for (number, held) in world.into_iter().enumerate() {
            for (path, held) in held {
                holders.entry(path).or_default().insert(number, held);
            }
        }
        for known in &self.items {
            let known = known.lock().expect("nobody failed");
            let none = Holders::new();
            let holders = holders.get(&known.path).unwrap_or(&none);
            for (kind, what) in judge(&known, holders) {
                let told: Vec<String> =
                    holders.iter().map(|(node, held)| format!("{node}: {}", held.told)).collect();
                self.wrong(kind, format!("{}: {what} ({})", known.path, told.join("; ")));
            }
            let copies = holders.values().filter(|held| held.state == "Copy").count();
            let removed = usize::from(holders.values().any(|held| held.state == "Deleted"));
            self.with(|count| {
                count.copies += copies;
                count.removed += removed;
            });
        }
        self.each(|node| self.verify_archive(node));
        let log = fs::read_to_string(&self.resolver.log).unwrap_or_default();
        for line in log.lines().filter(|line| line.contains("panicked")) {
            self.wrong(Wrong::Broken, format!("the resolver: {line}"));
        }
    }

    /// Does something at all Archives, some at a time.
    fn each<T: Send>(&self, work: impl Fn(&Node) -> T + Sync) -> Vec<T> {
        let (next, work) = (AtomicUsize::new(0), &work);
        let mut done = std::thread::scope(|scope| {
            let some = || {
                let mut done = Vec::new();
                while let Some((number, node)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|next| Some((next, self.nodes.get(next)?)))
                {
                    done.push((number, work(node)));
                }
                done
            };
            let threads: Vec<_> = (0..super::WORKERS).map(|_| scope.spawn(some)).collect();
            let ended = threads.into_iter().flat_map(|thread| thread.join().expect("it ends"));
            ended.collect::<Vec<_>>()
        });
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, done)| done).collect()
    }

    fn holdings(&self, node: &Node) -> BTreeMap<String, Held> {
        let listed = node.must(&["archive", "list", "--json"]);
        let held = listed.lines().filter_map(|line| {
            let path = text(line, "path")?.to_owned();
            let stand = node.stand(&path)?;
            let source = self.nodes.iter().position(|node| stand.source.as_ref() == Some(&node.url));
            let held = Held {
                state: text(line, "state")?.to_owned(),
                version: number(line, "version")?,
                purged: line.contains(r#""purged":true"#),
                inventory: fs::read(node.data.join("tree").join(&path).join("inventory.json"))
                    .unwrap_or_default(),
                source,
                told: stand.whole,
            };
            Some((path, held))
        });
        held.collect()
    }

    /// Every byte is right; taken offline and rebuilt, it answers as before; and its server never
    /// broke.
    fn verify_archive(&self, node: &Node) {
        let audit = node.run(&["archive", "audit", "--restart", "--json"]);
        if audit.status != Some(0) || !audit.printed.contains(r#""findings":[]"#) {
            self.wrong(
                Wrong::Differ,
                format!("{}: an audit finds {}{}", node.url, audit.printed, audit.said),
            );
        }
        self.expect(node.stop(true, None));
        let before = answers(node);
        let rebuilt = node.run(&["archive", "rebuild", "--json"]);
        if rebuilt.status != Some(0) || !rebuilt.printed.contains(r#""adopted":[],"missing":[],"damaged":[]"#)
        {
            self.wrong(Wrong::Rebuilt, format!("{}: it found {}{}", node.url, rebuilt.printed, rebuilt.said));
        }
        let after = answers(node);
        if before != after {
            let differs = before.lines().zip(after.lines()).find(|(one, other)| one != other);
            self.wrong(Wrong::Rebuilt, format!("{}: {differs:?}", node.url));
        }
        let log = fs::read_to_string(&node.log).unwrap_or_default();
        // Also what other Archives asked for, and were told.
        let broke = |line: &&str| line.contains("panicked") || line.contains(r#""status":500,"#);
        for line in log.lines().filter(broke) {
            self.wrong(Wrong::Broken, format!("{}: {line}", node.log.display()));
        }
        let journal = fs::read_to_string(node.data.join("journal")).expect("it is there");
        let accepted = journal.lines().filter(|line| line.split(' ').nth(2) == Some("accept")).count();
        self.with(|count| count.accepted += accepted);
    }
}

/// All that an Archive tells of its items and their links.
fn answers(node: &Node) -> String {
    let mut answers = node.must(&["archive", "list", "--json"]);
    let paths: Vec<String> =
        answers.lines().filter_map(|line| text(line, "path").map(str::to_owned)).collect();
    for path in paths {
        answers += &node.must(&["archive", "show", &path, "--json"]);
    }
    answers + &node.must(&["archive", "links", "list", "--json"])
}

/// What is wrong with an item, from what was acknowledged and what Archives have of it. All is
/// quiet, and no refresh brings anything more.
fn judge(known: &Known, holders: &Holders) -> Vec<(Wrong, String)> {
    let mut wrongs = Vec::new();
    let are = |state: &str| holders.values().filter(|held| held.state == state).collect::<Vec<_>>();
    let (originals, tombstones) = (are("Original"), are("Deleted"));
    if originals.len() > 1 {
        wrongs.push((Wrong::Twice, format!("{} Originals", originals.len())));
    }
    if originals.is_empty() && (tombstones.is_empty() || !known.doomed) {
        // All else would follow from that.
        return vec![(Wrong::Lost, "no Original, and nobody removed it".to_owned())];
    }
    // Only the Original can be removed, and tombstones are for ever.
    if !originals.is_empty() && (known.removed || !tombstones.is_empty()) {
        wrongs.push((Wrong::Revived, "it was removed, and there is an Original".to_owned()));
    }
    // Each acknowledged change is a version. There may be more: of changes that were made and cut
    // off before the answer. What was destroyed begins anew with a tombstone as its only version.
    let lasting = originals.iter().chain(&tombstones);
    let versions = lasting.map(|held| if held.purged { u64::MAX } else { held.version }).max().unwrap_or(0);
    let expected = 1 + known.updates + u64::from(known.removed);
    if versions < expected {
        wrongs.push((Wrong::Forgotten, format!("version {versions}, and {expected} were acknowledged")));
    }
    // Objects are byte-equal at all holders of a version. Not tombstones: a copy that had missed an
    // update makes one of its own, for nobody is given what was withdrawn; and each Archive may
    // destroy the bytes by itself, and notes its own time.
    let mut by_version: BTreeMap<u64, &[u8]> = BTreeMap::new();
    for held in holders.values().filter(|held| held.state != "Deleted") {
        if *by_version.entry(held.version).or_insert(&held.inventory) != held.inventory {
            wrongs.push((Wrong::Differ, format!("version {} is not the same everywhere", held.version)));
        }
    }
    let last = by_version.keys().next_back().copied().unwrap_or(0);
    if originals.iter().any(|original| original.version < last) {
        wrongs.push((Wrong::Differ, "a copy is later than the Original".to_owned()));
    }
    for (number, copy) in holders.iter().filter(|(_, held)| held.state == "Copy") {
        let Some(source) = copy.source else {
            wrongs.push((Wrong::Behind, format!("the copy at {number} comes from nowhere")));
            continue;
        };
        match holders.get(&source) {
            // Dropped there: the copy has nobody to learn from, until its operator names another
            // (`refresh --from`). So it may be behind, or not know that the item was removed; and
            // copies of it neither.
            None => {}
            Some(source) if source.state == "Deleted" => {
                wrongs.push((Wrong::Revived, format!("the copy at {number} should be a tombstone")));
            }
            Some(source) if source.version > copy.version => {
                wrongs.push((Wrong::Behind, format!("the copy at {number} is behind its source")));
            }
            // Equal, or behind us: two copies may have each other as sources, and nobody else.
            Some(_) => {}
        }
    }
    wrongs
}
