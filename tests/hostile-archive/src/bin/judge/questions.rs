//! What readers ask while the hostile Archive is about.

use crate::lane::LaneMode;
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

#[derive(Clone)]
pub struct ReaderQuestion {
    pub kind: QuestionKind,
    pub path: String,
    pub headers: String,
}

/// A label of a prefix that nobody has.
const STRANGER: &str = "stranger.test/archive/2001/02.03.04.05";

const PORTUGUESE: &str = "Accept-Language: pt\r\n";

pub fn questions(items: &HonestItems, mode: LaneMode) -> Vec<ReaderQuestion> {
    let HonestItems { plain, first_edition, second_edition, copied, removed, other, imported, unknown } =
        items;
    let stranger = STRANGER;
    let held =
        |path: String| ReaderQuestion { kind: QuestionKind::Held, path, headers: PORTUGUESE.to_owned() };
    let of = |kind, path: String| ReaderQuestion { kind, path, headers: String::new() };
    let mut questions = vec![
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
    ];
    if mode == LaneMode::Followed {
        // What keeps the readers there is only that the resolver has known it for long (4.4).
        questions.extend(["", ":", "!", "+"].map(|modifiers| held(format!("/{imported}{modifiers}"))));
        let fresh = |question: &ReaderQuestion| ReaderQuestion {
            headers: format!("{}Cache-Control: no-cache\r\n", question.headers),
            ..question.clone()
        };
        let fresh: Vec<ReaderQuestion> = questions.iter().map(fresh).collect();
        questions.extend(fresh);
    }
    questions
}

/// The labels in the questions, for a feed to claim.
pub fn asked_labels(items: &HonestItems) -> String {
    let HonestItems { plain, first_edition, second_edition, copied, removed, other, imported, unknown } =
        items;
    let honest = [imported, plain, first_edition, second_edition, copied, removed, other, unknown];
    honest.into_iter().map(String::as_str).chain([STRANGER]).collect::<Vec<_>>().join(",")
}
