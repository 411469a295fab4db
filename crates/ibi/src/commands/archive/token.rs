//! `ibi archive token`.

use std::path::Path;

use ibi_archive::archive;
use ibi_archive::mint::clock::{Clock as _, SystemClock};
use ibi_archive::service::{self, Token, Tokens};
use serde::Serialize;

use crate::cli::serve::{TokenCreate, TokenList, TokenRevoke};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    name: &'a str,
    role: &'static str,
    created: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> Shown<'a> {
    fn new(token: &'a Token, secret: Option<&'a str>) -> Self {
        let Token { id, name, role, created, .. } = token;
        Self { id, name, role: role.name(), created, token: secret }
    }
}

/// The tokens of a folder that is an Archive.
fn tokens(data: &Path) -> Result<Tokens, Failure> {
    archive::open_to_read(data)?;
    Ok(service::tokens(data))
}

pub(crate) fn create(command: &TokenCreate) -> Result<Answer, Failure> {
    let tokens = tokens(&command.data.folder()?)?;
    let now = SystemClock::new().read().wall.seconds();
    let now = ibi_id::Instant::new(now, 0).map(|now| now.to_string()).unwrap_or_default();
    let (token, secret) = tokens.create(&command.name, command.role, now)?;
    let mut output = Output::new();
    if command.json {
        output.json(&Shown::new(&token, Some(secret.reveal())))?;
    } else {
        output.text(format_args!("{}\n", secret.reveal()))?;
    }
    output.flush()?;
    say(format_args!(
        "token {} of the role {}: it is shown this once; send it as `Authorization: Bearer …`",
        token.id,
        token.role.name()
    ));
    Ok(Answer::Yes)
}

pub(crate) fn list(command: &TokenList) -> Result<Answer, Failure> {
    let mut output = Output::new();
    for token in tokens(&command.data.folder()?)?.list()? {
        if command.json {
            output.json(&Shown::new(&token, None))?;
        } else {
            let Token { id, name, role, created, .. } = &token;
            output.text(format_args!("{id}\t{}\t{created}\t{}\n", role.name(), printable(name)))?;
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}

pub(crate) fn revoke(command: &TokenRevoke) -> Result<Answer, Failure> {
    tokens(&command.data.folder()?)?.revoke(&command.id)?;
    say(format_args!("token {} is no good any more", printable(&command.id)));
    Ok(Answer::Yes)
}
