//! `ibi resolver init`, `register`, `retire` and `archives`.

use ibi_id::Label;
use ibi_protocol::Key;
use ibi_resolver::registry::Registry;
use ibi_resolver::shown::{ArchiveShown, ContactShown};
use ibi_resolver::{Archive, Settings};
use serde_json::json;

use crate::cli::resolver::{Archives, Init, Register, Retire};
use crate::commands::archive::serve::NORMS_RESOLVER;
use crate::commands::minter::quoted;
use crate::commands::resolver::{clock, open};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// Keys with fewer characters can be guessed (threat K2).
const SHORT: usize = 20;

pub(crate) fn init(command: &Init) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let norms = || NORMS_RESOLVER.parse::<Label>();
    let service = command.service.clone().map_or_else(norms, Ok).map_err(Failure::Build)?;
    let settings = Settings { public_url: command.public_url.clone(), service };
    std::fs::create_dir_all(&data).map_err(|error| Failure::WriteFile { dir: data.clone(), error })?;
    let registry = Registry::create(&data, &settings).map_err(|error| match error.is_refusal() {
        true => Failure::NotSure(format!(
            "{error}. Go on with it: `ibi resolver register` takes Archives in; or name another folder with --data"
        )),
        false => error.into(),
    })?;
    if command.json {
        let Settings { public_url, service } = registry.settings();
        let mut output = Output::new();
        output.json(&json!({ "public_url": public_url, "service": service.spelling() }))?;
        output.flush()?;
    }
    say(format_args!(
        "a resolver for {}, whose service is {}",
        registry.settings().public_url,
        registry.settings().service.spelling()
    ));
    let folder = data.display().to_string();
    say(format_args!("next: ibi resolver register --service IBI --data {}", quoted(&folder)));
    Ok(Answer::Yes)
}

pub(crate) fn register(command: &Register) -> Result<Answer, Failure> {
    let registry = open(&command.data)?;
    let (service, hosts) = (command.service.clone(), command.host.clone());
    let key = command.key.as_deref().map(str::parse::<Key>).transpose();
    // The key itself is not repeated (threat K1).
    let key = key.map_err(|error| Failure::Usage(format!("the registration key: {error}")))?;
    let registered = registry.register(service, key, hosts, clock()())?;
    let made = registered.made.as_ref().map(|key| key.reveal());
    if command.key.as_ref().is_some_and(|key| key.len() < SHORT) {
        say(format_args!("this key is short, and can be guessed: without --key one of 32 digits is made"));
    }
    let mut output = Output::new();
    if command.json {
        let mut shown = json!(ArchiveShown::new(&registry, &registered.archive));
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
            "{label} is registered; its key is shown this once: give it to the Archive's administrator"
        ));
    } else {
        say(format_args!("{label} is registered"));
    }
    say(format_args!(
        "next, there: ibi archive serve --resolver {} --key-file FILE",
        registry.settings().public_url
    ));
    Ok(Answer::Yes)
}

pub(crate) fn retire(command: &Retire) -> Result<Answer, Failure> {
    let registry = open(&command.data)?;
    let archive = registry.retire(&command.service, clock()())?;
    show(&registry, std::slice::from_ref(&archive), command.json)?;
    say(format_args!(
        "retired: what only this Archive has is not found from now on; `register` brings it back"
    ));
    Ok(Answer::Yes)
}

pub(crate) fn list(command: &Archives) -> Result<Answer, Failure> {
    let registry = open(&command.data)?;
    let archives = registry.archives();
    show(&registry, &archives, command.json)?;
    if archives.is_empty() {
        say(format_args!("no Archive is registered: next, ibi resolver register --service IBI"));
    }
    Ok(Answer::Yes)
}

fn show(registry: &Registry, archives: &[std::sync::Arc<Archive>], json: bool) -> Result<(), Failure> {
    let mut output = Output::new();
    for archive in archives {
        let shown = ArchiveShown::new(registry, archive);
        if json {
            output.json(&shown)?;
        } else {
            let address = shown.address.as_deref().unwrap_or("-");
            let ArchiveShown { service, standing, changed, .. } = &shown;
            let contact = shown.contact.as_ref();
            let told = |of: fn(&ContactShown) -> &Option<String>| {
                printable(contact.and_then(|contact| of(contact).as_deref()).unwrap_or("-")).to_string()
            };
            let said = [
                told(|contact| &contact.ip),
                told(|contact| &contact.protocol),
                told(|contact| &contact.platform),
                told(|contact| &contact.email),
            ];
            let said = said.join("\t");
            output
                .text(format_args!("{service}\t{standing}\t{}\t{changed}\t{said}\n", printable(address)))?;
        }
    }
    output.flush()
}
