//! The response to a resolver's request for an item (clause 3.4).

use std::net::IpAddr;

use ibi_id::Label;
use ibi_protocol::{LabelForms, Pairs, Relation, RelationPart, UrlRequest};
use ibi_store::journal::State;

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::item::ItemLabels;
use crate::relations::{self, HeldOfferSet, HeldTarget, TargetPart, labels_of};
use crate::service::AckKeys;
use crate::service::address::{self, ServiceAddress};

/// What a response needs besides the request.
#[derive(Debug, Clone, Copy)]
pub struct ServiceAnswerContext<'a> {
    /// The address of this Archive.
    pub address: &'a ServiceAddress,
    /// Issues the `urlkey`.
    pub keys: &'a AckKeys,
    /// The current time, in seconds since the Unix epoch.
    pub now: i64,
}

/// The response to a urlRequest; no pairs if the item is not here.
pub fn answer_request(
    holdings: &Holdings,
    request: &UrlRequest,
    asked: &ServiceAnswerContext<'_>,
) -> Result<Pairs, ArchiveError> {
    let label = &request.ibi;
    let (holding, role) = match holdings.find_bare(label) {
        Ok(found) => found,
        // Includes an item whose object is missing: this Archive cannot serve it.
        Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }) => {
            return Ok(Pairs::new());
        }
        Err(ArchiveError::Ambiguous { paths, .. }) => {
            return ambiguous_answer(holdings, label, &paths, asked);
        }
        Err(error) => return Err(error),
    };
    let from = relations::target_of(holding, role);
    let mut pairs = Pairs::new();
    pairs.push("archiveaddress", &asked.address.archive);
    push_forms(&mut pairs, "ibi.archiveservice", &holdings.settings().announced_labels());
    push_platform_software(&mut pairs, holdings);
    push_forms(&mut pairs, "ibi", labels_of(&from));
    let wanted = &request.verbs.relation;
    if wanted.parts().contains(&RelationPart::LastEdition) || request.wants_all {
        push_next_edition(holdings, &mut pairs, &from)?;
    }
    if from.holding.state == State::Deleted {
        pairs.push("state", State::Deleted.name());
        pairs.push("timestamp", &from.holding.item.updated);
        push_removed_group(holdings, &mut pairs, &from, wanted)?;
        pairs.sort();
        return Ok(pairs);
    }
    if !labels_of(&from).iter().any(|own| is_same_identifier(own, label)) {
        // Use this Archive's spelling: the item may have been imported separately from one with
        // another spelling (clause 1.3).
        let own = from.holding.item.aliases.iter().find(|own| is_same_identifier(own, label));
        pairs.push("ibi.alias", own.unwrap_or(label));
    }
    let offers = match request.wants_all {
        false => holdings.relation_offers(&from, wanted)?,
        true => all_offers(holdings, &from)?,
    };
    for (relation, labels) in &offers.elsewhere {
        push_forms(&mut pairs, pair_name("ibi", relation), labels);
    }
    for (relation, labels) in offers.next_editions.iter().filter(|(relation, _)| !relation.is_empty()) {
        push_forms(&mut pairs, format!("{}.nextedition", pair_name("ibi", relation)), labels);
    }
    for (relation, led) in &offers.leading {
        push_forms(&mut pairs, pair_name("ibi", relation), labels_of(led));
    }
    let client = request.client.first().copied();
    let mut led_to = Vec::new();
    for (relation, led) in &offers.whole {
        if push_offer(holdings, &mut pairs, relation, led, request, client, asked)? {
            led_to.push(&led.holding.path);
        }
    }
    led_to.dedup();
    // If several items are offered, and one will be chosen, the key is for the item requested.
    match led_to[..] {
        [] => {}
        [one] => pairs.push("urlkey", &asked.keys.issue_key(asked.now, one)),
        _ => pairs.push("urlkey", &asked.keys.issue_key(asked.now, &from.holding.path)),
    }
    pairs.sort();
    Ok(pairs)
}

/// The next edition of the item itself. If the chain continues in another Archive, the first
/// edition that is not here (clause 3.4).
fn push_next_edition(holdings: &Holdings, pairs: &mut Pairs, from: &HeldTarget) -> Result<(), ArchiveError> {
    if from.what != TargetPart::Item {
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

/// The labels of the translations of a removed item, if requested, and nothing else (clause 3.4).
fn push_removed_group(
    holdings: &Holdings,
    pairs: &mut Pairs,
    from: &HeldTarget,
    wanted: &Relation,
) -> Result<(), ArchiveError> {
    let asked = wanted.parts().iter().find(|part| matches!(part, RelationPart::Translation(_)));
    let Some(asked) = asked.filter(|_| from.what == TargetPart::Item) else { return Ok(()) };
    let others = holdings.translation_members(&from.holding)?.into_iter().skip(1);
    for member in others.filter(|member| !member.removed) {
        let part = RelationPart::Translation(member.language);
        if asked.accepts_part(&part)
            && let Ok(relation) = Relation::new(vec![part])
        {
            push_forms(pairs, pair_name("ibi", &relation), &member.labels);
        }
    }
    Ok(())
}

/// All properties of an item, in the relations of the standard's Example 7.2 (D38).
fn all_offers(holdings: &Holdings, from: &HeldTarget) -> Result<HeldOfferSet, ArchiveError> {
    let mut all = HeldOfferSet::default();
    for modifiers in ["", "!", "!:", "!:(oai_dc)", ":", ":(oai_dc)", ":+", "+"] {
        // Each is one of the 14 compositions, or empty.
        let Ok(relation) = Relation::from_modifiers(modifiers) else { continue };
        let offers = holdings.relation_offers(from, &relation)?;
        all.whole.extend(offers.whole);
        all.elsewhere.extend(offers.elsewhere);
    }
    Ok(all)
}

/// The items that share the requested spelling as canonical form, each under its own spelling
/// (clause 1.3).
fn ambiguous_answer(
    holdings: &Holdings,
    label: &str,
    paths: &[String],
    asked: &ServiceAnswerContext<'_>,
) -> Result<Pairs, ArchiveError> {
    let mut items = Vec::new();
    for path in paths {
        let item = holdings.item_bare(path)?.item;
        let all = item.labels.iter().chain(item.aliases.iter().map(String::as_str));
        // The matching label comes first: it may be an alias.
        let (meant, others): (Vec<&str>, Vec<&str>) = all.partition(|own| is_same_identifier(own, label));
        items.push(LabelForms::new(
            meant.into_iter().chain(others).filter_map(|own| own.parse::<Label>().ok()),
        ));
    }
    let mut pairs = Pairs::new();
    pairs.push("archiveaddress", &asked.address.archive);
    push_forms(&mut pairs, "ibi.archiveservice", &holdings.settings().announced_labels());
    push_platform_software(&mut pairs, holdings);
    LabelForms::new(label.parse::<Label>().ok()).push_to(&mut pairs, "ibi");
    LabelForms::push_alternatives(&items, &mut pairs);
    pairs.sort();
    Ok(pairs)
}

/// Adds the pairs of one relation. Returns whether the relation has a URL.
fn push_offer(
    holdings: &Holdings,
    pairs: &mut Pairs,
    relation: &Relation,
    led: &HeldTarget,
    request: &UrlRequest,
    client: Option<IpAddr>,
    asked: &ServiceAnswerContext<'_>,
) -> Result<bool, ArchiveError> {
    if !relation.is_empty() {
        push_forms(pairs, pair_name("ibi", relation), labels_of(led));
    }
    let holding = &led.holding;
    let is_link = |part: &RelationPart| !matches!(part, RelationPart::Metadata(_));
    // After a restore, the Archive may not know of a newer edition or translation (clause 2.4).
    let doubted = holdings.is_restored() && relation.parts().iter().any(is_link);
    if holding.state == State::Deleted || doubted {
        return Ok(false);
    }
    let place = target_location(holdings, led, request, client, asked.now)?;
    let Some((path, kind)) = place else { return Ok(false) };
    pairs.push(pair_name("url", relation), &asked.address.url(&path));
    pairs.push(pair_name("contenttype", relation), kind);
    pairs.push(pair_name("state", relation), holding.state.name());
    // Data and metadata have separate timestamps (D32).
    let time =
        if kind == CONTENT_TYPE_METADATA { holding.item.metadata_time() } else { holding.item.data_time() };
    pairs.push(pair_name("timestamp", relation), time);
    Ok(true)
}

/// The content types of the standard's Table 7.3.
const CONTENT_TYPE_DATA: &str = "Data";
const CONTENT_TYPE_METADATA: &str = "Metadata";

/// The path to send a client to, and whether it holds data or metadata; `None` if there is no such
/// file.
pub(crate) fn target_location(
    holdings: &Holdings,
    led: &HeldTarget,
    request: &UrlRequest,
    client: Option<IpAddr>,
    now: i64,
) -> Result<Option<(String, &'static str)>, ArchiveError> {
    let (holding, labels) = (&*led.holding, &led.holding.item.labels);
    if led.what != TargetPart::Item {
        // A metadata page contains no files.
        let page = request.file.is_none() || request.verbs.file_list;
        return Ok(page.then(|| (address::metadata_path(holding, &led.what), CONTENT_TYPE_METADATA)));
    }
    if request.verbs.file_list {
        return Ok(Some((address::file_list_path(labels), CONTENT_TYPE_DATA)));
    }
    // Clause 3.4: a client without access gets the metadata, and does not learn whether the file
    // exists.
    if !may_open(holding, client, now) {
        return Ok(Some((address::metadata_path(holding, &TargetPart::Item), CONTENT_TYPE_METADATA)));
    }
    let name = match &request.file {
        Some(path) if holding.item.url.is_some() => {
            return Ok(Some((address::below_target_path(labels, path), CONTENT_TYPE_DATA)));
        }
        Some(file) => match holdings.file_named(&holding.path, file.as_bytes())? {
            Some(file) => Some(file.name),
            None => return Ok(None),
        },
        None => holding.item.target.clone(),
    };
    Ok(Some(match name {
        Some(name) => (address::item_file_path(labels, &name), CONTENT_TYPE_DATA),
        // The Archive's own address, which redirects (clause 2.2): a resolver does not send clients
        // to other sites (4.2 step 2).
        None if holding.item.url.is_some() => (address::item_folder_path(labels), CONTENT_TYPE_DATA),
        // A record: there is only metadata to open (clause 2.2).
        None => (address::metadata_path(holding, &TargetPart::Item), CONTENT_TYPE_METADATA),
    }))
}

/// Whether a client may open the files of an item. An unknown client may open only public items.
pub fn may_open(holding: &HeldItem, client: Option<IpAddr>, now: i64) -> bool {
    let nobody = IpAddr::from([0, 0, 0, 0]);
    holding.item.access.allows(client.unwrap_or(nobody), now)
}

/// Whether two spellings denote the same identifier (clause 1.3).
pub(crate) fn is_same_identifier(a: &str, b: &str) -> bool {
    a == b || Label::parse(a).ok().zip(Label::parse(b).ok()).is_some_and(|(a, b)| a == b)
}

/// The software that the Archive runs, if the operator has configured it (003 Algorithm 2, line 9).
fn push_platform_software(pairs: &mut Pairs, holdings: &Holdings) {
    let software = holdings.settings().platform_software.as_deref();
    let words = software.and_then(|label| Some([Label::parse(label).ok()?.form().name(), label]));
    match words {
        Some(words) => pairs.push_words("ibi.platformsoftware", &words),
        None => pairs.push("ibi.platformsoftware", ""),
    }
}

/// Adds labels to a response. They are stored by form, so they need no parsing.
fn push_forms(pairs: &mut Pairs, name: impl Into<String>, labels: &ItemLabels) {
    let words: Vec<&str> = labels.by_form().flat_map(|(form, label)| [form.name(), label]).collect();
    pairs.push_words(name, &words);
}

/// The name of a pair for a relation.
fn pair_name(name: &str, relation: &Relation) -> String {
    if relation.is_empty() { name.to_owned() } else { format!("{name}{relation}") }
}
