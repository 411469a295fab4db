//! `ibi archive deposit`.

use std::path::Path;

use ibi_archive::Holdings;
use ibi_archive::deposit::{Draft, Origin, Source};
use ibi_archive::keep::Role;
use ibi_archive::table::{Outcome, Report, Table, with_metadata};
use ibi_archive::told::Told;
use serde::Serialize;

use crate::cli::archive::Deposit;
use crate::cli::continuity::BroughtAlong;
use crate::commands::archive::{bar, count, notes, open, shown, who};
use crate::commands::minter::quoted;
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// Bytes from which on a person wants to see progress.
const LONG: u64 = 8 << 20;

pub(crate) fn run(command: Deposit) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    if let Some(table) = &command.table {
        return rows(&data, table, command.dry_run, command.json);
    }
    let BroughtAlong { metadata_label: metadata_labels, created, updated, metadata_updated } =
        command.brought;
    let draft = command.description.draft(command.label, command.original, who())?;
    let draft = Draft { metadata_labels, created, updated, metadata_updated, ..draft };
    // The command line demands one of them.
    let source = match &command.path {
        Some(path) => Source::at(path)?,
        None if command.record || draft.url.is_some() => Source::nothing(),
        None => {
            return Err(Failure::Usage("say what to deposit: a file, a folder, --url, --record".to_owned()));
        }
    };
    let target = draft.target.is_some();
    let titled = !draft.metadata.statements().is_empty() || source.metadata().is_some();
    let draft = with_metadata(draft, &source)?;
    let mut archive = open(&data)?;
    if source.empty_folders() > 0 && !source.files().is_empty() {
        let folders = count(source.empty_folders() as u64, "folder");
        say(format_args!("{folders} without a file in them are not kept"));
    }
    if source.origin() == Origin::Bag {
        say(format_args!("a bag: its payload is deposited, checked against its manifests"));
    }
    if command.dry_run {
        archive.check_draft(&source, &draft)?;
        let (files, bytes) = (count(source.files().len() as u64, "file"), count(source.size(), "byte"));
        say(format_args!("it could be deposited: {files}, {bytes}"));
        return Ok(Answer::Yes);
    }
    let progress = bar(source.size(), LONG);
    let staged = archive.stage(&source, None, &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    let change = archive.prepare_deposit(staged, draft)?;
    let path =
        archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?.pop().unwrap_or_default();
    let holding = archive.holdings().item(&path)?;
    // First of all, to whoever listens: it is there, whatever becomes of standard output.
    say(format_args!(
        "deposited as {}: {}, {}",
        holding.item.labels.primary(),
        count(source.files().len() as u64, "file"),
        count(source.size(), "byte")
    ));
    notes(archive.holdings(), &holding, target)?;
    shown::print(archive.holdings(), &holding, command.json)?;
    if !titled {
        say(format_args!(
            "its title is {} until you give another: --dc title=…",
            printable(shown::title(&holding))
        ));
    }
    let (data, label) = (quoted(&data.display().to_string()), holding.item.labels.primary());
    say(format_args!("next: ibi archive show {label} --data {data}"));
    Ok(Answer::Yes)
}

/// What became of a row.
#[derive(Serialize)]
struct Row<'a> {
    line: u64,
    file: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    item: Option<Told<'a>>,
}

fn rows(data: &Path, path: &Path, dry: bool, json: bool) -> Result<Answer, Failure> {
    let mut table = Table::open(path)?;
    let mut archive = open(data)?;
    let progress = bar(table.length(), 1 << 16);
    let mut output = Output::new();
    let mut counts = Counts::default();
    let mut failed = Ok(());
    // Whoever reads standard output is told of a row when it is safe, not when all are.
    let told = archive.deposit_table(
        &mut table,
        dry,
        &who(),
        &|place| progress.set_position(place),
        &mut |holdings, report| {
            counts.add(&report.outcome);
            failed = tell(holdings, &report, json, &mut output).and_then(|()| output.flush());
            failed.is_ok()
        },
    );
    progress.finish_and_clear();
    failed.and_then(|()| output.flush())?;
    told?;
    say(format_args!("{counts}"));
    if counts.refused > 0 {
        say(format_args!(
            "mend the rows that were refused and run the same command again: no row is deposited twice"
        ));
    }
    Ok(Answer::from(counts.refused == 0))
}

#[derive(Default)]
struct Counts {
    deposited: u64,
    already: u64,
    right: u64,
    refused: u64,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Deposited(_) => &mut self.deposited,
            Outcome::Already(_) => &mut self.already,
            Outcome::Right => &mut self.right,
            Outcome::Refused(_) => &mut self.refused,
        } += 1;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { deposited, already, right, refused } = self;
        if *right > 0 {
            let right = count(*right, "row");
            return write!(f, "{right} could be deposited, {already} are already, {refused} cannot be");
        }
        write!(f, "{} deposited, {already} were already, {refused} refused", count(*deposited, "row"))
    }
}

fn tell(holdings: &Holdings, report: &Report, json: bool, output: &mut Output) -> Result<(), Failure> {
    let (status, path) = match &report.outcome {
        Outcome::Deposited(path) => ("deposited", Some(path)),
        Outcome::Already(path) => ("already", Some(path)),
        Outcome::Right => ("right", None),
        Outcome::Refused(_) => ("refused", None),
    };
    let error = match &report.outcome {
        Outcome::Refused(error) => Some(error.to_string()),
        _ => None,
    };
    let holding = path.map(|path| holdings.item(path)).transpose()?;
    if json {
        let item = holding.as_ref().map(|holding| Told::of(holdings, holding, Role::Item)).transpose()?;
        return output.json(&Row { line: report.line, file: &report.file, status, error, item });
    }
    let what = holding.as_ref().map(shown::labels).or(error).unwrap_or_default();
    output.text(format_args!("{}\t{status}\t{}\t{}\n", report.line, printable(&report.file), tabs(&what)))
}

/// Labels are separated by tabs; anything else is made safe to print.
fn tabs(text: &str) -> String {
    text.split('\t').map(printable).collect::<Vec<_>>().join("\t")
}
