//! What the commands that ask other Archives share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ibi_archive::ArchiveError;
use ibi_archive::holders::HolderError;
use ibi_archive::holders::bring::Arrival;
use ibi_archive::holders::collection::{Bringing, Outcome, Put, Whether, put_into};
use ibi_archive::holders::copy::Source;
use ibi_archive::holders::peer::Peer;

use crate::cli::holders::Theirs;
use crate::commands::archive::{counter, open, open_to_read, who};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// The token of another Archive, from its file or the environment.
pub(super) fn token(theirs: &Theirs) -> Result<Option<String>, Failure> {
    let text = match &theirs.token_file {
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            Failure::Usage(format!("cannot read the token from {}: {error}", path.display()))
        })?,
        None => match std::env::var("IBI_TOKEN") {
            Ok(text) => text,
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Another Archive.
pub(super) fn peer(url: &str, theirs: &Theirs) -> Result<Peer, Failure> {
    Peer::new(url, token(theirs)?).map_err(|error| Failure::Usage(error.to_string()))
}

/// Runs what waits for the network.
pub(super) fn waiting<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(Failure::Serve)?.block_on(work)
}

/// Brings items, each from its source, and tells what came of each.
pub(super) async fn bring(data: &Path, items: Vec<(String, Source)>, json: bool) -> Result<Answer, Failure> {
    let here = Arc::new(Mutex::new(open_to_read(data)?));
    let bar = counter("bytes came");
    let mut output = Output::new();
    let mut tally = Tally::default();
    let mut written = Ok(());
    let mut tell = |outcome: Outcome| {
        tally.add(&outcome);
        if written.is_ok() {
            written = bar.suspend(|| print(&mut output, &outcome, json));
        }
    };
    let progress = bar.clone();
    let bringing = Bringing {
        here,
        data: data.to_owned(),
        put: Borrowing { data: data.to_owned(), by: who() },
        tell: &mut tell,
        progress: Arc::new(move |bytes| progress.inc(bytes)),
    };
    let brought = bringing.all(items).await;
    bar.finish_and_clear();
    brought?;
    written?;
    output.flush()?;
    tally.say();
    Ok(tally.answer())
}

/// Borrows the Archive for a moment, each time: a server of this folder goes on meanwhile.
struct Borrowing {
    data: PathBuf,
    by: String,
}

impl Put for Borrowing {
    async fn put(&mut self, brought: Vec<Arrival>) -> Result<Vec<Whether>, HolderError> {
        tokio::task::block_in_place(|| {
            let mut archive = open(&self.data).map_err(|failure| match failure {
                Failure::Archive(error) => error,
                other => ArchiveError::Value(other.to_string()),
            })?;
            Ok(put_into(&mut archive, &brought, &self.by))
        })
    }
}

fn print(output: &mut Output, outcome: &Outcome, json: bool) -> Result<(), Failure> {
    if json {
        output.json(outcome)?;
    } else {
        let found = outcome.found.filter(|_| outcome.error.is_none()).unwrap_or("error");
        output.text(format_args!("{found}\t{}\n", printable(&outcome.item)))?;
    }
    if let Some(error) = &outcome.error {
        say(format_args!("{}: {}", printable(&outcome.item), printable(&error.to_string())));
    } else if let Some(what) = outcome.found.and_then(trouble).filter(|_| !outcome.brought) {
        say(format_args!("{}: {what}", printable(&outcome.item)));
    }
    output.flush()
}

/// What a person should know of what was found, and do.
fn trouble(found: &str) -> Option<&'static str> {
    Some(match found {
        "altered" => {
            "ALTERED: what is here is neither an earlier nor a later state of what is there, and is left as it is. `ibi archive \
             audit` tells whether it is damaged; `refresh --overwrite` puts what is there in its place"
        }
        "beyond" => {
            "BEYOND: what is here is later than what the Original has, or of a later epoch, and is left as it is. Its operator can \
             fetch it from here (`refresh IBI --from … --overwrite`); `refresh --overwrite` here gives it up"
        }
        "lacking" => {
            "LACKING: the Original is here, and lacks versions that are there. `refresh IBI --from … --overwrite` brings them, and \
             it stays the Original"
        }
        "conflict" => {
            "ALARM: both Archives say that they have the Original. Nothing was changed: find out which one has it, with the operator \
             of the other; `show` tells the epochs. `refresh IBI --from … --overwrite` makes the one of the earlier epoch a Copy. If \
             that one has versions which the other lacks, say it at the other first: it gets them, and stays the Original"
        }
        "gone" => "it was removed: there is nothing to copy",
        _ => return None,
    })
}

#[derive(Default)]
struct Tally {
    brought: u64,
    passed: u64,
    trouble: u64,
    /// Some could not be read, and may come if it is tried again.
    unread: bool,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        let trouble =
            outcome.error.is_some() || (!outcome.brought && outcome.found.and_then(trouble).is_some());
        self.unread |= outcome.error.as_ref().is_some_and(|error| !error.is_final());
        match (trouble, outcome.brought) {
            (true, _) => self.trouble += 1,
            (false, true) => self.brought += 1,
            (false, false) => self.passed += 1,
        }
    }

    fn answer(&self) -> Answer {
        if self.unread { Answer::Unread } else { Answer::from(self.trouble == 0) }
    }

    fn say(&self) {
        let Self { brought, passed, trouble, .. } = self;
        say(format_args!("{brought} brought, {passed} as they are, {trouble} with trouble"));
    }
}
