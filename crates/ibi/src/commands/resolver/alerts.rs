//! `ibi resolver alerts`.

use ibi_archive::ownership::LOCAL_OPERATOR;
use ibi_resolver::api_view::{AlertClaimView, AlertVersionView, AlertView, SEVERAL_ORIGINALS};

use crate::cli::resolver::ResolverAlertsArgs;
use crate::commands::resolver::{clock, open};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Prints the evidence for a claim, one line each.
fn print_evidence(
    output: &mut StdoutWriter,
    claim: &AlertClaimView,
    prefix: Option<&str>,
) -> Result<(), CommandError> {
    if let (Some(prefix), Some(own)) = (prefix, claim.own_prefix) {
        let whose = if own { "the prefix of this Archive" } else { "not the prefix of this Archive" };
        output.text(format_args!("\t\tlabel minted under {}: {whose}\n", printable(prefix)))?;
    }
    if let Some(time) = &claim.deposited {
        let who = claim.depositor.as_deref().unwrap_or("-");
        output.text(format_args!("\t\tdeposited {} by {}\n", printable(time), printable(who)))?;
    }
    if let Some(epoch) = claim.epoch {
        output.text(format_args!("\t\tepoch {epoch}\n"))?;
    }
    for AlertVersionView { version, inventory } in &claim.versions {
        output.text(format_args!("\t\tv{version} {}\n", printable(inventory)))?;
    }
    if let Some(email) = claim.contact.as_ref().and_then(|contact| contact.email.as_deref()) {
        output.text(format_args!("\t\tadministrator {}\n", printable(email)))?;
    }
    Ok(())
}

pub(crate) fn run(command: &ResolverAlertsArgs) -> Result<CommandOutcome, CommandError> {
    let registry = open(&command.data)?;
    let mut output = StdoutWriter::new();
    let alerts = match (command.resolve, &command.note) {
        (Some(id), Some(note)) => {
            if registry.alert(id)?.is_some_and(|alert| alert.resolved.is_some()) {
                say(format_args!("alert {id} is already resolved: see `ibi resolver alerts --all`"));
                return Ok(CommandOutcome::No);
            }
            let ended = registry.resolve_alert(id, LOCAL_OPERATOR, note, clock()())?;
            let Some(ended) = ended else {
                say(format_args!("there is no alert {id}: list all with `ibi resolver alerts --all`"));
                return Ok(CommandOutcome::No);
            };
            vec![ended]
        }
        _ => registry.alerts(command.all)?,
    };
    for alert in &alerts {
        let shown = AlertView::new(&registry, alert);
        if command.json {
            output.json(&shown)?;
            continue;
        }
        let AlertView { id, item, first_seen, last_seen, times, .. } = &shown;
        let item = printable(item);
        output.text(format_args!("{id}\t{item}\t{times} x, {first_seen} to {last_seen}\n"))?;
        for claim in &shown.claims {
            let url = claim.url.as_deref().unwrap_or("-");
            let updated = claim.timestamp.as_deref().unwrap_or("-");
            let (archive, url, updated) = (printable(&claim.archive), printable(url), printable(updated));
            if shown.kind == SEVERAL_ORIGINALS {
                output.text(format_args!("\t{archive} claims the original at {url}, updated {updated}\n"))?;
            } else if claim.copies.is_empty() {
                output.text(format_args!("\t{archive} has the originals\n"))?;
            } else {
                output.text(format_args!("\t{archive} has copies that are no version of them:\n"))?;
                for label in &claim.copies {
                    output.text(format_args!("\t\t{}\n", printable(label)))?;
                }
            }
            print_evidence(&mut output, claim, shown.prefix.as_deref())?;
        }
        if let Some(end) = &shown.resolved {
            output.text(format_args!(
                "\tresolved {} by {}: {}\n",
                end.at,
                printable(&end.by),
                printable(&end.note)
            ))?;
        }
    }
    output.flush()?;
    if alerts.is_empty() {
        say(format_args!("no alerts"));
    }
    Ok(CommandOutcome::Yes)
}
