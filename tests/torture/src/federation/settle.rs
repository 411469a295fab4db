//! The end of the play: hand-overs come to their ends, and copies learn what there is to learn.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::asking::text;
use super::count::Wrong;
use super::node::Node;
use super::{Federation, Patience};

/// By then every hand-over has ended, though its taker had been away: they are tried again after 30
/// s at most.
const PATIENCE: Duration = Duration::from_secs(120);

impl Federation {
    pub(super) fn settle(&self) {
        let time = Patience::new(PATIENCE);
        while time.lasts() && self.nodes.iter().any(|node| !pending(node).is_empty()) {
            std::thread::sleep(Duration::from_millis(200));
        }
        for node in &self.nodes {
            for handing in pending(node) {
                self.wrong(Wrong::Pending, format!("{}: {handing}", node.url));
            }
        }
        // A tombstone goes one copy further each time; no chain of sources is longer than there are
        // Archives.
        for _ in 0..=self.nodes.len() {
            if self.refresh_all() == 0 {
                return;
            }
        }
        self.wrong(
            Wrong::Behind,
            "copies are refreshed again and again, and there is always something new".to_owned(),
        );
    }

    /// Refreshes all copies everywhere; how many were behind.
    fn refresh_all(&self) -> usize {
        let brought = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (number, node) in self.nodes.iter().enumerate() {
                let brought = &brought;
                scope.spawn(move || {
                    let listed = node.must(&["archive", "list", "--json"]);
                    for line in listed.lines().filter(|line| text(line, "state") == Some("Copy")) {
                        let Some(answer) = text(line, "path").and_then(|path| self.refresh(number, path))
                        else {
                            self.wrong(Wrong::Behind, format!("{}: nobody answers", node.url));
                            continue;
                        };
                        if answer.body.contains(r#""brought":true"#) {
                            brought.fetch_add(1, Ordering::Relaxed);
                        }
                        // Nobody alters copies here, and all is quiet.
                        let found = text(&answer.body, "found").unwrap_or_default();
                        if found == "altered" || found == "conflict" {
                            self.wrong(Wrong::Differ, format!("{}: {}", node.url, answer.body));
                        }
                    }
                });
            }
        });
        brought.into_inner()
    }

    /// Declares a Copy the Original, which it is not: that must be found.
    pub(super) fn plant(&self) {
        let is = |node: &Node, path: &str, state| node.stand(path).is_some_and(|stand| stand.state == state);
        for item in 0..self.items.len() {
            let path = self.path(item);
            let copy = self.nodes.iter().find(|node| is(node, &path, "Copy"));
            if let Some(copy) = copy.filter(|_| self.nodes.iter().any(|node| is(node, &path, "Original"))) {
                copy.must(&["archive", "update", &path, "--original", "--yes"]);
                return self.look(&path);
            }
        }
    }
}

/// Hand-overs that go on. Those that were given up stay as notes for the operator: the Original is
/// where it was.
fn pending(node: &Node) -> Vec<String> {
    let files = fs::read_dir(node.data.join("service/handovers")).into_iter().flatten().flatten();
    let noted = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let pending = noted.filter(|noted| noted.contains("\"failed\": false"));
    // All but what should stay secret.
    let told = pending.map(|noted| {
        let lines = noted.lines().filter(|line| !line.contains("\"token\"") && !line.contains("\"pass\""));
        lines.map(str::trim).collect()
    });
    told.collect()
}
