//! `ibi resolver token`.

use ibi_http::tokens::Token;
use ibi_resolver::web::{Role, Tokens, tokens};
use serde_json::json;

use crate::cli::Data;
use crate::cli::resolver::{TokenCreate, TokenList, TokenRevoke};
use crate::commands::resolver::{clock, folder, open};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// The tokens of a folder that is a resolver.
fn of(data: &Data) -> Result<Tokens, Failure> {
    open(data)?;
    Ok(tokens(&folder(data)?))
}

pub(crate) fn create(command: &TokenCreate) -> Result<Answer, Failure> {
    let now = ibi_id::Instant::new(clock()(), 0).map(|now| now.to_string()).unwrap_or_default();
    let (token, secret) = of(&command.data)?.create(&command.name, Role::Operator, now)?;
    let mut output = Output::new();
    if command.json {
        let Token { id, name, created, .. } = &token;
        output.json(&json!({ "id": id, "name": name, "created": created, "token": secret.reveal() }))?;
    } else {
        output.text(format_args!("{}\n", secret.reveal()))?;
    }
    output.flush()?;
    say(format_args!("token {}: it is shown this once; send it as `Authorization: Bearer …`", token.id));
    Ok(Answer::Yes)
}

pub(crate) fn list(command: &TokenList) -> Result<Answer, Failure> {
    let mut output = Output::new();
    for Token { id, name, created, .. } in of(&command.data)?.list()? {
        if command.json {
            output.json(&json!({ "id": id, "name": name, "created": created }))?;
        } else {
            output.text(format_args!("{id}\t{created}\t{}\n", printable(&name)))?;
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}

pub(crate) fn revoke(command: &TokenRevoke) -> Result<Answer, Failure> {
    of(&command.data)?.revoke(&command.id)?;
    say(format_args!("token {} is no good any more", printable(&command.id)));
    Ok(Answer::Yes)
}
