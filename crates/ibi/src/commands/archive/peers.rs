//! Shared by the commands that contact other Archives.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ibi_archive::ArchiveError;
use ibi_archive::replica::replica_object::ReplicaArrival;
use ibi_archive::replication::ReplicationError;
use ibi_archive::replication::bulk_replication::{
    ReplicaOutcome, ReplicaPutResult, ReplicaSink, ReplicationJob, store_replicas,
};
use ibi_archive::replication::copy::ReplicaSource;
use ibi_archive::replication::peer::PeerArchive;

use crate::cli::replication::PeerArgs;
use crate::commands::archive::{open, open_to_read, operator_of, progress_counter};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Reads the token of another Archive from its file or the environment.
pub(super) fn token(peer_args: &PeerArgs) -> Result<Option<String>, CommandError> {
    let text = match &peer_args.token_file {
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            CommandError::Usage(format!("cannot read the token from {}: {error}", path.display()))
        })?,
        None => match std::env::var("IBI_TOKEN") {
            Ok(text) => text,
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Creates a client for another Archive.
pub(super) fn peer(url: &str, peer_args: &PeerArgs) -> Result<PeerArchive, CommandError> {
    PeerArchive::new(url, token(peer_args)?).map_err(|error| CommandError::Usage(error.to_string()))
}

/// Runs network work to completion.
pub(super) fn block_on_network<T>(
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(CommandError::Serve)?.block_on(work)
}

/// Copies items, each from its source, and reports each result.
pub(super) async fn copy_items(
    data: &Path,
    items: Vec<(String, ReplicaSource)>,
    json: bool,
) -> Result<CommandOutcome, CommandError> {
    let here = Arc::new(Mutex::new(open_to_read(data)?));
    let bar = progress_counter("bytes received");
    let mut output = StdoutWriter::new();
    let mut tally = CopyTally::default();
    let mut written = Ok(());
    let mut tell = |outcome: ReplicaOutcome| {
        tally.add(&outcome);
        if written.is_ok() {
            written = bar.suspend(|| print(&mut output, &outcome, json));
        }
    };
    let progress = bar.clone();
    let job = ReplicationJob {
        here,
        data: data.to_owned(),
        put: LeasedWriter { data: data.to_owned(), by: operator_of(data) },
        tell: &mut tell,
        progress: Arc::new(move |bytes| progress.inc(bytes)),
    };
    let finished = job.replicate_all(items).await;
    bar.finish_and_clear();
    finished?;
    written?;
    output.flush()?;
    tally.say();
    Ok(tally.answer())
}

/// Leases the Archive for each batch, so that a running server works in between.
struct LeasedWriter {
    data: PathBuf,
    by: String,
}

impl ReplicaSink for LeasedWriter {
    async fn put(&mut self, brought: Vec<ReplicaArrival>) -> Result<Vec<ReplicaPutResult>, ReplicationError> {
        tokio::task::block_in_place(|| {
            let mut archive = open(&self.data).map_err(|failure| match failure {
                CommandError::Archive(error) => error,
                other => ArchiveError::Value(other.to_string()),
            })?;
            Ok(store_replicas(&mut archive, &brought, &self.by))
        })
    }
}

fn print(output: &mut StdoutWriter, outcome: &ReplicaOutcome, json: bool) -> Result<(), CommandError> {
    if json {
        output.json(outcome)?;
    } else {
        let found = outcome.found.filter(|_| outcome.error.is_none()).unwrap_or("error");
        output.text(format_args!("{found}\t{}\n", printable(&outcome.item)))?;
    }
    if let Some(error) = &outcome.error {
        say(format_args!("{}: {}", printable(&outcome.item), printable(&error.to_string())));
    } else if let Some(what) = outcome.found.and_then(trouble_hint).filter(|_| !outcome.brought) {
        say(format_args!("{}: {what}", printable(&outcome.item)));
    }
    output.flush()
}

/// Explains a finding and names the next step, if the operator has to act.
fn trouble_hint(found: &str) -> Option<&'static str> {
    Some(match found {
        "altered" => {
            "ALTERED: this copy is neither an earlier nor a later state of the item there, and was not changed. Check it for damage \
             with `ibi archive audit`; replace it with `refresh --overwrite`"
        }
        "beyond" => {
            "BEYOND: this copy is newer than the Original, or of a later epoch, and was not changed. The operator of the Original can \
             fetch it from here (`refresh IBI --from … --overwrite`); `refresh --overwrite` here discards it"
        }
        "lacking" => {
            "LACKING: the Original is here, and lacks versions that exist there. Fetch them with `refresh IBI --from … --overwrite`; \
             it stays the Original"
        }
        "conflict" => {
            "ALARM: both Archives claim the Original. Nothing was changed: settle with the operator of the other which one is right; \
             `show` shows the epochs. `refresh IBI --from … --overwrite` makes the one of the earlier epoch a Copy. If that one has \
             versions which the other lacks, run it at the other first: that one gets them, and stays the Original"
        }
        "gone" => "removed: there is nothing to copy",
        _ => return None,
    })
}

#[derive(Default)]
struct CopyTally {
    brought: u64,
    passed: u64,
    trouble: u64,
    /// Some items could not be read; a retry may succeed.
    unread: bool,
}

impl CopyTally {
    fn add(&mut self, outcome: &ReplicaOutcome) {
        let trouble =
            outcome.error.is_some() || (!outcome.brought && outcome.found.and_then(trouble_hint).is_some());
        self.unread |= outcome.error.as_ref().is_some_and(|error| !error.is_final());
        match (trouble, outcome.brought) {
            (true, _) => self.trouble += 1,
            (false, true) => self.brought += 1,
            (false, false) => self.passed += 1,
        }
    }

    fn answer(&self) -> CommandOutcome {
        if self.unread { CommandOutcome::Unread } else { CommandOutcome::from(self.trouble == 0) }
    }

    fn say(&self) {
        let Self { brought, passed, trouble, .. } = self;
        say(format_args!("{brought} copied, {passed} unchanged, {trouble} failed"));
    }
}
