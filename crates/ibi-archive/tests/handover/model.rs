//! Two Archives, one item, and a network that keeps what was ever said.

use ibi_archive::holders::handover::{No, Stand, Step, Take, Terms, is_given, take};
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
}

/// The protocol: ours, or one that is wrong in one place.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) take: fn(&Stand, bool, &Terms) -> Result<Take, No>,
    pub(crate) is_given: fn(bool, &Terms, Step, Option<&Terms>) -> bool,
    pub(crate) granted_before_written: bool,
    pub(crate) dropped_when_granted: bool,
    pub(crate) taken_back_after_a_while: bool,
    pub(crate) taken_back_when_refused: bool,
    pub(crate) any_answer_counts: bool,
}

pub(crate) const OURS: Rules = Rules {
    take,
    is_given,
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
    /// Not durable: what was written, and is not said yet.
    pub(crate) unsaid: Option<(Message, Number)>,
    /// Not durable: what was said, and is not written yet. Only wrong protocols have that.
    pub(crate) unwritten: Number,
}

impl Archive {
    pub(crate) fn answers_original(&self) -> bool {
        self.state == Some(State::Original) && !self.restored
    }

    pub(crate) fn has(&self, version: Number) -> bool {
        self.bytes & (1 << version) != 0
    }

    pub(crate) fn stand(&self, bounds: &Bounds) -> Stand {
        Stand {
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
    /// A bit for each message that was ever said: any of them may arrive at any time, again, or never.
    pub(crate) said: u32,
    pub(crate) drops: u8,
    pub(crate) backup: Option<(u8, Archive)>,
    /// What nobody in the world knows: the newest version, who has ever accepted what, the epoch of the last Original.
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
}

impl World {
    /// One Archive has the Original, the other nothing.
    pub(crate) fn new() -> Self {
        let first =
            Archive { state: Some(State::Original), epoch: 1, version: 1, bytes: 0b10, ..Archive::default() };
        Self {
            archives: [first, Archive::default()],
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

    /// The same, with everything forgotten that a crash of both and the loss of all messages make them forget, and that
    /// no later step depends on.
    pub(crate) fn calmed(mut self) -> Self {
        self.archives.iter_mut().for_each(Archive::crash);
        Self { said: 0, drops: 0, taken: 0, reign: 0, backup: None, ..self }
    }
}

pub(crate) fn bit(message: Message, number: Number) -> u32 {
    1 << (message as u32 * 4 + u32::from(number))
}
