//! `ibi archive token`.

use std::path::Path;

use ibi_archive::opening;
use ibi_archive::service::{self, ServiceToken, ServiceTokens};
use ibi_http::token_store::NewToken;
use ibi_mint::clock::{MintClock as _, SystemClock};
use serde::Serialize;

use crate::cli::serve::{TokenCreateArgs, TokenListArgs, TokenRenewArgs, TokenRevokeArgs, TokenSetArgs};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

#[derive(Serialize)]
struct TokenOutput<'a> {
    id: &'a str,
    name: &'a str,
    role: &'static str,
    created: &'a str,
    expires: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_expired: bool,
    prefixes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> TokenOutput<'a> {
    fn new(token: &'a ServiceToken, secret: Option<&'a str>) -> Self {
        let ServiceToken { id, name, role, created, expires, has_expired, prefixes, .. } = token;
        let (role, expires, has_expired) = (role.name(), expires.as_deref(), *has_expired);
        Self { id, name, role, created, expires, has_expired, prefixes, token: secret }
    }
}

/// Opens the tokens of an Archive's folder.
fn tokens(data: &Path) -> Result<ServiceTokens, CommandError> {
    Ok(tokens_and_operator(data)?.0)
}

/// Opens the tokens, and returns the operator's name.
fn tokens_and_operator(data: &Path) -> Result<(ServiceTokens, String), CommandError> {
    let operator = opening::open_to_read(data)?.0.settings().operator().to_owned();
    Ok((service::open_tokens(data), operator))
}

pub(crate) fn create(command: &TokenCreateArgs) -> Result<CommandOutcome, CommandError> {
    let (tokens, operator) = tokens_and_operator(&command.data.folder()?)?;
    let seconds = now();
    let now = ibi_id::Instant::new(seconds, 0).map(|now| now.to_string()).unwrap_or_default();
    let (token, secret) = tokens.create(NewToken {
        name: command.name.clone(),
        role: command.role,
        created: now,
        expires: command.expires.as_ref().and_then(|expires| expires.time(seconds)),
        prefixes: command.prefixes.clone(),
        operator: Some(operator),
    })?;
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&TokenOutput::new(&token, Some(secret.reveal())))?;
    } else {
        output.text(format_args!("{}\n", secret.reveal()))?;
    }
    output.flush()?;
    say(format_args!(
        "token {} with the role {}: its secret is shown only once; send it as `Authorization: Bearer …`",
        token.id,
        token.role.name()
    ));
    Ok(CommandOutcome::Yes)
}

pub(crate) fn list(command: &TokenListArgs) -> Result<CommandOutcome, CommandError> {
    let mut output = StdoutWriter::new();
    for token in tokens(&command.data.folder()?)?.list()? {
        if command.json {
            output.json(&TokenOutput::new(&token, None))?;
        } else {
            let ServiceToken { id, name, role, created, expires, prefixes, .. } = &token;
            let expired = if token.has_expired { " (expired)" } else { "" };
            let expires = format!("{}{expired}", expires.as_deref().unwrap_or("-"));
            let prefixes = if prefixes.is_empty() { "-".to_owned() } else { prefixes.join(" ") };
            let (role, name) = (role.name(), printable(name));
            output.text(format_args!("{id}\t{role}\t{created}\t{expires}\t{prefixes}\t{name}\n"))?;
        }
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}

pub(crate) fn set(command: &TokenSetArgs) -> Result<CommandOutcome, CommandError> {
    let seconds = now();
    tokens(&command.data.folder()?)?.update_token(&command.id, |token| {
        if let Some(expires) = &command.expires {
            token.set_expiry(expires.time(seconds));
        }
        if command.no_prefixes || !command.prefixes.is_empty() {
            token.prefixes.clone_from(&command.prefixes);
        }
    })?;
    say(format_args!("changed token {}", printable(&command.id)));
    Ok(CommandOutcome::Yes)
}

pub(crate) fn renew(command: &TokenRenewArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    release_reserve(&data)?;
    let secret = tokens(&data)?.rotate_secret(&command.id)?;
    let mut output = StdoutWriter::new();
    output.text(format_args!("{}\n", secret.reveal()))?;
    output.flush()?;
    say(format_args!("replaced the secret of token {}; it is shown only once", printable(&command.id)));
    Ok(CommandOutcome::Yes)
}

fn now() -> i64 {
    SystemClock::new().read().wall.seconds()
}

pub(crate) fn revoke(command: &TokenRevokeArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    release_reserve(&data)?;
    tokens(&data)?.revoke(&command.id)?;
    say(format_args!("revoked token {}", printable(&command.id)));
    Ok(CommandOutcome::Yes)
}

/// Tokens can be revoked even on a full disk.
fn release_reserve(data: &Path) -> Result<(), CommandError> {
    ibi_archive::store::release_if_needed(data).map_err(ibi_archive::ArchiveError::from)?;
    Ok(())
}
