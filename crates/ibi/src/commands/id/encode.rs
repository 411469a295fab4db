//! `ibi id encode`.

use std::fmt::Display;

use ibi_id::{Host, IbipPrefix, NotUnique, ParseError, RepositoryPrefix, host_not_unique, ip_not_unique};

use crate::cli::Encode;
use crate::commands::id::record::Record;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

pub(in crate::commands) fn run(command: &Encode) -> Result<Answer, Failure> {
    let label = build(command).map_err(Failure::Build)?;
    let mut output = Output::new();
    if command.json {
        Record::of(&label).write_json(false, &mut output)?;
    } else {
        output.text(format_args!("{label}\n"))?;
    }
    output.flush()?;
    Ok(Answer::Yes)
}

fn build(command: &Encode) -> Result<String, ParseError> {
    // The command line gives one of the two.
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
            "warning: {from} is not unique in the world, nor are labels made from it: {reason}"
        ));
    }
}
