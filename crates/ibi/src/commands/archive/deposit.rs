//! `ibi archive deposit`.

use std::path::Path;

use ibi_archive::Holdings;
use ibi_archive::deposit::{DepositRequest, DepositSource, SourceKind};
use ibi_archive::item_view::ItemView;
use ibi_archive::store::LabelRole;
use ibi_archive::table::{DepositTable, TableRowOutcome, TableRowReport, fill_from_source};
use serde::Serialize;

use crate::cli::archive::DepositArgs;
use crate::cli::continuity::ProvenanceArgs;
use crate::commands::archive::import::ResolverClaimCheck;
use crate::commands::archive::{
    item_output, open, open_to_read, operator_of, pluralize, print_notes, progress_bar, warn,
};
use crate::commands::minter::shell_quoted;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Size from which a progress bar is shown.
const DEPOSIT_PROGRESS_MIN_BYTES: u64 = 8 << 20;

pub(crate) fn run(command: DepositArgs) -> Result<CommandOutcome, CommandError> {
    command.outgoing.apply()?;
    let data = command.data.folder()?;
    if let Some(table) = &command.table {
        return run_table(&data, table, command.dry_run, command.json);
    }
    let ProvenanceArgs {
        metadata_label: metadata_labels,
        created,
        updated,
        metadata_created,
        metadata_updated,
    } = command.provenance;
    if command.original {
        check_no_other_original(&data, &command.label, command.resolver.as_deref())?;
    }
    let draft = command.description.draft(command.label, command.original, operator_of(&data))?;
    let draft =
        DepositRequest { metadata_labels, created, updated, metadata_created, metadata_updated, ..draft };
    // clap requires one of them.
    let source = match &command.path {
        Some(path) => DepositSource::at(path)?,
        None if command.record || draft.url.is_some() => DepositSource::empty(),
        None => {
            return Err(CommandError::Usage(
                "nothing to deposit: give a file, a folder, --url or --record".to_owned(),
            ));
        }
    };
    let target = draft.target.is_some();
    let titled = !draft.metadata.statements().is_empty() || source.metadata().is_some();
    let draft = fill_from_source(draft, &source)?;
    let mut archive = open(&data)?;
    if source.empty_folders() > 0 && !source.files().is_empty() {
        let folders = pluralize(source.empty_folders() as u64, "folder");
        say(format_args!("{folders} without files are not stored"));
    }
    if source.origin() == SourceKind::Bag {
        say(format_args!("found a bag: depositing its payload, verified against its manifests"));
    }
    if command.dry_run {
        archive.check_draft(&source, &draft)?;
        let links = [draft.translation_of.as_deref(), draft.next_edition_of.as_deref()];
        warn(&archive.holdings().warnings_of(&draft.metadata, links)?);
        let (files, bytes) =
            (pluralize(source.files().len() as u64, "file"), pluralize(source.size(), "byte"));
        say(format_args!("can be deposited: {files}, {bytes}"));
        return Ok(CommandOutcome::Yes);
    }
    let progress = progress_bar(source.size(), DEPOSIT_PROGRESS_MIN_BYTES);
    let staged = archive.stage(&source, None, &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    let change = archive.prepare_deposit(staged, draft)?;
    let path =
        archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?.pop().unwrap_or_default();
    let holding = archive.holdings().item(&path)?;
    // Reported first: the deposit is done, even if standard output fails.
    say(format_args!(
        "deposited as {}: {}, {}",
        holding.item.labels.primary(),
        pluralize(source.files().len() as u64, "file"),
        pluralize(source.size(), "byte")
    ));
    print_notes(archive.holdings(), &holding, target)?;
    item_output::print(archive.holdings(), &holding, command.json)?;
    if !titled {
        say(format_args!(
            "titled {}; set another title with --dc title=…",
            printable(item_output::title(&holding))
        ));
    }
    let (data, label) = (shell_quoted(&data.display().to_string()), holding.item.labels.primary());
    say(format_args!("next: ibi archive show {label} --data {data}"));
    Ok(CommandOutcome::Yes)
}

/// Asks a resolver whether another Archive has the Original, or removed it: a label that was
/// removed is not used again (clause 2.1).
fn check_no_other_original(
    data: &Path,
    labels: &[String],
    resolver: Option<&str>,
) -> Result<(), CommandError> {
    if resolver.is_none() {
        say(format_args!(
            "not checked whether another Archive has the Original or removed it: pass --resolver to check"
        ));
        return Ok(());
    }
    let check = ResolverClaimCheck::new(resolver, open_to_read(data)?.settings().clone())?;
    Ok(labels.iter().try_for_each(|label| check.ask(label))?)
}

/// The result of a row.
#[derive(Serialize)]
struct DepositRowOutput<'a> {
    line: u64,
    file: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    item: Option<ItemView<'a>>,
}

fn run_table(data: &Path, path: &Path, dry: bool, json: bool) -> Result<CommandOutcome, CommandError> {
    let mut table = DepositTable::open(path)?;
    let mut archive = open(data)?;
    let progress = progress_bar(table.length(), 1 << 16);
    let mut output = StdoutWriter::new();
    let mut counts = DepositCounts::default();
    let mut failed = Ok(());
    // Each row is reported as soon as it is durable.
    let finished = archive.deposit_table(
        &mut table,
        dry,
        &operator_of(data),
        &|place| progress.set_position(place),
        &mut |holdings, report| {
            counts.add(&report.outcome);
            failed = print_row(holdings, &report, json, &mut output).and_then(|()| output.flush());
            failed.is_ok()
        },
    );
    progress.finish_and_clear();
    failed.and_then(|()| output.flush())?;
    finished?;
    say(format_args!("{counts}"));
    if counts.refused > 0 {
        say(format_args!("fix the refused rows and rerun the command; no row is deposited twice"));
    }
    Ok(CommandOutcome::from(counts.refused == 0))
}

#[derive(Default)]
struct DepositCounts {
    deposited: u64,
    already: u64,
    right: u64,
    refused: u64,
}

impl DepositCounts {
    fn add(&mut self, outcome: &TableRowOutcome) {
        *match outcome {
            TableRowOutcome::Deposited(_) => &mut self.deposited,
            TableRowOutcome::Already(_) => &mut self.already,
            TableRowOutcome::Right => &mut self.right,
            TableRowOutcome::Refused(_) => &mut self.refused,
        } += 1;
    }
}

impl std::fmt::Display for DepositCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { deposited, already, right, refused } = self;
        if *right > 0 {
            let right = pluralize(*right, "row");
            return write!(f, "{right} can be deposited, {already} already deposited, {refused} refused");
        }
        write!(
            f,
            "{} deposited, {already} already deposited, {refused} refused",
            pluralize(*deposited, "row")
        )
    }
}

fn print_row(
    holdings: &Holdings,
    report: &TableRowReport,
    json: bool,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    let (status, path) = match &report.outcome {
        TableRowOutcome::Deposited(path) => ("deposited", Some(path)),
        TableRowOutcome::Already(path) => ("already", Some(path)),
        TableRowOutcome::Right => ("right", None),
        TableRowOutcome::Refused(_) => ("refused", None),
    };
    let error = match &report.outcome {
        TableRowOutcome::Refused(error) => Some(error.to_string()),
        _ => None,
    };
    let holding = path.map(|path| holdings.item(path)).transpose()?;
    if let (Some(holding), TableRowOutcome::Deposited(_)) = (&holding, &report.outcome) {
        for warning in holdings.warnings(holding)? {
            say(format_args!("warning: line {}: {}", report.line, printable(&warning)));
        }
    }
    if json {
        let item =
            holding.as_ref().map(|holding| ItemView::of(holdings, holding, LabelRole::Item)).transpose()?;
        return output.json(&DepositRowOutput { line: report.line, file: &report.file, status, error, item });
    }
    let what = holding.as_ref().map(item_output::labels).or(error).unwrap_or_default();
    output.text(format_args!(
        "{}\t{status}\t{}\t{}\n",
        report.line,
        printable(&report.file),
        printable_columns(&what)
    ))
}

/// Escapes each column; tabs between labels stay.
fn printable_columns(text: &str) -> String {
    text.split('\t').map(printable).collect::<Vec<_>>().join("\t")
}
