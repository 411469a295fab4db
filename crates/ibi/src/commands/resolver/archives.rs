//! `ibi resolver init`, `register`, `retire` and `archives`.

use ibi_id::Label;
use ibi_protocol::RegistrationKey;
use ibi_resolver::api_view::{ContactView, ResolverArchiveView};
use ibi_resolver::live_status::LiveStatus;
use ibi_resolver::registry::Registry;
use ibi_resolver::{RegisteredArchive, ResolverSettings};
use serde_json::json;

use crate::cli::resolver::{
    ResolverArchivesArgs, ResolverInitArgs, ResolverRegisterArgs, ResolverRetireArgs,
};
use crate::commands::archive::serve::STANDARD_RESOLVER_SERVICE;
use crate::commands::minter::shell_quoted;
use crate::commands::resolver::{clock, folder, open};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Keys with fewer characters can be guessed (threat K2).
const MIN_SAFE_KEY_LENGTH: usize = 20;

pub(crate) fn init(command: &ResolverInitArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let standard_service = || STANDARD_RESOLVER_SERVICE.parse::<Label>();
    let service = command.service.clone().map_or_else(standard_service, Ok).map_err(CommandError::Build)?;
    let settings = ResolverSettings { public_url: command.public_url.clone(), service };
    std::fs::create_dir_all(&data).map_err(|error| CommandError::WriteFile { dir: data.clone(), error })?;
    let registry = Registry::create(&data, &settings).map_err(|error| match error.is_refusal() {
        true => CommandError::NotSure(format!(
            "{error}. Register Archives with `ibi resolver register`, or choose another folder with --data"
        )),
        false => error.into(),
    })?;
    if command.json {
        let ResolverSettings { public_url, service } = registry.settings();
        let mut output = StdoutWriter::new();
        output.json(&json!({ "public_url": public_url, "service": service.spelling() }))?;
        output.flush()?;
    }
    say(format_args!(
        "created a resolver for {}, with the service {}",
        registry.settings().public_url,
        registry.settings().service.spelling()
    ));
    let folder = data.display().to_string();
    say(format_args!("next: ibi resolver register --service IBI --data {}", shell_quoted(&folder)));
    Ok(CommandOutcome::Yes)
}

pub(crate) fn register(command: &ResolverRegisterArgs) -> Result<CommandOutcome, CommandError> {
    let registry = open(&command.data)?;
    let (service, hosts) = (command.service.clone(), command.host.clone());
    let key = command.key.as_deref().map(str::parse::<RegistrationKey>).transpose();
    // Error messages never repeat the key (threat K1).
    let key = key.map_err(|error| CommandError::Usage(format!("invalid registration key: {error}")))?;
    let registered = registry.register(service, key, hosts, clock()())?;
    let made = registered.made.as_ref().map(|key| key.reveal());
    if command.key.as_ref().is_some_and(|key| key.len() < MIN_SAFE_KEY_LENGTH) {
        say(format_args!(
            "warning: this key is short and can be guessed; omit --key to generate one of 32 digits"
        ));
    }
    let mut output = StdoutWriter::new();
    if command.json {
        let mut shown = json!(ResolverArchiveView::new(&registry, &registered.archive));
        if let (Some(key), Some(shown)) = (made, shown.as_object_mut()) {
            shown.insert("key".to_owned(), json!(key));
        }
        output.json(&shown)?;
    } else if let Some(key) = made {
        output.text(format_args!("{key}\n"))?;
    }
    output.flush()?;
    let label = registered.archive.service.spelling();
    if made.is_some() {
        say(format_args!(
            "registered {label}; its key is shown only once: pass it to the Archive's administrator"
        ));
    } else {
        say(format_args!("registered {label}"));
    }
    say(format_args!(
        "next, at the Archive: ibi archive serve --resolver {} --key-file FILE",
        registry.settings().public_url
    ));
    Ok(CommandOutcome::Yes)
}

pub(crate) fn retire(command: &ResolverRetireArgs) -> Result<CommandOutcome, CommandError> {
    let registry = open(&command.data)?;
    let archive = registry.retire(&command.service, clock()())?;
    print_archives(&registry, std::slice::from_ref(&archive), None, command.json)?;
    say(format_args!(
        "retired: items that only this Archive holds are no longer found; `register` reinstates it"
    ));
    Ok(CommandOutcome::Yes)
}

pub(crate) fn list(command: &ResolverArchivesArgs) -> Result<CommandOutcome, CommandError> {
    let registry = open(&command.data)?;
    let archives = registry.archives();
    let live = LiveStatus::read(&folder(&command.data)?, clock()());
    print_archives(&registry, &archives, live.as_ref(), command.json)?;
    if archives.is_empty() {
        say(format_args!("no Archives are registered; next: ibi resolver register --service IBI"));
    }
    Ok(CommandOutcome::Yes)
}

fn print_archives(
    registry: &Registry,
    archives: &[std::sync::Arc<RegisteredArchive>],
    live: Option<&LiveStatus>,
    json: bool,
) -> Result<(), CommandError> {
    let mut output = StdoutWriter::new();
    for archive in archives {
        let mut shown = ResolverArchiveView::new(registry, archive);
        if let Some(state) = live.and_then(|live| live.breaker(&archive.service)) {
            shown = shown.with_breaker(state);
        }
        if json {
            output.json(&shown)?;
        } else {
            let address = shown.address.as_deref().unwrap_or("-");
            let ResolverArchiveView { service, standing, changed, .. } = &shown;
            let contact = shown.contact.as_ref();
            let contact_field = |of: fn(&ContactView) -> &Option<String>| {
                printable(contact.and_then(|contact| of(contact).as_deref()).unwrap_or("-")).to_string()
            };
            let contact_fields = [
                contact_field(|contact| &contact.ip),
                contact_field(|contact| &contact.protocol),
                contact_field(|contact| &contact.platform),
                contact_field(|contact| &contact.email),
            ];
            let contact_fields = contact_fields.join("\t");
            let problem = printable(shown.problem.as_deref().unwrap_or("-"));
            output.text(format_args!(
                "{service}\t{standing}\t{}\t{changed}\t{contact_fields}\t{problem}\t{}\n",
                printable(address),
                shown.breaker.unwrap_or("-")
            ))?;
        }
    }
    output.flush()
}
