//! Relations: from an item to its last edition, its translations and its metadata (clause 2.4).

pub mod walk;

use std::sync::Arc;

use ibi_protocol::offers::{self, LinkOf, LinkedItem, RelationGraph, TranslationOf};
use ibi_protocol::{Language, Relation};
use ibi_store::index::LabelRole;

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::dublin_core::languages_of;
use crate::item::ItemLabels;
use crate::links::{NextEdition, TranslationMember};

pub use ibi_protocol::offers::{METADATA_FORMATS, TargetPart};

/// The target of a relation among the items held here.
pub type HeldTarget = offers::RelationTarget<Arc<HeldItem>>;

/// The targets of a relation and of its leading parts.
pub type HeldOfferSet = offers::RelationOfferSet<Arc<HeldItem>, ItemLabels>;

/// The target of a label.
pub fn target_of(holding: HeldItem, role: LabelRole) -> HeldTarget {
    let what = match role {
        LabelRole::Item | LabelRole::Alias => TargetPart::Item,
        LabelRole::Metadata => TargetPart::METADATA_PAGE,
    };
    HeldTarget { holding: Arc::new(holding), what }
}

/// The labels of a target: the item's, or those of its metadata.
pub fn labels_of(target: &HeldTarget) -> &ItemLabels {
    match target.what {
        TargetPart::Item => &target.holding.item.labels,
        TargetPart::Metadata { .. } => &target.holding.item.metadata,
    }
}

impl RelationGraph for Holdings {
    type Item = Arc<HeldItem>;
    type Labels = ItemLabels;
    type Error = ArchiveError;

    fn identity<'a>(&self, item: &'a Arc<HeldItem>) -> &'a str {
        &item.path
    }

    fn next_edition(&self, of: &Arc<HeldItem>) -> Result<Option<LinkOf<Self>>, ArchiveError> {
        Ok(self.accepted_next_edition(of)?.map(|next| match next {
            NextEdition::Held(next) => LinkedItem::Held(Arc::new(*next)),
            NextEdition::Elsewhere(labels) => LinkedItem::Elsewhere(labels),
        }))
    }

    fn translations(&self, of: &Arc<HeldItem>) -> Result<Vec<TranslationOf<Self>>, ArchiveError> {
        let members = self.translation_members(of)?.into_iter();
        Ok(members
            .map(|member| {
                let item = match member.held {
                    Some(holding) => LinkedItem::Held(holding),
                    None => LinkedItem::Elsewhere(member.labels),
                };
                (member.language, item)
            })
            .collect())
    }

    fn metadata_languages(&self, of: &Arc<HeldItem>) -> Result<Vec<Language>, ArchiveError> {
        Ok(match of.metadata.is_not_loaded() {
            true => of.long_metadata_languages.clone(),
            false => languages_of(&of.metadata),
        })
    }
}

impl Holdings {
    /// The targets of a relation from here, as far as this Archive has them.
    pub fn relation_offers(
        &self,
        from: &HeldTarget,
        wanted: &Relation,
    ) -> Result<HeldOfferSet, ArchiveError> {
        offers::relation_offers(self, from, wanted)
    }

    /// Where an item's chain of editions leaves this Archive, if it does.
    pub(crate) fn last_edition_elsewhere(
        &self,
        of: &Arc<HeldItem>,
    ) -> Result<Option<ItemLabels>, ArchiveError> {
        Ok(offers::last_edition(self, of)?.err())
    }

    /// The labels of the next edition of an item.
    pub(crate) fn next_edition_labels(&self, of: &HeldItem) -> Result<Option<ItemLabels>, ArchiveError> {
        Ok(self.accepted_next_edition(of)?.map(|next| match next {
            NextEdition::Held(next) => next.item.labels.clone(),
            NextEdition::Elsewhere(labels) => labels,
        }))
    }

    /// All items of this one's group of translations, one per language: itself for its own; of
    /// several others in one language, the one deposited last. An item without a language is its
    /// own bare translation.
    pub(crate) fn translation_members(
        &self,
        of: &Arc<HeldItem>,
    ) -> Result<Vec<TranslationMember>, ArchiveError> {
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
