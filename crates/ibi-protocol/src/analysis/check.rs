//! Which answers count, and what they offer (4.2 step 2).

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use ibi_id::Label;

use super::Tombstone;
use crate::answer::{ALTERNATIVES, ContentType, RESERVED, State, next_edition_of, property};
use crate::forms::Forms;
use crate::key::is_key;
use crate::pairs::{Pairs, words};
use crate::relation::{Part, Relation};
use crate::shown::shown;
use crate::verb::Verbs;

/// The longest URL that a client is sent to, in bytes.
const LONGEST_URL: usize = 8192;
/// The most relations that are read of an answer: more than there are languages.
const MOST_RELATIONS: usize = 256;
/// The most items of one canonical spelling that are read of an answer.
const MAX_ALTERNATIVES: usize = 16;

/// What was asked, and of whom.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The label in the question.
    pub label: &'a Label,
    /// The verbs in the question.
    pub verbs: &'a Verbs,
    /// The label of the Archive service that was asked.
    pub service: &'a Label,
    /// The hosts registered for that Archive: of its address, and those that the operator added. A port may stand
    /// after them, and does not count.
    pub hosts: &'a [String],
}

/// An answer that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    /// The Archive holds the item.
    Live(Live),
    /// The Archive held the item, which was removed.
    Deleted(Tombstone),
    /// The spelling that was asked for is canonical for several items of the Archive (1.3): the labels of each.
    Several(Vec<Forms>),
    /// The label is reserved for a draft (3.4).
    Reserved(Forms),
}

/// What an Archive says of an item that it holds. Only [`check()`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Live {
    /// `ibi`: the item.
    pub item: Forms,
    /// `ibi.alias`: the label asked for, where it is none of the item's.
    pub alias: Option<Label>,
    /// `ibi.nextedition`.
    pub next_edition: Option<Forms>,
    /// `ibi P.nextedition`, P being a translation: where its chain of editions goes on beyond what is held (3.4).
    pub translated_next: Vec<(Relation, Forms)>,
    /// What it knows of each relation, the item itself among them.
    pub offers: Vec<Offer>,
    /// `urlkey`: without it there is nothing to acknowledge.
    pub urlkey: Option<String>,
}

/// What an Archive knows of one relation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// The relation, nothing being the item itself.
    pub relation: Relation,
    /// `ibi R`: the item that it leads to.
    pub ibi: Option<Forms>,
    /// `url R`, where the Archive can serve it. http or https, on a host of the Archive.
    pub url: Option<String>,
    /// `contenttype R`.
    pub contenttype: Option<ContentType>,
    /// `state R`: `Original` or `Copy`.
    pub state: Option<State>,
    /// `timestamp R`, as it came.
    pub timestamp: Option<String>,
}

impl Live {
    /// Whether these forms are of the item itself.
    pub(crate) fn is(&self, forms: &Forms) -> bool {
        forms.labels().iter().any(|label| self.item.hold(label) || self.alias.as_ref() == Some(label))
    }

    /// `ibi P.nextedition`: where the editions of what P leads to go on.
    pub(super) fn next_of(&self, leading: &[Part]) -> Option<&Forms> {
        if leading.is_empty() {
            return self.next_edition.as_ref();
        }
        let is_it = |(relation, _): &&(Relation, Forms)| relation.parts() == leading;
        self.translated_next.iter().find(is_it).map(|(_, forms)| forms)
    }
}

/// Reads an answer, if it counts; `None` if it is empty, for then the Archive does not hold the IBI. Whatever is wrong
/// makes a failed answer of it, not an empty one.
///
/// What is said of relations that were not asked for is nobody's concern: if something is wrong with it, it is left
/// out.
pub fn check(pairs: &Pairs, asked: &Asked<'_>) -> Result<Option<Offered>, CheckError> {
    if pairs.is_empty() {
        return Ok(None);
    }
    let item = forms(pairs, "ibi")?.filter(|item| !item.labels().is_empty());
    let item = item.ok_or(CheckError::Missing { name: "ibi" })?;
    let alias = pairs.get("ibi.alias").and_then(alias).filter(|alias| alias == asked.label);
    let is_removed = pairs.get("state") == Some(State::Deleted.as_str());
    // A removed item answers exactly six pairs, and `ibi.alias` is not among them (3.4): asked for by an alias, it can
    // only name itself. Who lies about that could as well name the label that was asked for.
    let names_itself = is_removed && pairs.get("ibi.alias").is_none();
    if !item.hold(asked.label) && alias.is_none() && !names_itself {
        return Err(CheckError::OtherItem { given: shown(&item.to_string()) });
    }
    let service = forms(pairs, "ibi.archiveservice")?;
    let service = service.ok_or(CheckError::Missing { name: "ibi.archiveservice" })?;
    if !service.hold(asked.service) {
        return Err(CheckError::OtherArchive { given: shown(&service.to_string()) });
    }
    if let Some(list) = pairs.get(ALTERNATIVES) {
        return alternatives(list, asked).map(|items| Some(Offered::Several(items)));
    }
    if pairs.get("state") == Some(RESERVED) {
        return Ok(Some(Offered::Reserved(item)));
    }
    let mut links = Live {
        alias,
        next_edition: forms(pairs, "ibi.nextedition")?.filter(|forms| !forms.labels().is_empty()),
        translated_next: translated_next(pairs, asked)?,
        offers: Vec::new(),
        urlkey: pairs.get("urlkey").filter(|key| is_key(key)).map(str::to_owned),
        item: item.clone(),
    };
    if is_removed {
        let timestamp = pairs.get("timestamp").map(str::to_owned);
        // A tombstone has no URLs, and `state` and `timestamp` are its own.
        links.offers = offers(pairs, &item, asked, true)?;
        links.urlkey = None;
        return Ok(Some(Offered::Deleted(Tombstone { ibi: item, timestamp, links: Box::new(links) })));
    }
    links.offers = offers(pairs, &item, asked, false)?;
    Ok(Some(Offered::Live(links)))
}

/// The items of which the spelling asked for is canonical: each in braces, `{{rep …} {rep …}}`.
fn alternatives(list: &str, asked: &Asked<'_>) -> Result<Vec<Forms>, CheckError> {
    let wrong = |why: String| CheckError::value(ALTERNATIVES, why);
    let each = words(list).map_err(|why| wrong(why.to_string()))?;
    if !(2..=MAX_ALTERNATIVES).contains(&each.len()) {
        return Err(wrong(format!("it names {} items, not 2 to {MAX_ALTERNATIVES}", each.len())));
    }
    let read = |item: &str| match item.parse::<Forms>() {
        Ok(item) if item.hold(asked.label) => Ok(item),
        Ok(item) => Err(CheckError::OtherItem { given: shown(&item.to_string()) }),
        Err(why) => Err(wrong(why.to_string())),
    };
    let items: Vec<Forms> = each.into_iter().map(read).collect::<Result<_, _>>()?;
    let mut apart = Vec::new();
    items.iter().for_each(|item| super::spellings::add(&mut apart, item, asked.label));
    match apart.len() == items.len() {
        true => Ok(items),
        false => Err(wrong("it names two items in one spelling".to_owned())),
    }
}

/// `ibi P.nextedition` for the leading parts P before `.lastedition` in what was asked.
fn translated_next(pairs: &Pairs, asked: &Asked<'_>) -> Result<Vec<(Relation, Forms)>, CheckError> {
    let mut found = Vec::new();
    let Some(before) = asked.verbs.relation.before_last_edition().filter(|before| !before.is_empty()) else {
        return Ok(found);
    };
    for (name, value) in pairs.iter() {
        let Some(relation) = next_edition_of(name).filter(|relation| before.takes(relation)) else {
            continue;
        };
        if found.len() == MOST_RELATIONS {
            return Err(CheckError::TooMany { most: MOST_RELATIONS });
        }
        let forms: Forms = value
            .as_str()
            .parse()
            .map_err(|why: crate::forms::FormsError| CheckError::value("ibi", why.to_string()))?;
        if !forms.labels().is_empty() {
            found.push((relation, forms));
        }
    }
    Ok(found)
}

fn forms(pairs: &Pairs, name: &'static str) -> Result<Option<Forms>, CheckError> {
    let read = |value: &str| {
        value.parse().map_err(|why: crate::forms::FormsError| CheckError::value(name, why.to_string()))
    };
    pairs.get(name).map(read).transpose()
}

/// A label alone, or with the name of its form.
fn alias(value: &str) -> Option<Label> {
    let forms = || value.parse::<Forms>().ok()?.labels().first().cloned();
    value.parse().ok().or_else(forms)
}

fn offers(
    pairs: &Pairs,
    item: &Forms,
    asked: &Asked<'_>,
    is_removed: bool,
) -> Result<Vec<Offer>, CheckError> {
    let wanted = &asked.verbs.relation;
    let leading: Vec<Relation> = wanted.leading().collect();
    let mut found: BTreeMap<Relation, BTreeMap<&'static str, &str>> = BTreeMap::new();
    for (name, value) in pairs.iter() {
        if let Some((property, relation)) = property(name)
            && (!is_removed || property == "ibi" && !relation.is_empty())
        {
            found.entry(relation).or_default().entry(property).or_insert(value.as_str());
        }
    }
    let mut offers = Vec::new();
    if found.len() > MOST_RELATIONS {
        return Err(CheckError::TooMany { most: MOST_RELATIONS });
    }
    for (relation, properties) in found {
        let is_asked = wanted.takes(&relation) || leading.iter().any(|part| part.takes(&relation));
        match offer(relation, &properties, asked.hosts) {
            Ok(offer) => offers.push(offer),
            Err(error) if is_asked => return Err(error),
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
) -> Result<Offer, CheckError> {
    let get = |name| properties.get(name).copied();
    let wrong = |name| move |why: crate::answer::WordError| CheckError::value(name, why.to_string());
    let ibi = match get("ibi").map(str::parse::<Forms>).transpose() {
        Ok(forms) => forms.filter(|forms| !forms.labels().is_empty()),
        Err(why) => return Err(CheckError::value("ibi", why.to_string())),
    };
    let url = get("url").filter(|url| !url.is_empty());
    if let Some(url) = url {
        safe(url, hosts)?;
    }
    let state = get("state").map(str::parse::<State>).transpose().map_err(wrong("state"))?;
    if state == Some(State::Deleted) {
        return Err(CheckError::value("state", "what is related can only be Original or Copy".to_owned()));
    }
    Ok(Offer {
        ibi,
        url: url.map(str::to_owned),
        contenttype: get("contenttype").map(str::parse).transpose().map_err(wrong("contenttype"))?,
        state,
        timestamp: get("timestamp").map(str::to_owned),
        relation,
    })
}

/// http or https, without user info, on a registered host; and nothing in it that a browser could read in another way.
fn safe(url: &str, hosts: &[String]) -> Result<(), CheckError> {
    let wrong = |why| CheckError::Url { given: shown(url), why };
    if url.len() > LONGEST_URL {
        return Err(wrong("it is too long"));
    }
    if !url.bytes().all(|c| c.is_ascii_graphic() && !b"\\\"<>`".contains(&c)) {
        return Err(wrong("it has a character that no URL has"));
    }
    // Reading encodes what no pair can hold: a NUL is `%00` here, whoever wrote it so.
    if url.contains("%00") {
        return Err(wrong("it has a NUL in it"));
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it is not absolute"))?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(wrong("it is neither http nor https"));
    }
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if authority.contains('@') {
        return Err(wrong("it has user info"));
    }
    let host = host(authority).ok_or_else(|| wrong("its host or port is none"))?;
    if !hosts.iter().filter_map(|own| self::host(own)).any(|own| own == host) {
        return Err(wrong("its host is not registered for the Archive"));
    }
    Ok(())
}

/// A host, without its port, in the one way in which it is compared.
fn host(authority: &str) -> Option<String> {
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

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A pair that every answer has.
    #[error("the answer has no {name}")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// The answer is about another item.
    #[error("the answer is about `{given}`, which is not what was asked for")]
    OtherItem {
        /// The item that it is about.
        given: String,
    },
    /// The answer is in another Archive's name.
    #[error("the answer is in the name of `{given}`, which is not the Archive that was asked")]
    OtherArchive {
        /// The Archive service that it names.
        given: String,
    },
    /// A URL that no client is sent to.
    #[error("the URL `{given}` is not followed: {why}")]
    Url {
        /// The URL.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// More relations than any item has.
    #[error("the answer has more than {most} relations: that is the most that is read here")]
    TooMany {
        /// The bound.
        most: usize,
    },
    /// A value that does not mean what it should.
    #[error("{name}: {why}")]
    Value {
        /// The name of the pair, without the relation.
        name: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl CheckError {
    fn value(name: &'static str, why: String) -> Self {
        CheckError::Value { name, why }
    }
}
