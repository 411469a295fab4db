//! `ibi resolver resolve`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ibi_http::accept::Tongue;
use ibi_protocol::PersistentUrl;
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_resolver::link::path_and_query;
use ibi_resolver::{Asked, Health, Network, Outcome, Resolver, Told};
use serde_json::json;

use crate::cli::resolver::Resolve;
use crate::commands::resolver::{clock, open};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

pub(crate) fn run(command: &Resolve) -> Result<Answer, Failure> {
    let registry = open(&command.data)?;
    let base = &registry.settings().public_url;
    // Of a whole URL, of whatever resolver, the path is what is asked for.
    let given = path_and_query(&command.url);
    let (path, query) =
        given.split_once('?').map_or((given.as_str(), None), |(path, query)| (path, Some(query)));
    let url = PersistentUrl::parse(path, query).map_err(|error| Failure::Usage(error.to_string()))?;
    let persistent = format!("{base}{path}{}", query.map_or_else(String::new, |query| format!("?{query}")));
    let asked = Asked {
        url,
        persistent,
        languages: AcceptedLanguages::parse(&command.language),
        client: vec![IpAddr::from(Ipv4Addr::LOCALHOST)],
        explain: command.explain,
        goes: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let resolution = runtime.map_err(Failure::Serve)?.block_on(async {
        let network = Arc::new(Network::new(command.allow_private, Health::default()));
        let resolver = Resolver::new(network, Arc::new(registry.clone()), clock());
        resolver.resolve(asked).await
    });
    let told = Told::new(&resolution.outcome, Tongue::English);
    let mut output = Output::new();
    match (&resolution.outcome, command.json) {
        (_, true) => output.json(&json!({ "outcome": told, "explanation": resolution.explanation }))?,
        (Outcome::Found { location, .. }, false) => output.text(format_args!("{location}\n"))?,
        _ => say(format_args!("{}", printable_lines(&told.to_text(Tongue::English)))),
    }
    output.flush()?;
    if let Outcome::Incomplete { silent, .. } = &resolution.outcome
        && !command.json
    {
        for (archive, why) in silent {
            say(format_args!("  {}: {}", archive.service.spelling(), printable(why)));
        }
    }
    if let Some(explanation) = resolution.explanation.filter(|_| !command.json) {
        say(format_args!("{}", printable_lines(&explanation.to_string())));
    }
    Ok(Answer::from(matches!(resolution.outcome, Outcome::Found { .. })))
}

fn printable_lines(text: &str) -> String {
    text.trim_end().lines().map(printable).collect::<Vec<_>>().join("\n")
}
