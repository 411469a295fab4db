//! What one Archive offers for a relation: its items are followed from part to part (2.4, 3.4).
//!
//! An Archive walks its own records. A resolver walks what the Archive's location feed reported
//! ([`crate::location`]) and gets the same offers without asking.

use std::collections::HashSet;

use crate::language::Language;
use crate::relation::{Relation, RelationPart};

/// Maximum number of steps along editions: far more than occur in practice.
const MAX_EDITION_STEPS: usize = 256;

/// Maximum number of relations in one response (threat W10).
const MAX_RELATIONS_PER_ANSWER: usize = 64;

/// The metadata formats that every item has.
pub const METADATA_FORMATS: [&str; 1] = ["oai_dc"];

/// The items of one Archive and their accepted links.
pub trait RelationGraph {
    /// An item that the Archive has.
    type Item: Clone;
    /// The labels of an item that it may not have.
    type Labels: Clone;
    /// Why the items cannot be read.
    type Error;

    /// A name that identifies an item within the Archive.
    fn identity<'a>(&self, item: &'a Self::Item) -> &'a str;

    /// The next edition of an item, if one was accepted.
    fn next_edition(&self, of: &Self::Item) -> Result<Option<LinkOf<Self>>, Self::Error>;

    /// The items of its group of translations, one per language, itself first.
    fn translations(&self, of: &Self::Item) -> Result<Vec<TranslationOf<Self>>, Self::Error>;

    /// The languages in which its metadata have values.
    fn metadata_languages(&self, of: &Self::Item) -> Result<Vec<Language>, Self::Error>;
}

/// An item that a link leads to.
#[derive(Debug, Clone)]
pub enum LinkedItem<I, L> {
    /// The Archive has it.
    Held(I),
    /// Another Archive may have it, under these labels.
    Elsewhere(L),
}

/// A link of a graph's items.
pub type LinkOf<G> = LinkedItem<<G as RelationGraph>::Item, <G as RelationGraph>::Labels>;

/// A translation with its language.
pub type TranslationOf<G> = (Option<Language>, LinkOf<G>);

/// The target of a relation.
#[derive(Debug, Clone)]
pub struct RelationTarget<I> {
    /// The item.
    pub holding: I,
    /// The item itself, or its metadata.
    pub what: TargetPart,
}

/// The part of an item that a relation leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPart {
    /// Its files.
    Item,
    /// Its metadata, in this format; a page is in this language.
    Metadata {
        /// `oai_dc`; `None` for an HTML page.
        format: Option<String>,
        /// The language of the page.
        language: Option<Language>,
    },
}

impl TargetPart {
    /// The metadata page, in the reader's language.
    pub const METADATA_PAGE: TargetPart = TargetPart::Metadata { format: None, language: None };
}

/// A relation with its parameters, and its target.
pub type RelationOffer<I> = (Relation, RelationTarget<I>);

/// The targets of a relation and of its leading parts.
#[derive(Debug)]
pub struct RelationOfferSet<I, L> {
    /// Targets of the whole relation. A bare translation offers all languages (3.4).
    pub whole: Vec<RelationOffer<I>>,
    /// Targets of its leading parts.
    pub leading: Vec<RelationOffer<I>>,
    /// Targets of it or of a leading part that are not here (clause 2.4, *Across Archives*).
    pub elsewhere: Vec<(Relation, L)>,
    /// Where the chain of editions leaves this Archive: the next edition of the target of the
    /// relation before `.lastedition`, as far as it is followed here.
    pub next_editions: Vec<(Relation, L)>,
}

impl<I, L> Default for RelationOfferSet<I, L> {
    fn default() -> Self {
        Self { whole: Vec::new(), leading: Vec::new(), elsewhere: Vec::new(), next_editions: Vec::new() }
    }
}

/// The target of one part of a relation.
enum RelationStep<I, L> {
    /// Something that is here.
    Held(RelationTarget<I>),
    /// An item that is not here.
    Elsewhere(L),
    /// Not the last edition: the chain continues with an item that is not here.
    NextEdition(L),
}

type RelationSteps<G> =
    Vec<(RelationPart, RelationStep<<G as RelationGraph>::Item, <G as RelationGraph>::Labels>)>;

/// The targets of a relation from an item, as far as the Archive has them.
pub fn relation_offers<G: RelationGraph>(
    graph: &G,
    from: &RelationTarget<G::Item>,
    wanted: &Relation,
) -> Result<RelationOfferSet<G::Item, G::Labels>, G::Error> {
    let mut offers =
        RelationOfferSet { whole: vec![(Relation::default(), from.clone())], ..RelationOfferSet::default() };
    for part in wanted.parts() {
        let mut next = Vec::new();
        for (relation, led) in &offers.whole {
            for (part, lead) in follow_part(graph, led, part)? {
                let parts = relation.parts().iter().cloned().chain([part]).collect();
                // Each part has the position of the requested one.
                let Ok(whole) = Relation::new(parts) else { continue };
                match lead {
                    RelationStep::Held(led) => next.push((whole, led)),
                    RelationStep::Elsewhere(labels) => offers.elsewhere.push((whole, labels)),
                    RelationStep::NextEdition(labels) => {
                        offers.next_editions.push((relation.clone(), labels));
                    }
                }
            }
        }
        next.truncate(MAX_RELATIONS_PER_ANSWER);
        offers.elsewhere.truncate(MAX_RELATIONS_PER_ANSWER);
        offers.next_editions.truncate(MAX_RELATIONS_PER_ANSWER);
        offers.leading.extend(offers.whole.into_iter().filter(|(relation, _)| !relation.is_empty()));
        offers.whole = next;
    }
    Ok(offers)
}

fn follow_part<G: RelationGraph>(
    graph: &G,
    from: &RelationTarget<G::Item>,
    part: &RelationPart,
) -> Result<RelationSteps<G>, G::Error> {
    match (part, &from.what) {
        (RelationPart::LastEdition, TargetPart::Item) => {
            let lead = match last_edition(graph, &from.holding)? {
                Ok(holding) => RelationStep::Held(RelationTarget { holding, what: TargetPart::Item }),
                Err(next) => RelationStep::NextEdition(next),
            };
            Ok(vec![(part.clone(), lead)])
        }
        // Metadata have no editions of their own: an item without a next edition is its own last
        // one.
        (RelationPart::LastEdition, TargetPart::Metadata { .. }) => {
            Ok(vec![(part.clone(), RelationStep::Held(from.clone()))])
        }
        (RelationPart::Metadata(format), what) => {
            let known = format.as_deref().is_none_or(|format| METADATA_FORMATS.contains(&format));
            let language = match what {
                TargetPart::Item => None,
                TargetPart::Metadata { language, .. } => *language,
            };
            let what = TargetPart::Metadata { format: format.clone(), language };
            let led = RelationTarget { holding: from.holding.clone(), what };
            Ok(known.then(|| (part.clone(), RelationStep::Held(led))).into_iter().collect())
        }
        (RelationPart::Translation(wanted), TargetPart::Item) => {
            let offered = graph.translations(&from.holding)?.into_iter().filter(|(language, _)| {
                part.accepts_part(&RelationPart::Translation(*language))
                    || (wanted.is_none() && language.is_none())
            });
            Ok(offered
                .map(|(language, member)| {
                    let step = match member {
                        LinkedItem::Held(holding) => {
                            RelationStep::Held(RelationTarget { holding, what: TargetPart::Item })
                        }
                        LinkedItem::Elsewhere(labels) => RelationStep::Elsewhere(labels),
                    };
                    (RelationPart::Translation(language), step)
                })
                .collect())
        }
        (RelationPart::Translation(_), TargetPart::Metadata { format, .. }) => {
            let languages = graph.metadata_languages(&from.holding)?;
            let offered = [None].into_iter().chain(languages.into_iter().map(Some));
            Ok(offered
                .filter(|language| part.accepts_part(&RelationPart::Translation(*language)))
                .map(|language| {
                    let what = TargetPart::Metadata { format: format.clone(), language };
                    let led = RelationTarget { holding: from.holding.clone(), what };
                    (RelationPart::Translation(language), RelationStep::Held(led))
                })
                .collect())
        }
    }
}

/// The last edition of an item, as far as the chain is here; `Err` with the next one if it
/// continues elsewhere. A removed edition leads on.
pub fn last_edition<G: RelationGraph>(
    graph: &G,
    of: &G::Item,
) -> Result<Result<G::Item, G::Labels>, G::Error> {
    let mut last = of.clone();
    let mut seen = HashSet::from([graph.identity(of).to_owned()]);
    loop {
        match graph.next_edition(&last)? {
            None => return Ok(Ok(last)),
            Some(LinkedItem::Elsewhere(labels)) => return Ok(Err(labels)),
            Some(LinkedItem::Held(next)) => {
                if seen.len() == MAX_EDITION_STEPS || !seen.insert(graph.identity(&next).to_owned()) {
                    return Ok(Ok(last));
                }
                last = next;
            }
        }
    }
}
