//! Relations: from an item to its last edition, its translations and its metadata (clause 2.4).

pub mod walk;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use ibi_protocol::{Language, Relation, RelationPart};
use ibi_store::index::LabelRole;

use crate::archive::{HeldItem, Holdings};
use crate::item::ItemLabels;
use crate::links::{NextEdition, TranslationMember};
use crate::{ArchiveError, dublin_core};

/// Maximum number of steps along editions, and of items in one group of translations: far more than
/// occur in practice.
const MAX_RELATION_ITEMS: usize = 256;

/// Maximum number of relations in one response (threat W10).
const MAX_RELATIONS_PER_ANSWER: usize = 64;

/// The target of a relation.
#[derive(Debug, Clone)]
pub struct RelationTarget {
    /// The item.
    pub holding: Arc<HeldItem>,
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

impl RelationTarget {
    /// The target of a label.
    pub fn new(holding: HeldItem, role: LabelRole) -> Self {
        let what = match role {
            LabelRole::Item | LabelRole::Alias => TargetPart::Item,
            LabelRole::Metadata => TargetPart::Metadata { format: None, language: None },
        };
        Self { holding: Arc::new(holding), what }
    }

    /// Its labels.
    pub fn labels(&self) -> &ItemLabels {
        match self.what {
            TargetPart::Item => &self.holding.item.labels,
            TargetPart::Metadata { .. } => &self.holding.item.metadata,
        }
    }
}

/// A relation with its parameters, and its target.
pub type RelationOffer = (Relation, RelationTarget);

/// The targets of a relation and of its leading parts.
#[derive(Debug, Default)]
pub struct RelationOfferSet {
    /// Targets of the whole relation. A bare translation offers all languages (3.4).
    pub whole: Vec<RelationOffer>,
    /// Targets of its leading parts.
    pub leading: Vec<RelationOffer>,
    /// Targets of it or of a leading part that are not here (clause 2.4, *Across Archives*).
    pub elsewhere: Vec<(Relation, ItemLabels)>,
    /// Where the chain of editions leaves this Archive: the next edition of the target of the
    /// relation before `.lastedition`, as far as it is followed here.
    pub next_editions: Vec<(Relation, ItemLabels)>,
}

/// The target of one part of a relation.
enum RelationStep {
    /// Something that is here.
    Held(RelationTarget),
    /// An item that is not here.
    Elsewhere(ItemLabels),
    /// Not the last edition: the chain continues with an item that is not here.
    NextEdition(ItemLabels),
}

/// The metadata formats that every item has.
pub const METADATA_FORMATS: [&str; 1] = ["oai_dc"];

impl Holdings {
    /// The targets of a relation from here, as far as this Archive has them.
    pub fn relation_offers(
        &self,
        from: &RelationTarget,
        wanted: &Relation,
    ) -> Result<RelationOfferSet, ArchiveError> {
        let mut offers = RelationOfferSet {
            whole: vec![(Relation::default(), from.clone())],
            ..RelationOfferSet::default()
        };
        for part in wanted.parts() {
            let mut next = Vec::new();
            for (relation, led) in &offers.whole {
                for (part, lead) in self.follow_part(led, part)? {
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

    fn follow_part(
        &self,
        from: &RelationTarget,
        part: &RelationPart,
    ) -> Result<Vec<(RelationPart, RelationStep)>, ArchiveError> {
        match (part, &from.what) {
            (RelationPart::LastEdition, TargetPart::Item) => {
                let lead = match self.last_edition(&from.holding)? {
                    Ok(holding) => RelationStep::Held(RelationTarget { holding, what: TargetPart::Item }),
                    Err(next) => RelationStep::NextEdition(next),
                };
                Ok(vec![(part.clone(), lead)])
            }
            // Metadata have no editions of their own: an item without a next edition is its own
            // last one.
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
                let led = RelationTarget { holding: Arc::clone(&from.holding), what };
                Ok(known.then(|| (part.clone(), RelationStep::Held(led))).into_iter().collect())
            }
            (RelationPart::Translation(wanted), TargetPart::Item) => {
                let offered = self.translations(&from.holding)?.into_iter().filter(|member| {
                    let language = member.language;
                    part.accepts_part(&RelationPart::Translation(language))
                        || (wanted.is_none() && language.is_none())
                });
                let lead = |member: TranslationMember| match member.held {
                    Some(holding) => RelationStep::Held(RelationTarget { holding, what: TargetPart::Item }),
                    None => RelationStep::Elsewhere(member.labels),
                };
                Ok(offered.map(|member| (RelationPart::Translation(member.language), lead(member))).collect())
            }
            (RelationPart::Translation(_), TargetPart::Metadata { format, .. }) => {
                let languages = self.languages_of_metadata(&from.holding)?;
                let offered = [None].into_iter().chain(languages.into_iter().map(Some));
                Ok(offered
                    .map(RelationPart::Translation)
                    .filter(|offered| part.accepts_part(offered))
                    .map(|offered| {
                        let RelationPart::Translation(language) = offered else {
                            return (offered, RelationStep::Held(from.clone()));
                        };
                        let what = TargetPart::Metadata { format: format.clone(), language };
                        (
                            offered,
                            RelationStep::Held(RelationTarget { holding: Arc::clone(&from.holding), what }),
                        )
                    })
                    .collect())
            }
        }
    }

    /// The languages in which an item's metadata have values. Long metadata are read one at a time,
    /// without blocking other tasks.
    fn languages_of_metadata(&self, holding: &HeldItem) -> Result<Vec<Language>, ArchiveError> {
        static LONG_METADATA_LOCK: Mutex<()> = Mutex::new(());
        if !holding.metadata.is_not_loaded() {
            return Ok(languages_of(&holding.metadata));
        }
        let read = || {
            let _alone = LONG_METADATA_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            // Not cached with the item, which may stay in memory for long.
            let whole = self.item(&holding.path)?;
            Ok(languages_of(&whole.metadata))
        };
        #[cfg(feature = "web")]
        if tokio::runtime::Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread)
        {
            return tokio::task::block_in_place(read);
        }
        read()
    }

    /// The last edition of an item, as far as the chain is here; `Err` with the next one if it
    /// continues elsewhere. A removed edition leads on.
    fn last_edition(&self, of: &Arc<HeldItem>) -> Result<Result<Arc<HeldItem>, ItemLabels>, ArchiveError> {
        let mut last = Arc::clone(of);
        let mut seen = HashSet::from([last.path.clone()]);
        loop {
            match self.next_edition(&last)? {
                None => return Ok(Ok(last)),
                Some(NextEdition::Elsewhere(labels)) => return Ok(Err(labels)),
                Some(NextEdition::Held(next)) => {
                    if seen.len() == MAX_RELATION_ITEMS || !seen.insert(next.path.clone()) {
                        return Ok(Ok(last));
                    }
                    last = Arc::new(*next);
                }
            }
        }
    }

    /// Where an item's chain of editions leaves this Archive, if it does.
    pub(crate) fn last_edition_elsewhere(
        &self,
        of: &Arc<HeldItem>,
    ) -> Result<Option<ItemLabels>, ArchiveError> {
        Ok(self.last_edition(of)?.err())
    }

    /// The labels of the next edition of an item.
    pub(crate) fn next_edition_labels(&self, of: &HeldItem) -> Result<Option<ItemLabels>, ArchiveError> {
        Ok(self.next_edition(of)?.map(|next| match next {
            NextEdition::Held(next) => next.item.labels.clone(),
            NextEdition::Elsewhere(labels) => labels,
        }))
    }

    /// All items of this one's group of translations, one per language: itself for its own; of
    /// several others in one language, the one deposited last. An item without a language is its
    /// own bare translation.
    pub(crate) fn translations(&self, of: &Arc<HeldItem>) -> Result<Vec<TranslationMember>, ArchiveError> {
        let mut offered: Vec<TranslationMember> = Vec::new();
        for (place, member) in self.translation_group(of)?.into_iter().enumerate() {
            let rank = |member: &TranslationMember| {
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
