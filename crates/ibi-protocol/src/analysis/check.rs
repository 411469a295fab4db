//! Validates the answers of Archives and reads what they offer (4.2 step 2).

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use ibi_id::Label;

use super::AnswerTombstone;
use crate::answer::{ALTERNATIVES_PAIR, ContentType, RESERVED_STATE, State, next_edition_of, property};
use crate::forms::LabelForms;
use crate::key::is_key;
use crate::pairs::{Pairs, words};
use crate::relation::{Relation, RelationPart};
use crate::untrusted_text::quote_untrusted;
use crate::verb::Verbs;

/// Limit on a URL that a client is redirected to.
const MAX_URL_BYTES: usize = 8192;
/// Limit on relations read from one answer; more than there are languages.
const MAX_ANSWER_RELATIONS: usize = 256;
/// Limit on items sharing one canonical spelling in one answer.
const MAX_ALTERNATIVES: usize = 16;

/// What an answer is checked against: the query and the Archive it was sent to.
#[derive(Debug, Clone, Copy)]
pub struct AnswerExpectation<'a> {
    /// The queried label.
    pub label: &'a Label,
    /// The queried verbs.
    pub verbs: &'a Verbs,
    /// The label of the queried Archive's service.
    pub service: &'a Label,
    /// The hosts registered for that Archive: its address and those added by the operator. Ports
    /// are ignored.
    pub hosts: &'a [String],
}

/// A valid answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedAnswer {
    /// The Archive holds the item.
    Live(LiveAnswer),
    /// The Archive removed the item and keeps a tombstone.
    Deleted(AnswerTombstone),
    /// The queried spelling is canonical for several items of the Archive (1.3): the labels of
    /// each.
    Several(Vec<LabelForms>),
    /// The label is reserved for a draft (3.4).
    Reserved(LabelForms),
}

/// An Archive's answer about an item that it holds. Constructed only by [`check()`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveAnswer {
    /// `ibi`: the labels of the item.
    pub item: LabelForms,
    /// `ibi.alias`: the queried label, if it is not one of the item's own.
    pub alias: Option<Label>,
    /// `ibi.nextedition`.
    pub next_edition: Option<LabelForms>,
    /// `ibi P.nextedition`, P being a translation: its next edition, where the chain continues
    /// beyond what this Archive holds (3.4).
    pub translated_next: Vec<(Relation, LabelForms)>,
    /// What the Archive offers for each relation, including the item itself.
    pub offers: Vec<AnswerOffer>,
    /// `urlkey`: without it no acknowledgment can be sent.
    pub urlkey: Option<String>,
    /// The registered label of the Archive service.
    pub service: Option<Box<Label>>,
}

/// What an Archive offers for one relation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerOffer {
    /// The relation; empty for the item itself.
    pub relation: Relation,
    /// `ibi R`: the item that the relation leads to.
    pub ibi: Option<LabelForms>,
    /// `url R`, if the Archive can serve it: http or https, on a registered host of the Archive.
    pub url: Option<String>,
    /// `contenttype R`.
    pub contenttype: Option<ContentType>,
    /// `state R`: `Original` or `Copy`.
    pub state: Option<State>,
    /// `timestamp R`, verbatim.
    pub timestamp: Option<String>,
}

impl LiveAnswer {
    /// Whether `forms` identify the item itself.
    pub(crate) fn is_same_item(&self, forms: &LabelForms) -> bool {
        forms.labels().iter().any(|label| self.item.contains(label) || self.alias.as_ref() == Some(label))
    }

    /// `ibi P.nextedition`: the next edition of the item that P leads to.
    pub(super) fn next_edition_after(&self, leading: &[RelationPart]) -> Option<&LabelForms> {
        if leading.is_empty() {
            return self.next_edition.as_ref();
        }
        let has_relation = |(relation, _): &&(Relation, LabelForms)| relation.parts() == leading;
        self.translated_next.iter().find(has_relation).map(|(_, forms)| forms)
    }
}

/// Validates an answer. `None` for an empty one: the Archive does not hold the IBI. An invalid
/// answer is an error, never an empty answer.
///
/// Invalid offers for relations that were not requested are dropped.
pub fn check(
    pairs: &Pairs,
    expected: &AnswerExpectation<'_>,
) -> Result<Option<CheckedAnswer>, AnswerCheckError> {
    if pairs.is_empty() {
        return Ok(None);
    }
    let item = forms(pairs, "ibi")?.filter(|item| !item.labels().is_empty());
    let item = item.ok_or(AnswerCheckError::Missing { name: "ibi" })?;
    let alias = pairs.get("ibi.alias").and_then(alias).filter(|alias| alias == expected.label);
    let is_removed = pairs.get("state") == Some(State::Deleted.as_str());
    // A removed item answers with exactly six pairs, without `ibi.alias` (3.4), so if it was
    // queried by an alias it can name only itself. Accepting that gives a lying Archive nothing: it
    // could as well name the queried label.
    let names_itself = is_removed && pairs.get("ibi.alias").is_none();
    if !item.contains(expected.label) && alias.is_none() && !names_itself {
        return Err(AnswerCheckError::OtherItem { given: quote_untrusted(&item.to_string()) });
    }
    let service = forms(pairs, "ibi.archiveservice")?;
    let service = service.ok_or(AnswerCheckError::Missing { name: "ibi.archiveservice" })?;
    if !service.contains(expected.service) {
        return Err(AnswerCheckError::OtherArchive { given: quote_untrusted(&service.to_string()) });
    }
    if let Some(list) = pairs.get(ALTERNATIVES_PAIR) {
        return alternatives(list, expected).map(|items| Some(CheckedAnswer::Several(items)));
    }
    if pairs.get("state") == Some(RESERVED_STATE) {
        return Ok(Some(CheckedAnswer::Reserved(item)));
    }
    let mut links = LiveAnswer {
        alias,
        next_edition: forms(pairs, "ibi.nextedition")?.filter(|forms| !forms.labels().is_empty()),
        translated_next: translated_next(pairs, expected)?,
        offers: Vec::new(),
        urlkey: pairs.get("urlkey").filter(|key| is_key(key)).map(str::to_owned),
        item: item.clone(),
        service: Some(Box::new(expected.service.clone())),
    };
    if is_removed {
        let timestamp = pairs.get("timestamp").map(str::to_owned);
        // A tombstone has no URLs; its `state` and `timestamp` describe itself.
        links.offers = offers(pairs, &item, expected, true)?;
        links.urlkey = None;
        return Ok(Some(CheckedAnswer::Deleted(AnswerTombstone {
            ibi: item,
            timestamp,
            links: Box::new(links),
        })));
    }
    links.offers = offers(pairs, &item, expected, false)?;
    Ok(Some(CheckedAnswer::Live(links)))
}

/// The items for which the queried spelling is canonical, each in braces: `{{rep …} {rep …}}`.
fn alternatives(list: &str, expected: &AnswerExpectation<'_>) -> Result<Vec<LabelForms>, AnswerCheckError> {
    let invalid = |why: String| AnswerCheckError::value(ALTERNATIVES_PAIR, why);
    let entries = words(list).map_err(|why| invalid(why.to_string()))?;
    if !(2..=MAX_ALTERNATIVES).contains(&entries.len()) {
        return Err(invalid(format!("it names {} items, not 2 to {MAX_ALTERNATIVES}", entries.len())));
    }
    let read = |item: &str| match item.parse::<LabelForms>() {
        Ok(item) if item.contains(expected.label) => Ok(item),
        Ok(item) => Err(AnswerCheckError::OtherItem { given: quote_untrusted(&item.to_string()) }),
        Err(why) => Err(invalid(why.to_string())),
    };
    let items: Vec<LabelForms> = entries.into_iter().map(read).collect::<Result<_, _>>()?;
    let mut distinct = Vec::new();
    items.iter().for_each(|item| super::spellings::add_alternative(&mut distinct, item, expected.label));
    match distinct.len() == items.len() {
        true => Ok(items),
        false => Err(invalid("it names two items in one spelling".to_owned())),
    }
}

/// `ibi P.nextedition` for the leading parts P before `.lastedition` in the query.
fn translated_next(
    pairs: &Pairs,
    expected: &AnswerExpectation<'_>,
) -> Result<Vec<(Relation, LabelForms)>, AnswerCheckError> {
    let mut found = Vec::new();
    let Some(before) = expected.verbs.relation.before_last_edition().filter(|before| !before.is_empty())
    else {
        return Ok(found);
    };
    for (name, value) in pairs.iter() {
        let Some(relation) = next_edition_of(name).filter(|relation| before.accepts(relation)) else {
            continue;
        };
        if found.len() == MAX_ANSWER_RELATIONS {
            return Err(AnswerCheckError::TooMany { most: MAX_ANSWER_RELATIONS });
        }
        let forms: LabelForms = value
            .as_str()
            .parse()
            .map_err(|why: crate::forms::LabelFormsError| AnswerCheckError::value("ibi", why.to_string()))?;
        if !forms.labels().is_empty() {
            found.push((relation, forms));
        }
    }
    Ok(found)
}

fn forms(pairs: &Pairs, name: &'static str) -> Result<Option<LabelForms>, AnswerCheckError> {
    let read = |value: &str| {
        value
            .parse()
            .map_err(|why: crate::forms::LabelFormsError| AnswerCheckError::value(name, why.to_string()))
    };
    pairs.get(name).map(read).transpose()
}

/// A bare label, or one preceded by the name of its form.
fn alias(value: &str) -> Option<Label> {
    let forms = || value.parse::<LabelForms>().ok()?.labels().first().cloned();
    value.parse().ok().or_else(forms)
}

fn offers(
    pairs: &Pairs,
    item: &LabelForms,
    expected: &AnswerExpectation<'_>,
    is_removed: bool,
) -> Result<Vec<AnswerOffer>, AnswerCheckError> {
    let requested = &expected.verbs.relation;
    let leading: Vec<Relation> = requested.leading().collect();
    let mut found: BTreeMap<Relation, BTreeMap<&'static str, &str>> = BTreeMap::new();
    for (name, value) in pairs.iter() {
        if let Some((property, relation)) = property(name)
            && (!is_removed || property == "ibi" && !relation.is_empty())
        {
            found.entry(relation).or_default().entry(property).or_insert(value.as_str());
        }
    }
    let mut offers = Vec::new();
    if found.len() > MAX_ANSWER_RELATIONS {
        return Err(AnswerCheckError::TooMany { most: MAX_ANSWER_RELATIONS });
    }
    for (relation, properties) in found {
        let is_requested = requested.accepts(&relation) || leading.iter().any(|part| part.accepts(&relation));
        match offer(relation, &properties, expected.hosts) {
            Ok(offer) => offers.push(offer),
            Err(error) if is_requested => return Err(error),
            Err(_) => {}
        }
    }
    for offer in offers.iter_mut().filter(|offer| offer.relation.is_empty()) {
        offer.ibi = Some(item.clone());
    }
    Ok(offers)
}

fn offer(
    relation: Relation,
    properties: &BTreeMap<&'static str, &str>,
    hosts: &[String],
) -> Result<AnswerOffer, AnswerCheckError> {
    let get = |name| properties.get(name).copied();
    let invalid =
        |name| move |why: crate::answer::WireWordError| AnswerCheckError::value(name, why.to_string());
    let ibi = match get("ibi").map(str::parse::<LabelForms>).transpose() {
        Ok(forms) => forms.filter(|forms| !forms.labels().is_empty()),
        Err(why) => return Err(AnswerCheckError::value("ibi", why.to_string())),
    };
    let url = get("url").filter(|url| !url.is_empty());
    if let Some(url) = url {
        check_url(url, hosts)?;
    }
    let state = get("state").map(str::parse::<State>).transpose().map_err(invalid("state"))?;
    if state == Some(State::Deleted) {
        return Err(AnswerCheckError::value("state", "must be Original or Copy".to_owned()));
    }
    Ok(AnswerOffer {
        ibi,
        url: url.map(str::to_owned),
        contenttype: get("contenttype").map(str::parse).transpose().map_err(invalid("contenttype"))?,
        state,
        timestamp: get("timestamp").map(str::to_owned),
        relation,
    })
}

/// Accepts http or https without user info, on a registered host, and rejects characters that
/// browsers interpret differently.
fn check_url(url: &str, hosts: &[String]) -> Result<(), AnswerCheckError> {
    let invalid = |why| AnswerCheckError::Url { given: quote_untrusted(url), why };
    if url.len() > MAX_URL_BYTES {
        return Err(invalid("it is too long"));
    }
    if !url.bytes().all(|c| c.is_ascii_graphic() && !b"\\\"<>`".contains(&c)) {
        return Err(invalid("it has a character that is not allowed in a URL"));
    }
    // The pair reader percent-encodes what a pair cannot hold, so a raw NUL arrives as `%00` too.
    if url.contains("%00") {
        return Err(invalid("it has a NUL in it"));
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("it is not absolute"))?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(invalid("it is neither http nor https"));
    }
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if authority.contains('@') {
        return Err(invalid("it has user info"));
    }
    let host = normalized_host(authority).ok_or_else(|| invalid("its host or port is invalid"))?;
    if !hosts.iter().filter_map(|own| normalized_host(own)).any(|own| own == host) {
        return Err(invalid("its host is not registered for the Archive"));
    }
    Ok(())
}

/// The host in normalized form for comparison, without its port.
fn normalized_host(authority: &str) -> Option<String> {
    let is_port = |text: &str| {
        text.strip_prefix(':').is_some_and(|port| {
            port.bytes().all(|c| c.is_ascii_digit()) && (port.is_empty() || port.parse::<u16>().is_ok())
        })
    };
    let (host, port) = match authority.strip_prefix('[').map(|inside| inside.split_once(']')) {
        Some(None) => return None,
        Some(Some((address, port))) => (address.parse::<Ipv6Addr>().ok()?.to_string(), port),
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            let is_host = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
            if host.is_empty() || !host.bytes().all(is_host) {
                return None;
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    (port.is_empty() || is_port(port)).then_some(host)
}

/// Why an answer is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerCheckError {
    /// A mandatory pair is missing.
    #[error("the answer has no {name}")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// The answer is about another item.
    #[error("the answer is about `{given}`, which is not what was asked for")]
    OtherItem {
        /// The item in the answer.
        given: String,
    },
    /// The answer names another Archive service.
    #[error("the answer names the Archive `{given}`, which is not the one that was asked")]
    OtherArchive {
        /// The Archive service in the answer.
        given: String,
    },
    /// A URL that is unsafe to redirect to.
    #[error("the URL `{given}` is refused: {why}")]
    Url {
        /// The URL.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Too many relations.
    #[error("the answer has more than {most} relations, which is the limit")]
    TooMany {
        /// The bound.
        most: usize,
    },
    /// An invalid value.
    #[error("{name}: {why}")]
    Value {
        /// The name of the pair, without the relation.
        name: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl AnswerCheckError {
    fn value(name: &'static str, why: String) -> Self {
        AnswerCheckError::Value { name, why }
    }
}
