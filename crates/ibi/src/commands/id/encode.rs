//! `ibi id encode`.

use std::fmt::Display;

use ibi_id::{Host, IbipPrefix, NotUnique, ParseError, RepositoryPrefix, host_not_unique, ip_not_unique};

use crate::cli::IdEncodeArgs;
use crate::commands::id::record::ParsedLabelRecord;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, say};

pub(in crate::commands) fn run(command: &IdEncodeArgs) -> Result<CommandOutcome, CommandError> {
    let label = build(command).map_err(CommandError::Build)?;
    let mut output = StdoutWriter::new();
    if command.json {
        ParsedLabelRecord::of(&label).write_json(false, &mut output)?;
    } else {
        output.text(format_args!("{label}\n"))?;
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}

fn build(command: &IdEncodeArgs) -> Result<String, ParseError> {
    // clap requires one of the two.
    if let Some(ip) = command.ip {
        warn_unless_unique(&ip, ip_not_unique(ip));
        return IbipPrefix::new(ip, command.port).label(command.at);
    }
    let host = Host::parse(command.host.as_deref().unwrap_or_default())?;
    warn_unless_unique(&host, host_not_unique(host));
    RepositoryPrefix::new(host, command.port).label(command.at)
}

fn warn_unless_unique(from: &dyn Display, not_unique: Option<NotUnique>) {
    if let Some(reason) = not_unique {
        say(format_args!(
            "warning: {from} is not globally unique, so labels made from it are not either: {reason}"
        ));
    }
}
