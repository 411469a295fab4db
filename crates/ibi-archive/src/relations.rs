//! Relations: what leads from an item to its last edition, its translations and its metadata (clause 2.4).

pub mod walk;

use std::collections::HashSet;
use std::sync::Arc;

use ibi_protocol::{Language, Part, Relation};
use ibi_store::records::Role;

use crate::archive::{Holding, Holdings};
use crate::item::Labels;
use crate::links::{GroupMember, NextEdition};
use crate::{ArchiveError, dublin_core};

/// Steps that are followed from edition to edition, and items in one group of translations: far more than people make.
const MOST_ITEMS: usize = 256;

/// Relations in one answer (threat W10).
const MOST_RELATIONS: usize = 64;

/// What a relation leads to.
#[derive(Debug, Clone)]
pub struct Led {
    /// The item.
    pub holding: Arc<Holding>,
    /// The item itself, or its metadata.
    pub what: What,
}

/// Which part of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Its files.
    Item,
    /// Its metadata, in this format, for people in this language.
    Metadata {
        /// `oai_dc`; without, a page for people.
        format: Option<String>,
        /// The language of the page.
        language: Option<Language>,
    },
}

impl Led {
    /// What a label leads to.
    pub fn new(holding: Holding, role: Role) -> Self {
        let what = match role {
            Role::Item | Role::Alias => What::Item,
            Role::Metadata => What::Metadata { format: None, language: None },
        };
        Self { holding: Arc::new(holding), what }
    }

    /// Its labels.
    pub fn labels(&self) -> &Labels {
        match self.what {
            What::Item => &self.holding.item.labels,
            What::Metadata { .. } => &self.holding.item.metadata,
        }
    }
}

/// A relation with its parameters, and what it leads to.
pub type Offer = (Relation, Led);

/// What a relation leads to, and what its leading parts lead to.
#[derive(Debug, Default)]
pub struct Offers {
    /// Of the whole relation. A bare translation offers all languages (3.4).
    pub whole: Vec<Offer>,
    /// Of its leading parts.
    pub leading: Vec<Offer>,
    /// What it, or a leading part, leads to that is not here (clause 2.4, *Across Archives*).
    pub elsewhere: Vec<(Relation, Labels)>,
    /// Where the chain of editions goes on beyond what is here: the next edition of what the relation before
    /// `.lastedition` leads to, as far as it is followed here.
    pub next_editions: Vec<(Relation, Labels)>,
}

/// Where one part of a relation leads.
enum Lead {
    /// To something that is here.
    Held(Led),
    /// To an item that is not here.
    Elsewhere(Labels),
    /// To no last edition: the chain goes on with an item that is not here.
    NextEdition(Labels),
}

/// The metadata formats that every item has.
pub const FORMATS: [&str; 1] = ["oai_dc"];

impl Holdings {
    /// What a relation leads to from here, as far as this Archive has it.
    pub fn offers(&self, from: &Led, wanted: &Relation) -> Result<Offers, ArchiveError> {
        let mut offers = Offers { whole: vec![(Relation::default(), from.clone())], ..Offers::default() };
        for part in wanted.parts() {
            let mut next = Vec::new();
            for (relation, led) in &offers.whole {
                for (part, lead) in self.step(led, part)? {
                    let parts = relation.parts().iter().cloned().chain([part]).collect();
                    // Each part stands where the wanted one has it.
                    let Ok(whole) = Relation::new(parts) else { continue };
                    match lead {
                        Lead::Held(led) => next.push((whole, led)),
                        Lead::Elsewhere(labels) => offers.elsewhere.push((whole, labels)),
                        Lead::NextEdition(labels) => offers.next_editions.push((relation.clone(), labels)),
                    }
                }
            }
            next.truncate(MOST_RELATIONS);
            offers.elsewhere.truncate(MOST_RELATIONS);
            offers.next_editions.truncate(MOST_RELATIONS);
            offers.leading.extend(offers.whole.into_iter().filter(|(relation, _)| !relation.is_empty()));
            offers.whole = next;
        }
        Ok(offers)
    }

    fn step(&self, from: &Led, part: &Part) -> Result<Vec<(Part, Lead)>, ArchiveError> {
        match (part, &from.what) {
            (Part::LastEdition, What::Item) => {
                let lead = match self.last_edition(&from.holding)? {
                    Ok(holding) => Lead::Held(Led { holding, what: What::Item }),
                    Err(next) => Lead::NextEdition(next),
                };
                Ok(vec![(part.clone(), lead)])
            }
            // Metadata have no editions of their own: an item without a next edition is its own last one.
            (Part::LastEdition, What::Metadata { .. }) => Ok(vec![(part.clone(), Lead::Held(from.clone()))]),
            (Part::Metadata(format), what) => {
                let known = format.as_deref().is_none_or(|format| FORMATS.contains(&format));
                let language = match what {
                    What::Item => None,
                    What::Metadata { language, .. } => *language,
                };
                let what = What::Metadata { format: format.clone(), language };
                let led = Led { holding: Arc::clone(&from.holding), what };
                Ok(known.then(|| (part.clone(), Lead::Held(led))).into_iter().collect())
            }
            (Part::Translation(wanted), What::Item) => {
                let offered = self.translations(&from.holding)?.into_iter().filter(|member| {
                    let language = member.language;
                    part.takes(&Part::Translation(language)) || (wanted.is_none() && language.is_none())
                });
                let lead = |member: GroupMember| match member.held {
                    Some(holding) => Lead::Held(Led { holding, what: What::Item }),
                    None => Lead::Elsewhere(member.labels),
                };
                Ok(offered.map(|member| (Part::Translation(member.language), lead(member))).collect())
            }
            (Part::Translation(_), What::Metadata { format, .. }) => {
                let languages = languages_of(&from.holding.metadata);
                let offered = [None].into_iter().chain(languages.into_iter().map(Some));
                Ok(offered
                    .map(Part::Translation)
                    .filter(|offered| part.takes(offered))
                    .map(|offered| {
                        let Part::Translation(language) = offered else {
                            return (offered, Lead::Held(from.clone()));
                        };
                        let what = What::Metadata { format: format.clone(), language };
                        (offered, Lead::Held(Led { holding: Arc::clone(&from.holding), what }))
                    })
                    .collect())
            }
        }
    }

    /// The last edition of an item, as far as the chain is here; the next one, if it goes on elsewhere. A
    /// removed edition leads on.
    fn last_edition(&self, of: &Arc<Holding>) -> Result<Result<Arc<Holding>, Labels>, ArchiveError> {
        let mut last = Arc::clone(of);
        let mut seen = HashSet::from([last.path.clone()]);
        loop {
            match self.next_edition(&last)? {
                None => return Ok(Ok(last)),
                Some(NextEdition::Elsewhere(labels)) => return Ok(Err(labels)),
                Some(NextEdition::Held(next)) => {
                    if seen.len() == MOST_ITEMS || !seen.insert(next.path.clone()) {
                        return Ok(Ok(last));
                    }
                    last = Arc::new(*next);
                }
            }
        }
    }

    /// Where the chain of editions of an item leaves this Archive, if it does.
    pub(crate) fn last_edition_elsewhere(&self, of: &Arc<Holding>) -> Result<Option<Labels>, ArchiveError> {
        Ok(self.last_edition(of)?.err())
    }

    /// The labels of the next edition of an item.
    pub(crate) fn next_edition_labels(&self, of: &Holding) -> Result<Option<Labels>, ArchiveError> {
        Ok(self.next_edition(of)?.map(|next| match next {
            NextEdition::Held(next) => next.item.labels.clone(),
            NextEdition::Elsewhere(labels) => labels,
        }))
    }

    /// All items of this one's group of translations, by their languages: itself for its own, of two others in
    /// one language the one deposited last. One without language is its own bare translation.
    pub(crate) fn translations(&self, of: &Arc<Holding>) -> Result<Vec<GroupMember>, ArchiveError> {
        let mut offered: Vec<GroupMember> = Vec::new();
        for (place, member) in self.translation_group(of)?.into_iter().enumerate() {
            let rank = |member: &GroupMember| {
                let change = member.held.as_ref().map(|held| held.change);
                (!member.removed, member.created.clone(), change)
            };
            match offered.iter().position(|known| known.language == member.language) {
                // The item itself comes first, and stays.
                Some(0) => {}
                Some(at) if rank(&member) > rank(&offered[at]) => offered[at] = member,
                Some(_) => {}
                None if place == 0 || member.language.is_some() => offered.push(member),
                None => {}
            }
        }
        Ok(offered)
    }
}

/// The languages in which metadata have values.
pub fn languages_of(metadata: &dublin_core::DublinCore) -> Vec<Language> {
    let mut languages: Vec<Language> = Vec::new();
    for statement in metadata.statements() {
        let language = statement.language().and_then(|tag| tag.as_str().parse().ok());
        if let Some(language) = language
            && !languages.contains(&language)
        {
            languages.push(language);
        }
    }
    languages
}
