//! `ibi archive audit`.

use std::sync::Mutex;

use ibi_archive::audit::{AuditFinding, AuditOptions, FixityFault};
use ibi_archive::replication::repair::{self, PeerCandidate};
use ibi_archive::replication::resolver;
use serde::Serialize;

use crate::cli::archive::AuditArgs;
use crate::commands::archive::{
    open, open_to_read, operator_of, orphans, peers, pluralize, progress_counter,
};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

#[derive(Serialize)]
struct AuditOutput<'a> {
    started: &'a str,
    finished: Option<&'a str>,
    items: u64,
    files: u64,
    bytes: u64,
    missing: usize,
    changed: usize,
    unreadable: usize,
    unexpected: usize,
    findings: &'a [AuditFinding],
}

pub(crate) fn run(command: &AuditArgs) -> Result<CommandOutcome, CommandError> {
    command.peer_args.outgoing.apply()?;
    if let Some(label) = command
        .ibi
        .as_ref()
        .filter(|_| command.repair || !command.with.is_empty() || command.resolver.is_some())
    {
        return compare(command, label);
    }
    if let Some(resolver) = &command.resolver {
        return orphans::run(command, resolver);
    }
    let holdings = open_to_read(&command.data.folder()?)?;
    let progress = progress_counter("bytes checked");
    // Without --json, findings are printed on standard output at the end.
    let tell = |finding: &AuditFinding| {
        if !command.json {
            return;
        }
        progress.suspend(|| {
            say(format_args!(
                "{}: {}/{}",
                finding.wrong.name(),
                printable(&finding.item),
                printable(&finding.file)
            ));
        });
    };
    let options = AuditOptions {
        rate: command.rate,
        anew: command.restart,
        tell: &tell,
        progress: &|bytes| progress.inc(bytes),
    };
    let audit = match &command.ibi {
        Some(label) => {
            let (holding, _) = holdings.find(label)?;
            holdings.audit_item(&holding.path, &options)?
        }
        None => {
            if let Some(before) = holdings.interrupted_audit()?.filter(|_| !command.restart) {
                say(format_args!(
                    "resuming the audit of {}, which was interrupted after {}; use --restart to start over",
                    before.started,
                    pluralize(before.items, "item")
                ));
                before.findings.iter().for_each(tell);
            }
            holdings.audit(&options)?
        }
    };
    progress.finish_and_clear();
    let [missing, changed, unreadable, unexpected] =
        [FixityFault::Missing, FixityFault::Changed, FixityFault::Unreadable, FixityFault::Unexpected]
            .map(|wrong| audit.count(wrong));
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&AuditOutput {
            started: &audit.started,
            finished: audit.finished.as_deref(),
            items: audit.items,
            files: audit.files,
            bytes: audit.bytes,
            missing,
            changed,
            unreadable,
            unexpected,
            findings: &audit.findings,
        })?;
    } else {
        for finding in &audit.findings {
            let (item, file) = (printable(&finding.item), printable(&finding.file));
            output.text(format_args!("{}\t{item}\t{file}\n", finding.wrong.name()))?;
        }
    }
    output.flush()?;
    say(format_args!(
        "{}, {}, {}: {missing} missing, {changed} changed, {unreadable} unreadable, {unexpected} unexpected",
        pluralize(audit.items, "item"),
        pluralize(audit.files, "file"),
        pluralize(audit.bytes, "byte")
    ));
    if !audit.findings.is_empty() {
        say(format_args!(
            "repair an item from another Archive that has it with `ibi archive audit IBI --repair --with URL`, or restore the damaged files \
             from a backup; then run the audit again"
        ));
    }
    Ok(CommandOutcome::from(audit.findings.is_empty()))
}

/// Compares an item with the holdings of other Archives, and repairs what it can.
fn compare(command: &AuditArgs, label: &str) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let here = Mutex::new(open_to_read(&data)?);
    let asked = command.with.iter().map(|url| peers::peer(url, &command.peer_args).map(PeerCandidate::from));
    let mut asked = asked.collect::<Result<Vec<_>, _>>()?;
    let token = peers::token(&command.peer_args)?;
    if token.is_some() && (command.with.len() > 1 || command.resolver.is_some()) {
        return Err(CommandError::Usage(repair::ONE_TOKEN_MESSAGE.to_owned()));
    }
    let bar = progress_counter("bytes received");
    let comparison = peers::block_on_network(async {
        if let Some(resolver) = &command.resolver {
            asked.extend(resolver::find_holders(&here, resolver, label).await?);
        }
        let progress = |bytes| bar.inc(bytes);
        Ok(repair::compare_with_peers(&here, &data, label, asked, token, command.repair, &progress).await?)
    });
    bar.finish_and_clear();
    let comparison = comparison?;
    drop(here);
    if !comparison.repairs.is_empty() {
        open(&data)?.apply_repairs(&comparison.path, &comparison.repairs, &operator_of(&data))?;
    }
    let report = &comparison.report;
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(report)?;
    } else {
        for finding in &report.findings {
            output.text(format_args!("{}\t{}\n", finding.wrong.name(), printable(&finding.file)))?;
        }
        for other in &report.holders {
            let what = match other {
                _ if other.error.is_some() => "unknown",
                _ if !other.damaged.is_empty() => "damaged",
                _ if other.equal => "equal",
                _ => "differs",
            };
            output.text(format_args!("{what}\t{}\n", printable(&other.archive)))?;
        }
        for file in &report.repaired {
            output.text(format_args!("repaired\t{}\n", printable(file)))?;
        }
    }
    output.flush()?;
    for error in report.holders.iter().flat_map(|other| other.error.iter().chain(&other.unread)) {
        say(format_args!("{}", printable(error)));
    }
    report.alarms.iter().for_each(|alarm| say(format_args!("ALARM: {}", printable(alarm))));
    let is_left = |finding: &&AuditFinding| !report.repaired.contains(&finding.file);
    let left = report.findings.iter().filter(is_left).count();
    let unread =
        report.holders.iter().filter(|other| other.error.is_some() || other.unread.is_some()).count();
    say(format_args!(
        "{} findings here, {} repaired; {} holders compared, {unread} could not be read, {} alarms",
        report.findings.len(),
        report.findings.len() - left,
        report.holders.len() - unread,
        report.alarms.len()
    ));
    Ok(match left == 0 && report.alarms.is_empty() {
        // Local damage takes precedence over unreachable peers; a later audit reads those.
        true if unread > 0 && report.findings.is_empty() => CommandOutcome::Unread,
        answer => CommandOutcome::from(answer),
    })
}
