//! Relations: what leads from an item to its last edition, its translations and its metadata (clause 2.4).

use std::collections::HashSet;
use std::sync::Arc;

use ibi_protocol::{Language, Part, Relation};
use ibi_store::journal::State;
use ibi_store::records::{LinkKind, Role};

use crate::archive::{Holding, Holdings};
use crate::item::Spelling;
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
    pub fn labels(&self) -> &crate::item::Labels {
        match self.what {
            What::Item => &self.holding.item.labels,
            What::Metadata { .. } => &self.holding.item.metadata,
        }
    }
}

/// An item in a language.
type Translated = (Option<Language>, Arc<Holding>);

/// A relation with its parameters, and what it leads to.
pub type Offer = (Relation, Led);

/// What a relation leads to, and what its leading parts lead to.
#[derive(Debug, Default)]
pub struct Offers {
    /// Of the whole relation. A bare translation offers all languages (3.4).
    pub whole: Vec<Offer>,
    /// Of its leading parts.
    pub leading: Vec<Offer>,
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
                for (part, led) in self.step(led, part)? {
                    let parts = relation.parts().iter().cloned().chain([part]).collect();
                    // Each part stands where the wanted one has it.
                    let Ok(relation) = Relation::new(parts) else { continue };
                    next.push((relation, led));
                }
            }
            next.truncate(MOST_RELATIONS);
            offers.leading.extend(offers.whole.into_iter().filter(|(relation, _)| !relation.is_empty()));
            offers.whole = next;
        }
        Ok(offers)
    }

    fn step(&self, from: &Led, part: &Part) -> Result<Vec<(Part, Led)>, ArchiveError> {
        match (part, &from.what) {
            (Part::LastEdition, What::Item) => {
                let holding = self.last_edition(&from.holding)?;
                Ok(vec![(part.clone(), Led { holding, what: What::Item })])
            }
            // Metadata have no editions of their own: an item without a next edition is its own last one.
            (Part::LastEdition, What::Metadata { .. }) => Ok(vec![(part.clone(), from.clone())]),
            (Part::Metadata(format), what) => {
                let known = format.as_deref().is_none_or(|format| FORMATS.contains(&format));
                let language = match what {
                    What::Item => None,
                    What::Metadata { language, .. } => *language,
                };
                let what = What::Metadata { format: format.clone(), language };
                let led = Led { holding: Arc::clone(&from.holding), what };
                Ok(known.then(|| (part.clone(), led)).into_iter().collect())
            }
            (Part::Translation(wanted), What::Item) => {
                let offered = self.translations(&from.holding)?.into_iter().filter(|(language, _)| {
                    part.takes(&Part::Translation(*language)) || (wanted.is_none() && language.is_none())
                });
                Ok(offered
                    .map(|(language, holding)| {
                        (Part::Translation(language), Led { holding, what: What::Item })
                    })
                    .collect())
            }
            (Part::Translation(_), What::Metadata { format, .. }) => {
                let languages = languages_of(&from.holding.metadata);
                let offered = [None].into_iter().chain(languages.into_iter().map(Some));
                Ok(offered
                    .map(Part::Translation)
                    .filter(|offered| part.takes(offered))
                    .map(|offered| {
                        let Part::Translation(language) = offered else { return (offered, from.clone()) };
                        let what = What::Metadata { format: format.clone(), language };
                        (offered, Led { holding: Arc::clone(&from.holding), what })
                    })
                    .collect())
            }
        }
    }

    /// The next edition of an item, if it is here; of several the one deposited last.
    pub fn next_edition(&self, of: &Holding) -> Result<Option<Holding>, ArchiveError> {
        let next = self.linked(LinkKind::Edition, of)?;
        let next = next.into_iter().filter(|next| next.path != of.path);
        Ok(next.max_by(|a, b| (&a.item.created, a.change).cmp(&(&b.item.created, b.change))))
    }

    fn last_edition(&self, of: &Arc<Holding>) -> Result<Arc<Holding>, ArchiveError> {
        let mut last = Arc::clone(of);
        let mut seen = HashSet::from([last.path.clone()]);
        while let Some(next) = self.next_edition(&last)? {
            if seen.len() == MOST_ITEMS || !seen.insert(next.path.clone()) {
                break;
            }
            last = Arc::new(next);
        }
        Ok(last)
    }

    /// All items tied to this one by *translation of*, by their languages: itself for its own, of two others in one
    /// language the one deposited last. One without language is its own bare translation.
    fn translations(&self, of: &Arc<Holding>) -> Result<Vec<Translated>, ArchiveError> {
        let mut group = vec![Arc::clone(of)];
        let mut seen = HashSet::from([of.path.clone()]);
        let mut at = 0;
        while let Some(member) = group.get(at).cloned() {
            at += 1;
            let mut near = self.linked(LinkKind::Translation, &member)?;
            if let Some(original) = &member.item.translation_of {
                near.extend(self.find(original).ok().map(|(holding, _)| holding));
            }
            for holding in near {
                if group.len() < MOST_ITEMS && seen.insert(holding.path.clone()) {
                    group.push(Arc::new(holding));
                }
            }
        }
        let mut offered: Vec<Translated> = Vec::new();
        for member in group {
            let language = member.item.language;
            let itself = member.path == of.path;
            match offered.iter_mut().find(|(offered, _)| *offered == language) {
                // The item itself comes first, and stays.
                Some((_, other)) if other.path != of.path => {
                    let rank = |holding: &Holding| {
                        (holding.state != State::Deleted, holding.item.created.clone(), holding.change)
                    };
                    if rank(&member) > rank(other) {
                        *other = member;
                    }
                }
                Some(_) => {}
                None if itself || language.is_some() => offered.push((language, member)),
                None => {}
            }
        }
        Ok(offered)
    }

    /// Items that link to this one by any of its labels.
    fn linked(&self, kind: LinkKind, to: &Holding) -> Result<Vec<Holding>, ArchiveError> {
        let labels = to.item.labels.iter().chain(to.item.aliases.iter().map(String::as_str));
        let mut paths = Vec::new();
        for label in labels {
            let Ok(spelling) = Spelling::parse(label) else { continue };
            paths.extend(self.records.linked(kind, &spelling.canonical)?);
        }
        paths.sort_unstable();
        paths.dedup();
        paths.truncate(MOST_ITEMS);
        paths.into_iter().map(|path| self.item(&path)).collect()
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
