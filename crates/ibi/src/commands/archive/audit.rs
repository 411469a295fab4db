//! `ibi archive audit`.

use std::sync::Mutex;

use ibi_archive::audit::{Finding, Options, Wrong};
use ibi_archive::holders::repair::{self, Asked};
use ibi_archive::holders::resolver;
use serde::Serialize;

use crate::cli::archive::Audit;
use crate::commands::archive::{counter, holders, open, open_to_read, orphans, who};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

#[derive(Serialize)]
struct Audited<'a> {
    started: &'a str,
    finished: Option<&'a str>,
    items: u64,
    files: u64,
    bytes: u64,
    missing: usize,
    changed: usize,
    unreadable: usize,
    unexpected: usize,
    findings: &'a [Finding],
}

pub(crate) fn run(command: &Audit) -> Result<Answer, Failure> {
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
    let progress = counter("bytes checked");
    // Without --json, standard output tells them at the end.
    let tell = |finding: &Finding| {
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
    let options = Options {
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
                    "going on with the audit of {}, which was interrupted after {} items; --restart begins anew",
                    before.started, before.items
                ));
                before.findings.iter().for_each(tell);
            }
            holdings.audit(&options)?
        }
    };
    progress.finish_and_clear();
    let count = |wrong| audit.count(wrong);
    let [missing, changed, unreadable, unexpected] =
        [Wrong::Missing, Wrong::Changed, Wrong::Unreadable, Wrong::Unexpected].map(count);
    let mut output = Output::new();
    if command.json {
        output.json(&Audited {
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
        "{} items, {} files, {} bytes: {missing} missing, {changed} changed, {unreadable} unreadable, {unexpected} unexpected",
        audit.items, audit.files, audit.bytes
    ));
    if !audit.findings.is_empty() {
        say(format_args!(
            "`ibi archive audit IBI --repair --with URL` puts an item right from another Archive that has it; or put what is damaged back \
             from a backup, then run the audit again"
        ));
    }
    Ok(Answer::from(audit.findings.is_empty()))
}

/// Compares an item with what others have of it, and puts right what can be.
fn compare(command: &Audit, label: &str) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let here = Mutex::new(open_to_read(&data)?);
    let asked = command.with.iter().map(|url| holders::peer(url, &command.theirs).map(Asked::from));
    let mut asked = asked.collect::<Result<Vec<_>, _>>()?;
    let token = holders::token(&command.theirs)?;
    if token.is_some() && (command.with.len() > 1 || command.resolver.is_some()) {
        return Err(Failure::Usage(repair::ONE_TOKEN.to_owned()));
    }
    let bar = counter("bytes came");
    let comparison = holders::waiting(async {
        if let Some(resolver) = &command.resolver {
            asked.extend(resolver::holders(&here, resolver, label).await?);
        }
        let progress = |bytes| bar.inc(bytes);
        Ok(repair::compare(&here, &data, label, asked, token, command.repair, &progress).await?)
    });
    bar.finish_and_clear();
    let comparison = comparison?;
    drop(here);
    if !comparison.repairs.is_empty() {
        open(&data)?.mend(&comparison.path, &comparison.repairs, &who())?;
    }
    let report = &comparison.report;
    let mut output = Output::new();
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
    let is_left = |finding: &&Finding| !report.repaired.contains(&finding.file);
    let left = report.findings.iter().filter(is_left).count();
    let unread =
        report.holders.iter().filter(|other| other.error.is_some() || other.unread.is_some()).count();
    say(format_args!(
        "{} wrong here, {} put right; {} holders compared, {unread} could not be read, {} alarms",
        report.findings.len(),
        report.findings.len() - left,
        report.holders.len() - unread,
        report.alarms.len()
    ));
    Ok(match left == 0 && report.alarms.is_empty() {
        // With damage here, that comes first: another audit reads the others.
        true if unread > 0 && report.findings.is_empty() => Answer::Unread,
        answer => Answer::from(answer),
    })
}
