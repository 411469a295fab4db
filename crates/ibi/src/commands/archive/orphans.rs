//! `ibi archive audit --resolver URL`: Copies here whose Original nobody claims (clause 2.1).

use ibi_archive::holders::original_claim::OriginalClaim;
use ibi_archive::holders::peer::Peer;
use ibi_archive::keep::State;
use serde::Serialize;

use crate::cli::archive::Audit;
use crate::commands::archive::{counter, holders, open_to_read};
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

/// Items that are read from the index at a time.
const PAGE: usize = 500;

#[derive(Serialize)]
struct OrphanLine<'a> {
    item: &'a str,
    original: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    archives: Vec<String>,
}

pub(super) fn run(command: &Audit, resolver: &str) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let resolver = Peer::new(resolver, None).map_err(|error| Failure::Usage(error.to_string()))?;
    let progress = counter("copies looked for");
    let mut output = Output::new();
    let (mut copies, mut orphans, mut unknown) = (0_u64, 0_u64, 0_u64);
    let mut after = String::new();
    holders::waiting(async {
        loop {
            let page = holdings.list(&after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.path);
            for holding in page.iter().filter(|holding| holding.state == State::Copy) {
                let label = holding.item.labels.primary();
                let (original, archives) =
                    match OriginalClaim::ask(&resolver, holdings.settings(), label).await? {
                        OriginalClaim::Elsewhere(archives) => ("elsewhere", archives),
                        OriginalClaim::Here => ("here", Vec::new()),
                        OriginalClaim::Nobody => ("nobody", Vec::new()),
                        OriginalClaim::Removed => ("removed", Vec::new()),
                        OriginalClaim::Unsure(silent) => ("unknown", silent),
                    };
                copies += 1;
                orphans += u64::from(matches!(original, "nobody" | "removed"));
                unknown += u64::from(original == "unknown");
                progress.inc(1);
                if matches!(original, "elsewhere" | "here") {
                    continue;
                }
                if command.json {
                    output.json(&OrphanLine { item: label, original, archives })?;
                } else {
                    output.text(format_args!("{original}\t{label}\t{}\n", archives.join(" ")))?;
                }
                output.flush()?;
            }
        }
    })?;
    progress.finish_and_clear();
    output.flush()?;
    say(format_args!(
        "{copies} copies: the Original of {orphans} is claimed by nobody, that of {unknown} is not known"
    ));
    if orphans > 0 {
        say(format_args!(
            "ask the Archive that they came from; if this one has the last of it, `ibi archive update IBI --original` says so"
        ));
    }
    Ok(match orphans {
        0 if unknown > 0 => Answer::Unread,
        orphans => Answer::from(orphans == 0),
    })
}
