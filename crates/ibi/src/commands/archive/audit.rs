//! `ibi archive audit`.

use ibi_archive::audit::{Finding, Options, Wrong};
use serde::Serialize;

use crate::cli::archive::Audit;
use crate::commands::archive::{counter, open_to_read};
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
        say(format_args!("put what is damaged back from a backup, then run the audit again"));
    }
    Ok(Answer::from(audit.findings.is_empty()))
}
