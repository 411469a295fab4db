//! What a resolver is answered that asks for an item (clause 3.4).

use std::net::IpAddr;

use ibi_id::Label;
use ibi_protocol::{Forms, Pairs, Part, Relation, UrlRequest};
use ibi_store::journal::State;

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::item::Labels;
use crate::relations::{Led, Offers, What};
use crate::service::UrlKeys;
use crate::service::address::{self, Address};

/// What an answer needs besides what is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Where this Archive is.
    pub address: &'a Address,
    /// Makes the `urlkey`.
    pub keys: &'a UrlKeys,
    /// Now, in seconds since the Unix epoch.
    pub now: i64,
}

/// The answer to a urlRequest; without pairs if the item is not here.
pub fn answer(holdings: &Holdings, request: &UrlRequest, asked: &Asked<'_>) -> Result<Pairs, ArchiveError> {
    let label = &request.ibi;
    let (holding, role) = match holdings.find(label) {
        Ok(found) => found,
        // Also one whose object is missing: this Archive cannot serve it.
        Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }) => {
            return Ok(Pairs::new());
        }
        Err(ArchiveError::Ambiguous { paths, .. }) => return several(holdings, label, &paths, asked),
        Err(error) => return Err(error),
    };
    let from = Led::new(holding, role);
    let mut pairs = Pairs::new();
    pairs.push("archiveaddress", &asked.address.archive);
    push_forms(&mut pairs, "ibi.archiveservice", &holdings.settings().told_service());
    push_platform_software(&mut pairs, holdings);
    push_forms(&mut pairs, "ibi", from.labels());
    let wanted = &request.verbs.relation;
    if wanted.parts().contains(&Part::LastEdition) || request.wants_all {
        push_next_edition(holdings, &mut pairs, &from)?;
    }
    if from.holding.state == State::Deleted {
        pairs.push("state", State::Deleted.name());
        pairs.push("timestamp", &from.holding.item.updated);
        push_removed_group(holdings, &mut pairs, &from, wanted)?;
        pairs.sort();
        return Ok(pairs);
    }
    if !from.labels().iter().any(|own| is_same(own, label)) {
        // As it is spelled here: the item may have been brought in apart from that of another
        // spelling (clause 1.3).
        let own = from.holding.item.aliases.iter().find(|own| is_same(own, label));
        pairs.push("ibi.alias", own.unwrap_or(label));
    }
    let offers = match request.wants_all {
        false => holdings.offers(&from, wanted)?,
        true => all_offers(holdings, &from)?,
    };
    for (relation, labels) in &offers.elsewhere {
        push_forms(&mut pairs, named("ibi", relation), labels);
    }
    for (relation, labels) in offers.next_editions.iter().filter(|(relation, _)| !relation.is_empty()) {
        push_forms(&mut pairs, format!("{}.nextedition", named("ibi", relation)), labels);
    }
    for (relation, led) in &offers.leading {
        push_forms(&mut pairs, named("ibi", relation), led.labels());
    }
    let client = request.client.first().copied();
    let mut led_to = Vec::new();
    for (relation, led) in &offers.whole {
        if push_offer(holdings, &mut pairs, relation, led, request, client, asked)? {
            led_to.push(&led.holding.path);
        }
    }
    led_to.dedup();
    // Of several items, one of which will be chosen, the key is that of the one that was asked for.
    match led_to[..] {
        [] => {}
        [one] => pairs.push("urlkey", &asked.keys.make(asked.now, one)),
        _ => pairs.push("urlkey", &asked.keys.make(asked.now, &from.holding.path)),
    }
    pairs.sort();
    Ok(pairs)
}

/// The next edition of the item itself; where the chain goes on elsewhere, the first
/// one that is not here (clause 3.4).
fn push_next_edition(holdings: &Holdings, pairs: &mut Pairs, from: &Led) -> Result<(), ArchiveError> {
    if from.what != What::Item {
        return Ok(());
    }
    let labels = match holdings.last_edition_elsewhere(&from.holding)? {
        Some(labels) => Some(labels),
        None => holdings.next_edition_labels(&from.holding)?,
    };
    if let Some(labels) = labels {
        push_forms(pairs, "ibi.nextedition", &labels);
    }
    Ok(())
}

/// The translations of a removed item, if they are asked for: which items they are, and no more (clause 3.4).
fn push_removed_group(
    holdings: &Holdings,
    pairs: &mut Pairs,
    from: &Led,
    wanted: &Relation,
) -> Result<(), ArchiveError> {
    let asked = wanted.parts().iter().find(|part| matches!(part, Part::Translation(_)));
    let Some(asked) = asked.filter(|_| from.what == What::Item) else { return Ok(()) };
    let others = holdings.translations(&from.holding)?.into_iter().skip(1);
    for member in others.filter(|member| !member.removed) {
        let part = Part::Translation(member.language);
        if asked.takes(&part)
            && let Ok(relation) = Relation::new(vec![part])
        {
            push_forms(pairs, named("ibi", &relation), &member.labels);
        }
    }
    Ok(())
}

/// The whole list of properties of an item, in the relations that the norm's Example 7.2 has (D38).
fn all_offers(holdings: &Holdings, from: &Led) -> Result<Offers, ArchiveError> {
    let mut all = Offers::default();
    for modifiers in ["", "!", "!:", "!:(oai_dc)", ":", ":(oai_dc)", ":+", "+"] {
        // Each is one of the 14 compositions, or nothing.
        let Ok(relation) = Relation::from_modifiers(modifiers) else { continue };
        let offers = holdings.offers(from, &relation)?;
        all.whole.extend(offers.whole);
        all.elsewhere.extend(offers.elsewhere);
    }
    Ok(all)
}

/// The items of which the spelling asked for is canonical, each under the spelling that is its own (clause 1.3).
fn several(
    holdings: &Holdings,
    label: &str,
    paths: &[String],
    asked: &Asked<'_>,
) -> Result<Pairs, ArchiveError> {
    let mut items = Vec::new();
    for path in paths {
        let item = holdings.item(path)?.item;
        let all = item.labels.iter().chain(item.aliases.iter().map(String::as_str));
        // The label that is meant comes first: it may be an alias.
        let (meant, others): (Vec<&str>, Vec<&str>) = all.partition(|own| is_same(own, label));
        items.push(Forms::new(meant.into_iter().chain(others).filter_map(|own| own.parse::<Label>().ok())));
    }
    let mut pairs = Pairs::new();
    pairs.push("archiveaddress", &asked.address.archive);
    push_forms(&mut pairs, "ibi.archiveservice", &holdings.settings().told_service());
    push_platform_software(&mut pairs, holdings);
    Forms::new(label.parse::<Label>().ok()).push_to(&mut pairs, "ibi");
    Forms::push_alternatives(&items, &mut pairs);
    pairs.sort();
    Ok(pairs)
}

/// The pairs of one relation; whether it has a URL.
fn push_offer(
    holdings: &Holdings,
    pairs: &mut Pairs,
    relation: &Relation,
    led: &Led,
    request: &UrlRequest,
    client: Option<IpAddr>,
    asked: &Asked<'_>,
) -> Result<bool, ArchiveError> {
    if !relation.is_empty() {
        push_forms(pairs, named("ibi", relation), led.labels());
    }
    let holding = &led.holding;
    let is_link = |part: &Part| !matches!(part, Part::Metadata(_));
    // Restored, it may not know of a newer edition or translation (clause 2.4).
    let doubted = holdings.is_restored() && relation.parts().iter().any(is_link);
    if holding.state == State::Deleted || doubted {
        return Ok(false);
    }
    let place = place(holdings, led, request, client, asked.now)?;
    let Some((path, kind)) = place else { return Ok(false) };
    pairs.push(named("url", relation), &asked.address.url(&path));
    pairs.push(named("contenttype", relation), kind);
    pairs.push(named("state", relation), holding.state.name());
    // What is found there has a clock of its own (D32).
    let time = if kind == METADATA { holding.item.metadata_time() } else { holding.item.data_time() };
    pairs.push(named("timestamp", relation), time);
    Ok(true)
}

/// The content types of the norm's Table 7.3.
const DATA: &str = "Data";
const METADATA: &str = "Metadata";

/// Where a client is sent, and whether it finds data or metadata there; nothing if there is no such file.
pub(crate) fn place(
    holdings: &Holdings,
    led: &Led,
    request: &UrlRequest,
    client: Option<IpAddr>,
    now: i64,
) -> Result<Option<(String, &'static str)>, ArchiveError> {
    let (holding, labels) = (&*led.holding, &led.holding.item.labels);
    if led.what != What::Item {
        // A page has no files in it.
        let page = request.file.is_none() || request.verbs.file_list;
        return Ok(page.then(|| (address::metadata(holding, &led.what), METADATA)));
    }
    if request.verbs.file_list {
        return Ok(Some((address::file_list(labels), DATA)));
    }
    // Clause 3.4: who may not open it gets the metadata; also whether there is such a file is none of their business.
    if !may_open(holding, client, now) {
        return Ok(Some((address::metadata(holding, &What::Item), METADATA)));
    }
    let name = match &request.file {
        Some(file) => match holdings.file_named(&holding.path, file.as_bytes())? {
            Some(file) => Some(file.name),
            None => return Ok(None),
        },
        None => holding.item.target.clone(),
    };
    Ok(Some(match name {
        Some(name) => (address::file(labels, &name), DATA),
        // The Archive's own address, which leads on (clause 2.2): a resolver follows nobody
        // elsewhere (4.2 step 2).
        None if holding.item.url.is_some() => (address::folder(labels), DATA),
        // A record: there is nothing to open but the metadata (clause 2.2).
        None => (address::metadata(holding, &What::Item), METADATA),
    }))
}

/// Whether a client may open the files of an item. Of one who is not known, only what is open to all.
pub fn may_open(holding: &Holding, client: Option<IpAddr>, now: i64) -> bool {
    let nobody = IpAddr::from([0, 0, 0, 0]);
    holding.item.access.allows(client.unwrap_or(nobody), now)
}

/// Whether two spellings are one identifier (clause 1.3).
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    a == b || Label::parse(a).ok().zip(Label::parse(b).ok()).is_some_and(|(a, b)| a == b)
}

/// The software that the Archive runs, if the operator says which (003 Algorithm 2, line 9).
fn push_platform_software(pairs: &mut Pairs, holdings: &Holdings) {
    let software = holdings.settings().platform_software.as_deref();
    let words = software.and_then(|label| Some([Label::parse(label).ok()?.form().name(), label]));
    match words {
        Some(words) => pairs.push_words("ibi.platformsoftware", &words),
        None => pairs.push("ibi.platformsoftware", ""),
    }
}

/// Puts the forms of labels into an answer: they are kept by form, and need not be read again.
fn push_forms(pairs: &mut Pairs, name: impl Into<String>, labels: &Labels) {
    let words: Vec<&str> = labels.by_form().flat_map(|(form, label)| [form.name(), label]).collect();
    pairs.push_words(name, &words);
}

/// The name of a pair of a relation.
fn named(name: &str, relation: &Relation) -> String {
    if relation.is_empty() { name.to_owned() } else { format!("{name}{relation}") }
}
