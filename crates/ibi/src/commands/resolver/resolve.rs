//! `ibi resolver resolve`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ibi_http::accept::UiLanguage;
use ibi_protocol::PersistentUrl;
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_resolver::link::path_and_query;
use ibi_resolver::{
    ArchiveHealth, HttpTransport, OutcomeView, ResolutionOutcome, ResolutionRequest, Resolver,
};
use serde_json::json;

use crate::cli::resolver::ResolverResolveArgs;
use crate::commands::resolver::{clock, is_trial, open};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

pub(crate) fn run(command: &ResolverResolveArgs) -> Result<CommandOutcome, CommandError> {
    command.trust.apply()?;
    let registry = open(&command.data)?;
    let base = &registry.settings().public_url;
    // Only the path and query of a URL matter, whatever its resolver.
    let given = path_and_query(&command.url);
    let (path, query) =
        given.split_once('?').map_or((given.as_str(), None), |(path, query)| (path, Some(query)));
    let url = PersistentUrl::parse(path, query).map_err(|error| CommandError::Usage(error.to_string()))?;
    let persistent = format!("{base}{path}{}", query.map_or_else(String::new, |query| format!("?{query}")));
    let request = ResolutionRequest {
        robot: false,
        fresh: false,
        url,
        persistent,
        languages: AcceptedLanguages::parse(&command.language),
        client: vec![IpAddr::from(Ipv4Addr::LOCALHOST)],
        explain: command.explain,
        goes: false,
    };
    let allow_private = command.allow_private || is_trial(&command.data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let resolution = runtime.map_err(CommandError::Serve)?.block_on(async {
        let network = Arc::new(HttpTransport::new(allow_private, ArchiveHealth::default()));
        let resolver = Resolver::new(network, Arc::new(registry.clone()), clock());
        resolver.resolve(request).await
    });
    let outcome = OutcomeView::new(&resolution.outcome, UiLanguage::English);
    let mut output = StdoutWriter::new();
    match (&resolution.outcome, command.json) {
        (_, true) => output.json(&json!({ "outcome": outcome, "explanation": resolution.explanation }))?,
        (ResolutionOutcome::Found { location, .. }, false) => output.text(format_args!("{location}\n"))?,
        _ => say(format_args!("{}", printable_lines(&outcome.to_text(UiLanguage::English)))),
    }
    output.flush()?;
    if let ResolutionOutcome::Incomplete { silent, .. } = &resolution.outcome
        && !command.json
    {
        for (archive, why) in silent {
            say(format_args!("  {}: {}", archive.service.spelling(), printable(why)));
        }
    }
    if let Some(explanation) = resolution.explanation.filter(|_| !command.json) {
        say(format_args!("{}", printable_lines(&explanation.to_string())));
    }
    Ok(CommandOutcome::from(matches!(resolution.outcome, ResolutionOutcome::Found { .. })))
}

fn printable_lines(text: &str) -> String {
    text.trim_end().lines().map(printable).collect::<Vec<_>>().join("\n")
}
