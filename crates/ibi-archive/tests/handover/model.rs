//! Two Archives, one item, and a network that keeps what was ever said.

use ibi_archive::replication::giver_trust::{
    GiverEvidence, GiverTrust, OperatorTrust, OriginalTestimony, decide_giver_trust,
};
use ibi_archive::transfer_protocol::{
    CustodyState, TakerAction, TransferDenied, TransferStep, TransferTerms, decide_take, giver_confirms,
};
use ibi_store::journal::State;

/// Hand-overs are numbered from 1, and 0 is none; versions too.
pub(crate) type Number = u8;

/// How far a run goes.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) handovers: u8,
    pub(crate) updates: u8,
    pub(crate) drops: u8,
    /// Whether the Original may be removed.
    pub(crate) removal: bool,
    /// Whether one Archive may be brought back from a backup.
    pub(crate) restore: bool,
    /// Whether an Archive may forget which hand-overs it accepted. Epochs are never forgotten.
    pub(crate) forgets: bool,
    pub(crate) transferable: bool,
    /// Whether there is a resolver. Without one the operators trust each other's Archives, as
    /// givers of what nobody can be asked about.
    pub(crate) resolver: bool,
    /// Whether the second Archive begins with a Copy from a third one, which had given the Original
    /// to the first.
    pub(crate) third: bool,
    /// Whether the second Archive begins with a Copy from an impostor that only had a copy itself.
    pub(crate) copied: bool,
    /// Whether the operators say of the other Archive that it has the Original of this item,
    /// because the resolver may hear from too few.
    pub(crate) word: bool,
}

/// The protocol: ours, or one that is wrong in one place.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) take: fn(&CustodyState, bool, &TransferTerms) -> Result<TakerAction, TransferDenied>,
    pub(crate) is_given: fn(bool, &TransferTerms, TransferStep, Option<&TransferTerms>) -> bool,
    pub(crate) giver_trust: fn(&GiverEvidence) -> GiverTrust,
    pub(crate) granted_before_written: bool,
    pub(crate) dropped_when_granted: bool,
    pub(crate) taken_back_after_a_while: bool,
    pub(crate) taken_back_when_refused: bool,
    pub(crate) any_answer_counts: bool,
}

pub(crate) const OURS: Rules = Rules {
    take: decide_take,
    is_given: giver_confirms,
    giver_trust: decide_giver_trust,
    granted_before_written: false,
    dropped_when_granted: false,
    taken_back_after_a_while: false,
    taken_back_when_refused: false,
    any_answer_counts: false,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Archive {
    pub(crate) state: Option<State>,
    /// Of its own: who fetches a Copy learns none.
    pub(crate) epoch: u8,
    pub(crate) version: Number,
    /// A bit for each version whose bytes are here.
    pub(crate) bytes: u8,
    /// The hand-over that was granted, and not answered yet.
    pub(crate) granted: Number,
    /// A bit for each hand-over that was accepted here.
    pub(crate) accepted: u8,
    pub(crate) restored: bool,
    /// Who had the Original when its Copy came from there.
    pub(crate) source: Source,
    /// Where its Copy came from last, if there was only a Copy.
    pub(crate) copy_holder: Source,
    /// A bit for each hand-over whose giver was named when it was offered.
    pub(crate) named: u8,
    /// Not durable: what was written, and is not said yet.
    pub(crate) unsaid: Option<(Message, Number)>,
    /// Not durable: what was said, and is not written yet. Only wrong protocols have that.
    pub(crate) unwritten: Number,
}

/// The recorded source of a Copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Source {
    #[default]
    Nobody,
    /// The other Archive of the model.
    Other,
    /// A third one.
    Third,
    /// One that hands over what it never had.
    Impostor,
}

impl Archive {
    pub(crate) fn answers_original(&self) -> bool {
        self.state == Some(State::Original) && !self.restored
    }

    pub(crate) fn has(&self, version: Number) -> bool {
        self.bytes & (1 << version) != 0
    }

    pub(crate) fn stand(&self, bounds: &Bounds) -> CustodyState {
        CustodyState {
            state: self.state,
            epoch: self.epoch.into(),
            inventory: (self.version > 0).then(|| self.version.to_string()),
            restored: self.restored,
            transferable: bounds.transferable,
            granted: (self.granted > 0).then(|| self.granted.to_string()),
        }
    }

    pub(crate) fn crash(&mut self) {
        (self.unsaid, self.unwritten) = (None, 0);
    }

    pub(crate) fn drop_bytes(&mut self) {
        (self.state, self.version, self.bytes) = (None, 0, 0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Message {
    Offer,
    Ready,
    Grant,
    Accepted,
    Refused,
}

/// Who gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Giver {
    Other,
    Impostor,
}

/// What a hand-over was offered with: by whom, for which epoch, of which version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Offered {
    pub(crate) giver: u8,
    pub(crate) epoch: u8,
    pub(crate) version: Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) archives: [Archive; 2],
    /// The hand-overs that were begun, by number.
    pub(crate) offered: [Offered; 4],
    pub(crate) begun: Number,
    /// A bit for each message that was ever said: any of them may arrive at any time, again, or
    /// never.
    pub(crate) said: u32,
    pub(crate) drops: u8,
    pub(crate) backup: Option<(u8, Archive)>,
    /// What nobody in the world knows: the newest version, who has ever accepted what, the epoch of
    /// the last Original.
    pub(crate) newest: Number,
    pub(crate) taken: u8,
    pub(crate) reign: u8,
    pub(crate) fault: Option<Fault>,
}

/// A step that must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    AcceptedTwice,
    EpochWentBack,
    RestoredActed,
    NonTransferableLeft,
    RemovedLeft,
    /// An impostor was believed.
    ImpostorBelieved,
    /// The same, of an item that was removed.
    RemovedCameBack,
}

impl World {
    /// One Archive has the Original, the other nothing, or a Copy from a third one.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let first =
            Archive { state: Some(State::Original), epoch: 1, version: 1, bytes: 0b10, ..Archive::default() };
        let source = if bounds.third { Source::Third } else { Source::Nobody };
        let copy_holder = if bounds.copied { Source::Impostor } else { Source::Nobody };
        let copy = Archive { state: Some(State::Copy), epoch: 0, source, copy_holder, ..first };
        let second = if bounds.third || bounds.copied { copy } else { Archive::default() };
        Self {
            archives: [first, second],
            offered: [Offered::default(); 4],
            begun: 0,
            said: 0,
            drops: 0,
            backup: None,
            newest: 1,
            taken: 0,
            reign: 1,
            fault: None,
        }
    }

    /// Whether an Archive believes a giver, and whether somebody else names it: the other one, or
    /// an impostor that says whatever is wanted. `answers`: whether those who are asked answer; who
    /// is closed (403) or offline does not.
    pub(crate) fn trusts(
        &self,
        taker: u8,
        (giver, number): (Giver, Number),
        (source_answers, resolver_answers): (bool, bool),
        (rules, bounds): (&Rules, &Bounds),
    ) -> (GiverTrust, bool) {
        let archive = &self.archives[usize::from(taker)];
        let other = &self.archives[usize::from(1 - taker)];
        // What the other one, asked by itself, says where it is not the giver.
        let other_says = match other.state {
            Some(State::Original) if other.answers_original() => OriginalTestimony::Elsewhere,
            Some(State::Deleted) => OriginalTestimony::Removed,
            _ => OriginalTestimony::Unclear,
        };
        let from_other = giver == Giver::Other;
        let is_granted = archive.granted > 0;
        let source = match (is_granted, archive.source) {
            (false, Source::Nobody) => None,
            // The recorded source is the giver itself.
            (true, _) | (_, Source::Other) if from_other => Some(OriginalTestimony::Giver),
            _ if !source_answers => Some(OriginalTestimony::Unclear),
            // It names the first Archive.
            (false, Source::Third) if from_other => Some(OriginalTestimony::Giver),
            _ => Some(other_says),
        };
        let copy_holder = match archive.copy_holder {
            _ if is_granted => None,
            Source::Nobody => None,
            Source::Other if from_other => Some(OriginalTestimony::Giver),
            Source::Impostor if !from_other => Some(OriginalTestimony::Giver),
            Source::Other if source_answers => Some(other_says),
            _ => Some(OriginalTestimony::Unclear),
        };
        let resolver = match other_says {
            _ if !bounds.resolver || is_granted => None,
            _ if !resolver_answers => Some(OriginalTestimony::Unclear),
            OriginalTestimony::Elsewhere if from_other => Some(OriginalTestimony::Giver),
            // The impostor is registered, and says that it has the Original.
            OriginalTestimony::Unclear if !from_other => Some(OriginalTestimony::Giver),
            said => Some(said),
        };
        let trusted = from_other && !bounds.resolver;
        let evidence = GiverEvidence {
            is_granted,
            source,
            copy_holder,
            resolver,
            was_named: from_other && archive.named & (1 << number) != 0,
            word: match trusted {
                _ if from_other && bounds.word => OperatorTrust::Item,
                // Somebody can be asked, and is no witness: the word is for the item.
                true if bounds.copied => OperatorTrust::Item,
                true => OperatorTrust::Giver,
                false => OperatorTrust::Silent,
            },
            is_promised_to_another: bounds.word && !from_other,
        };
        ((rules.giver_trust)(&evidence), evidence.names_giver() || evidence.was_named)
    }

    /// The same, with everything forgotten that a crash of both and the loss of all messages make
    /// them forget, and that no later step depends on.
    pub(crate) fn calmed(mut self) -> Self {
        self.archives.iter_mut().for_each(Archive::crash);
        Self { said: 0, drops: 0, taken: 0, reign: 0, backup: None, ..self }
    }
}

pub(crate) fn bit(message: Message, number: Number) -> u32 {
    1 << (message as u32 * 4 + u32::from(number))
}
