//! `ibi resolver token`.

use ibi_http::token_store::{NewToken, TokenRecord};
use ibi_resolver::web::{ResolverRole, ResolverTokens, tokens};
use serde_json::json;

use crate::cli::DataArgs;
use crate::cli::resolver::{ResolverRevokeArgs, ResolverTokenArgs, ResolverTokensArgs};
use crate::commands::resolver::{clock, folder, open};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Opens the tokens of a resolver's folder.
fn open_tokens(data: &DataArgs) -> Result<ResolverTokens, CommandError> {
    open(data)?;
    Ok(tokens(&folder(data)?))
}

pub(crate) fn create(command: &ResolverTokenArgs) -> Result<CommandOutcome, CommandError> {
    let seconds = clock()();
    let now = ibi_id::Instant::new(seconds, 0).map(|now| now.to_string()).unwrap_or_default();
    let new = NewToken {
        expires: command.expires.as_ref().and_then(|expires| expires.time(seconds)),
        ..NewToken::new(command.name.as_deref(), ResolverRole::Operator, now)
    };
    let (token, secret) = open_tokens(&command.data)?.create(new)?;
    let mut output = StdoutWriter::new();
    if command.json {
        let TokenRecord { id, name, created, expires, .. } = &token;
        let secret = secret.reveal();
        let shown =
            json!({ "id": id, "name": name, "created": created, "expires": expires, "token": secret });
        output.json(&shown)?;
    } else {
        output.text(format_args!("{}\n", secret.reveal()))?;
    }
    output.flush()?;
    say(format_args!(
        "token {}: its secret is shown only once; send it as `Authorization: Bearer …`",
        token.id
    ));
    Ok(CommandOutcome::Yes)
}

pub(crate) fn list(command: &ResolverTokensArgs) -> Result<CommandOutcome, CommandError> {
    let mut output = StdoutWriter::new();
    for TokenRecord { id, name, created, expires, .. } in open_tokens(&command.data)?.list()? {
        if command.json {
            let shown = json!({ "id": id, "name": name, "created": created, "expires": expires });
            output.json(&shown)?;
        } else {
            let expires = expires.as_deref().unwrap_or("-");
            output.text(format_args!("{id}\t{created}\t{expires}\t{}\n", printable(&name)))?;
        }
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}

pub(crate) fn revoke(command: &ResolverRevokeArgs) -> Result<CommandOutcome, CommandError> {
    open_tokens(&command.data)?.revoke(&command.id)?;
    say(format_args!("revoked token {}", printable(&command.id)));
    Ok(CommandOutcome::Yes)
}
