//! The short forms of answers, turned into the pairs of 3.4.

use ibi_id::Label;
use ibi_protocol::{LabelForms, Pairs, Relation};
use ibi_resolver::RegisteredArchive;

use crate::script::{Held, Said};

/// When everything was updated.
const TIMESTAMP: &str = "2020-01-01T00:00:00Z";

/// The answer of an Archive that was asked for a label.
pub(crate) fn body(said: &[Said], archive: &RegisteredArchive, label: &str, key: &str) -> String {
    let mut pairs = Pairs::new();
    let address = archive.address.clone().unwrap_or_default();
    let (mut item, mut service) = (label.to_owned(), archive.service.to_string());
    let (mut with_key, mut has_url) = (true, false);
    let mut raw = String::new();
    let forms = |label: &str| LabelForms::new([label.parse::<Label>().unwrap()]);
    pairs.push("archiveaddress", &address);
    pairs.push_words("ibi.platformsoftware", &[]);
    for part in said {
        match part {
            Said::Known => {}
            Said::KnownAs(other) => item.clone_from(other),
            Said::InTheNameOf(name) => service = crate::world::service(name),
            Said::WithoutKey => with_key = false,
            Said::Alias(alias) => pairs.push("ibi.alias", alias),
            Said::NextEdition(next) => forms(next).push_to(&mut pairs, "ibi.nextedition"),
            Said::NextEditionOf(modifiers, next) => {
                let relation = Relation::from_modifiers(modifiers).unwrap();
                forms(next).push_to(&mut pairs, format!("ibi{relation}.nextedition"));
            }
            Said::Reserved => pairs.push("state", "Reserved"),
            Said::Several(items) => {
                let each: Vec<String> = items.iter().map(|item| format!("{{rep {item}}}")).collect();
                let list = format!("x {{{}}}", each.join(" "));
                let list = Pairs::read(list.as_bytes(), &ibi_protocol::PairsLimits::default()).unwrap();
                raw = list.to_string().replacen('x', "ibi.alternatives", 1) + "\r\n";
            }
            Said::Removed(at) => {
                pairs.push("state", "Deleted");
                pairs.push("timestamp", at);
            }
            Said::Relation { modifiers, ibi, held } => {
                let relation = Relation::from_modifiers(modifiers).unwrap();
                let ibi = ibi.as_deref().map(forms);
                ibi.iter().for_each(|ibi| ibi.push_to(&mut pairs, format!("ibi{relation}")));
                let Some(Held { state, contenttype, url }) = held else { continue };
                let usual = if modifiers.contains(':') { "Metadata" } else { "Data" };
                let url = if url.starts_with('/') { format!("http://{address}{url}") } else { url.clone() };
                pairs.push(format!("contenttype{relation}"), contenttype.as_deref().unwrap_or(usual));
                pairs.push(format!("state{relation}"), state);
                pairs.push(format!("timestamp{relation}"), TIMESTAMP);
                pairs.push(format!("url{relation}"), &url);
                has_url = true;
            }
        }
    }
    forms(&item).push_to(&mut pairs, "ibi");
    forms(&service).push_to(&mut pairs, "ibi.archiveservice");
    if with_key && has_url {
        pairs.push("urlkey", key);
    }
    pairs.sort();
    format!("{raw}{pairs}")
}
