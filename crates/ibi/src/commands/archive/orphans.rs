//! `ibi archive audit --resolver URL`: lists Copies whose Original nobody claims (clause 2.1).

use ibi_archive::replication::original_claim::OriginalClaim;
use ibi_archive::replication::peer::PeerArchive;
use ibi_archive::store::State;
use serde::Serialize;

use crate::cli::archive::AuditArgs;
use crate::commands::archive::{open_to_read, peers, progress_counter};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, say};

/// Items read from the index per page.
const ORPHAN_PAGE_SIZE: usize = 500;

#[derive(Serialize)]
struct OrphanOutput<'a> {
    item: &'a str,
    original: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    archives: Vec<String>,
}

pub(super) fn run(command: &AuditArgs, resolver: &str) -> Result<CommandOutcome, CommandError> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let resolver =
        PeerArchive::new(resolver, None).map_err(|error| CommandError::Usage(error.to_string()))?;
    let progress = progress_counter("copies checked");
    let mut output = StdoutWriter::new();
    let (mut copies, mut orphans, mut unknown) = (0_u64, 0_u64, 0_u64);
    let mut after = String::new();
    peers::block_on_network(async {
        loop {
            let page = holdings.list(&after, ORPHAN_PAGE_SIZE)?;
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
                    output.json(&OrphanOutput { item: label, original, archives })?;
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
        "{copies} {}: {orphans} with an Original that nobody claims, {unknown} unknown",
        if copies == 1 { "copy" } else { "copies" }
    ));
    if orphans > 0 {
        say(format_args!(
            "ask the Archive that they came from; if this is the last copy, declare it with `ibi archive update IBI --original`"
        ));
    }
    Ok(match orphans {
        0 if unknown > 0 => CommandOutcome::Unread,
        orphans => CommandOutcome::from(orphans == 0),
    })
}
