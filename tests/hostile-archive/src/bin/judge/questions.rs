//! What readers ask while the hostile Archive is about.

use crate::world::HonestItems;

/// What a question is about: that decides what the hostile Archive may change (see the rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionKind {
    /// Something that an honest Archive has.
    Held,
    /// The same, and it must be the Original.
    OriginalRequired,
    /// The Original of its last edition: which item that is can be lied about, too.
    EditionRequired,
    /// An item that its Archive removed.
    Removed,
    /// A label that nobody honest knows.
    Unknown,
    /// A translation that an item in an honest Archive does not have.
    NoTranslation,
}

pub struct ReaderQuestion {
    pub kind: QuestionKind,
    pub path: String,
    pub headers: &'static str,
}

const PORTUGUESE: &str = "Accept-Language: pt\r\n";

pub fn questions(items: &HonestItems) -> Vec<ReaderQuestion> {
    let HonestItems { plain, first_edition, second_edition, copied, removed, other, unknown } = items;
    let stranger = "stranger.test/archive/2001/02.03.04.05";
    let held = |path: String| ReaderQuestion { kind: QuestionKind::Held, path, headers: PORTUGUESE };
    let of = |kind, path: String| ReaderQuestion { kind, path, headers: "" };
    vec![
        held(format!("/{plain}")),
        held(format!("/{plain}:")),
        held(format!("/{plain}:(oai_dc)")),
        held(format!("/{plain}!")),
        held(format!("/{plain}+")),
        held(format!("/{plain}+(pt)")),
        held(format!("/{plain}+:")),
        held(format!("/{plain}+:+")),
        held(format!("/{plain}!+:+")),
        held(format!("/{plain}/data/table.csv")),
        held(format!("/{plain}?ibiurl.verblist=GetFileList")),
        held(format!("/{first_edition}")),
        held(format!("/{first_edition}!")),
        held(format!("/{first_edition}!:")),
        held(format!("/{second_edition}!")),
        held(format!("/{copied}")),
        held(format!("/{copied}!")),
        held(format!("/{other}")),
        of(QuestionKind::OriginalRequired, format!("/{plain}?ibiurl.requireditemstatus=Original")),
        of(QuestionKind::OriginalRequired, format!("/{copied}?ibiurl.requireditemstatus=Original")),
        of(QuestionKind::EditionRequired, format!("/{first_edition}!?ibiurl.requireditemstatus=Original")),
        of(QuestionKind::Removed, format!("/{removed}")),
        of(QuestionKind::Unknown, format!("/{unknown}")),
        of(QuestionKind::Unknown, format!("/{stranger}")),
        of(QuestionKind::Unknown, format!("/{stranger}!")),
        of(QuestionKind::NoTranslation, format!("/{plain}+(fr)")),
    ]
}
