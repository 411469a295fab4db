//! `ibi archive plain-tree`.

use std::path::Path;
use std::time::Duration;

use ibi_archive::plain_tree::{PlainChange, PlainOptions, PlainTree};
use serde::Serialize;

use crate::cli::continuity::PlainTreeArgs;
use crate::commands::archive::{count, open_to_read};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// Between two looks at the journal.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// After so many looks at the journal, an hour, all items are looked at: some are opened by their
/// date alone.
const LOOKS_PER_FULL_PASS: u32 = 7200;

#[derive(Serialize)]
struct PlainLine<'a> {
    status: &'static str,
    item: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

struct PlainTold {
    json: bool,
    output: Output,
    laid: u64,
    removed: u64,
    left_out: u64,
    failed: u64,
    written: Result<(), Failure>,
}

pub(crate) fn run(command: &PlainTreeArgs) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let holdings = open_to_read(&data)?;
    let options = PlainOptions { all: command.all, link: command.link };
    let mut tree = PlainTree::open(&holdings, &command.out, options)?;
    let mut told = PlainTold {
        json: command.json,
        output: Output::new(),
        laid: 0,
        removed: 0,
        left_out: 0,
        failed: 0,
        written: Ok(()),
    };
    tree.bring_up_to_date(&holdings, &mut |item, change| told.tell(item, &change))?;
    drop(holdings);
    told.end()?;
    say(format_args!(
        "{} laid out, {} taken away, {} failed",
        count(told.laid, "item"),
        told.removed,
        told.failed
    ));
    if told.left_out > 0 {
        say(format_args!(
            "{} left out: target URLs have no place in a plain tree",
            count(told.left_out, "item")
        ));
    }
    if command.watch {
        say(format_args!("following the Archive; Ctrl-C stops it"));
        watch(&data, &mut tree, &mut told)?;
    }
    Ok(Answer::from(told.failed == 0))
}

/// Follows the journal until somebody stops the process: the tree is whole at every instant.
fn watch(data: &Path, tree: &mut PlainTree, told: &mut PlainTold) -> Result<(), Failure> {
    let journal = data.join("journal");
    let mut looks = 0;
    loop {
        std::thread::sleep(WATCH_INTERVAL);
        looks += 1;
        let length = std::fs::metadata(&journal).map(|file| file.len()).unwrap_or(0);
        let all = looks >= LOOKS_PER_FULL_PASS || length < tree.followed();
        if !all && length == tree.followed() {
            continue;
        }
        let holdings = match open_to_read(data) {
            Ok(holdings) => holdings,
            Err(failure) => {
                // It may be rebuilt just now.
                say(format_args!("cannot read the Archive, tried again: {failure}"));
                continue;
            }
        };
        let mut tell = |item: &str, change: PlainChange| told.tell(item, &change);
        let done = if all {
            looks = 0;
            tree.bring_up_to_date(&holdings, &mut tell)
        } else {
            tree.follow(&holdings, &mut tell)
        };
        if let Err(error) = done {
            say(format_args!(
                "the plain tree is not up to date, tried again: {}",
                printable(&error.to_string())
            ));
        }
        told.end()?;
    }
}

impl PlainTold {
    fn tell(&mut self, item: &str, change: &PlainChange) -> bool {
        let (status, files, bytes, error, count) = match change {
            PlainChange::Laid { files, bytes } => ("laid", Some(*files), Some(*bytes), None, &mut self.laid),
            PlainChange::Removed => ("removed", None, None, None, &mut self.removed),
            PlainChange::LeftOut(why) => ("left-out", None, None, Some(*why), &mut self.left_out),
            PlainChange::Failed(error) => ("failed", None, None, Some(error.as_str()), &mut self.failed),
        };
        *count += 1;
        self.written = if self.json {
            self.output.json(&PlainLine { status, item, files, bytes, error })
        } else {
            let what = error.map(printable).unwrap_or_default();
            self.output.text(format_args!("{status}\t{}\t{what}\n", printable(item)))
        };
        self.written.is_ok()
    }

    fn end(&mut self) -> Result<(), Failure> {
        std::mem::replace(&mut self.written, Ok(()))?;
        self.output.flush()
    }
}
