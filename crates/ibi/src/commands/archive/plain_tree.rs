//! `ibi archive plain-tree`.

use std::path::Path;
use std::time::Duration;

use ibi_archive::plain_tree::{PlainTree, PlainTreeChange, PlainTreeOptions};
use serde::Serialize;

use crate::cli::continuity::PlainTreeArgs;
use crate::commands::archive::{open_to_read, pluralize};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Interval between checks of the journal.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// Checks between two full passes: one hour. Embargoes end by date, without a journal entry.
const CHECKS_PER_FULL_PASS: u32 = 7200;

#[derive(Serialize)]
struct PlainTreeOutput<'a> {
    status: &'static str,
    item: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

struct PlainTreeReporter {
    json: bool,
    output: StdoutWriter,
    laid: u64,
    removed: u64,
    left_out: u64,
    failed: u64,
    written: Result<(), CommandError>,
}

pub(crate) fn run(command: &PlainTreeArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder_to_publish_from()?;
    let holdings = open_to_read(&data)?;
    let options =
        PlainTreeOptions { all: command.all, link: command.link, resolver: command.resolver.clone() };
    let mut tree = PlainTree::open(&holdings, &command.out, options)?;
    let mut reporter = PlainTreeReporter {
        json: command.json,
        output: StdoutWriter::new(),
        laid: 0,
        removed: 0,
        left_out: 0,
        failed: 0,
        written: Ok(()),
    };
    tree.bring_up_to_date(&holdings, &mut |item, change| reporter.print_change(item, &change))?;
    drop(holdings);
    reporter.end()?;
    say(format_args!(
        "{} written, {} removed, {} failed",
        pluralize(reporter.laid, "item"),
        reporter.removed,
        reporter.failed
    ));
    if reporter.left_out > 0 {
        say(format_args!(
            "{} left out: a plain tree cannot contain target URLs",
            pluralize(reporter.left_out, "item")
        ));
    }
    if command.watch {
        say(format_args!("following the Archive; stop with Ctrl-C"));
        watch(&data, &mut tree, &mut reporter)?;
    }
    Ok(CommandOutcome::from(reporter.failed == 0))
}

/// Follows the journal until the process is stopped. The tree is consistent at every instant.
fn watch(data: &Path, tree: &mut PlainTree, reporter: &mut PlainTreeReporter) -> Result<(), CommandError> {
    let journal = data.join("journal");
    let mut checks = 0;
    loop {
        std::thread::sleep(WATCH_INTERVAL);
        checks += 1;
        let length = std::fs::metadata(&journal).map(|file| file.len()).unwrap_or(0);
        let all = checks >= CHECKS_PER_FULL_PASS || length < tree.followed_bytes();
        if !all && length == tree.followed_bytes() {
            continue;
        }
        let holdings = match open_to_read(data) {
            Ok(holdings) => holdings,
            Err(failure) => {
                // The index may be under reconstruction.
                say(format_args!("cannot read the Archive, retrying: {failure}"));
                continue;
            }
        };
        let mut tell = |item: &str, change: PlainTreeChange| reporter.print_change(item, &change);
        let done = if all {
            checks = 0;
            tree.bring_up_to_date(&holdings, &mut tell)
        } else {
            tree.follow(&holdings, &mut tell)
        };
        if let Err(error) = done {
            say(format_args!("cannot update the plain tree, retrying: {}", printable(&error.to_string())));
        }
        reporter.end()?;
    }
}

impl PlainTreeReporter {
    fn print_change(&mut self, item: &str, change: &PlainTreeChange) -> bool {
        let (status, files, bytes, error, count) = match change {
            PlainTreeChange::Laid { files, bytes } => {
                ("laid", Some(*files), Some(*bytes), None, &mut self.laid)
            }
            PlainTreeChange::Removed => ("removed", None, None, None, &mut self.removed),
            PlainTreeChange::LeftOut(why) => ("left-out", None, None, Some(*why), &mut self.left_out),
            PlainTreeChange::Failed(error) => ("failed", None, None, Some(error.as_str()), &mut self.failed),
        };
        *count += 1;
        self.written = if self.json {
            self.output.json(&PlainTreeOutput { status, item, files, bytes, error })
        } else {
            let what = error.map(printable).unwrap_or_default();
            self.output.text(format_args!("{status}\t{}\t{what}\n", printable(item)))
        };
        self.written.is_ok()
    }

    fn end(&mut self) -> Result<(), CommandError> {
        std::mem::replace(&mut self.written, Ok(()))?;
        self.output.flush()
    }
}
