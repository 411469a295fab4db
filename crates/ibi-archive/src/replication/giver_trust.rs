//! Whether a taker trusts a giver's claim to the Original (clause 2.1), decided without disk or
//! network access. The taker and the model (`tests/handover`) call this function.
//!
//! A giver confirms its own transfer, and a token of the role `holder` lets any Archive be a giver.
//! So a third party must name it: the Archive that had the Original when a copy came here from it
//! or, failing that, the resolver. An Archive that has only a copy is no witness, even if a copy
//! here came from it. Without a clear answer nothing is taken, unless the operator vouches for the
//! giver.

use crate::transfer_protocol::TransferDenied;

/// A third party's answer about the Original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OriginalTestimony {
    /// The giver has it, or it was handed over to the giver.
    Giver,
    /// Another Archive has it.
    Elsewhere,
    /// It was removed.
    Removed,
    /// No answer, an answer that names nobody, or a restricted item.
    Unclear,
}

/// The trust that the taker's operator has declared in a giver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperatorTrust {
    /// None.
    Silent,
    /// It may hand over items for which there is nobody to ask.
    Giver,
    /// It has the Original of exactly this item, even if the witnesses do not answer.
    Item,
}

/// All evidence a taker has of who holds the Original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GiverEvidence {
    /// Whether the item was granted from here and not acknowledged. Then only the Archive it was
    /// granted to can hand it back, and `source` is that Archive's answer.
    pub is_granted: bool,
    /// The answer of the Archive that had the Original when a copy came here from it, or that it
    /// was handed over to from here; if there is one.
    pub source: Option<OriginalTestimony>,
    /// The answer of the Archive that the last copy came from, if that only had a copy. It can
    /// contradict a giver, but not confirm one.
    pub copy_holder: Option<OriginalTestimony>,
    /// The resolver's answer, if there is a resolver.
    pub resolver: Option<OriginalTestimony>,
    /// Whether the source or the resolver named the giver when this transfer was offered. After the
    /// grant nobody has the Original, so nobody can be named.
    pub was_named: bool,
    /// The operator's declared trust.
    pub word: OperatorTrust,
    /// Whether the operator declared that another giver has the Original of exactly this item. A
    /// giver trusted so is no witness: once it has granted, nobody has the Original, and whoever
    /// claims it then is named by the resolver.
    pub is_promised_to_another: bool,
}

impl GiverEvidence {
    /// Whether a witness names the giver: the former holder of the Original, else the resolver.
    pub fn names_giver(&self) -> bool {
        self.source.or(self.resolver) == Some(OriginalTestimony::Giver)
    }
}

/// The decision about a giver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GiverTrust {
    /// Trusted.
    Believed,
    /// Neither confirmed nor contradicted.
    Unconfirmed,
    /// Contradicted.
    Refused(TransferDenied),
}

/// Decides whether to trust a giver; in doubt, no. A tombstone or another Original overrides
/// everything, including the operator's trust.
pub fn decide_giver_trust(evidence: &GiverEvidence) -> GiverTrust {
    use OriginalTestimony::{Elsewhere, Giver, Removed};
    let heard = [evidence.source, evidence.copy_holder, evidence.resolver];
    let says = |what: OriginalTestimony| heard.contains(&Some(what));
    if evidence.is_granted {
        // The operator overrides this with `transfer --taker-destroyed`.
        return match evidence.source {
            Some(Giver) => GiverTrust::Believed,
            _ => GiverTrust::Unconfirmed,
        };
    }
    if says(Removed) {
        return GiverTrust::Refused(TransferDenied::RemovedElsewhere);
    }
    if says(Elsewhere) {
        return GiverTrust::Refused(TransferDenied::OriginalElsewhere);
    }
    // The resolver knows who claims the Original now; a former holder knows whom it was handed to.
    let is_named = evidence.names_giver();
    if evidence.is_promised_to_another && evidence.source != Some(Giver) {
        return GiverTrust::Unconfirmed;
    }
    let is_alone = heard == [None; 3];
    match evidence.word {
        _ if is_named || evidence.was_named => GiverTrust::Believed,
        OperatorTrust::Item => GiverTrust::Believed,
        OperatorTrust::Giver if is_alone => GiverTrust::Believed,
        _ => GiverTrust::Unconfirmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OriginalTestimony::{Elsewhere, Giver, Removed, Unclear};

    const NO_EVIDENCE: GiverEvidence = GiverEvidence {
        is_granted: false,
        source: None,
        copy_holder: None,
        resolver: None,
        was_named: false,
        word: OperatorTrust::Silent,
        is_promised_to_another: false,
    };

    /// Clause 2.1: in all 3,000 cases, a giver that nobody names, or that is contradicted, is not
    /// trusted.
    #[test]
    fn in_doubt_nobody_is_believed() {
        let said = [None, Some(Giver), Some(Elsewhere), Some(Removed), Some(Unclear)];
        let mut believed = 0;
        let pairs = said.iter().flat_map(|a| said.map(|b| (*a, b)));
        for ((source, resolver), copy_holder) in pairs.flat_map(|pair| said.map(|c| (pair, c))) {
            for word in [OperatorTrust::Silent, OperatorTrust::Giver, OperatorTrust::Item] {
                for flags in 0..8 {
                    let flag = |bit: u8| flags & bit != 0;
                    let (is_granted, was_named, is_promised_to_another) = (flag(1), flag(2), flag(4));
                    let evidence = GiverEvidence {
                        is_granted,
                        source,
                        copy_holder,
                        resolver,
                        was_named,
                        word,
                        is_promised_to_another,
                    };
                    if decide_giver_trust(&evidence) != GiverTrust::Believed {
                        continue;
                    }
                    believed += 1;
                    let heard = [source, copy_holder, resolver];
                    let named =
                        source.or(resolver) == Some(Giver) || was_named || word == OperatorTrust::Item;
                    let nobody_to_ask = word == OperatorTrust::Giver && heard == [None; 3];
                    assert!(named || nobody_to_ask, "{evidence:?}");
                    let against = heard.iter().flatten().any(|said| [Elsewhere, Removed].contains(said));
                    assert!(is_granted || !against, "{evidence:?}");
                    assert!(!is_granted || source == Some(Giver), "{evidence:?}");
                    assert!(!is_promised_to_another || source == Some(Giver), "{evidence:?}");
                }
            }
        }
        assert!(believed > 0);
    }

    #[test]
    fn what_is_refused_says_why() {
        let refused = |source, resolver| {
            let word = OperatorTrust::Item;
            decide_giver_trust(&GiverEvidence { source, resolver, was_named: true, word, ..NO_EVIDENCE })
        };
        assert_eq!(
            refused(Some(Giver), Some(Removed)),
            GiverTrust::Refused(TransferDenied::RemovedElsewhere)
        );
        assert_eq!(refused(Some(Elsewhere), None), GiverTrust::Refused(TransferDenied::OriginalElsewhere));
        assert_eq!(decide_giver_trust(&NO_EVIDENCE), GiverTrust::Unconfirmed);
        let closed = GiverEvidence { source: Some(Unclear), ..NO_EVIDENCE };
        assert_eq!(decide_giver_trust(&closed), GiverTrust::Unconfirmed, "403 at the source");
        let copy = GiverEvidence { copy_holder: Some(Giver), ..NO_EVIDENCE };
        assert_eq!(decide_giver_trust(&copy), GiverTrust::Unconfirmed, "the giver only had a copy");
        let named = GiverEvidence { resolver: Some(Giver), ..copy };
        assert_eq!(decide_giver_trust(&named), GiverTrust::Believed, "the resolver names it");
    }
}
