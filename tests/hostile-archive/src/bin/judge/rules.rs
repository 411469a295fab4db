//! What a resolver may answer while one Archive misbehaves: a redirect is right if it is exactly
//! what the honest Archives alone give, and the standard (4.2, 4.3) lets the hostile Archive matter
//! only as this table has it. `own` is a redirect to the hostile Archive's own host; `as before` is
//! what the resolver answered before that Archive was registered. `named` is where an honest
//! Archive's own item leads, of which the hostile one says that it is the next edition of something
//! that only the hostile one knows: nobody else has a say in that (2.4).
//!
//! | what its answers come to | original required | removed | unknown | no such translation |
//! | --- | --- | --- | --- | --- |
//! | fails: none counts | as before | 410 | 503, never 404 | 404 or 503 |
//! | nothing: empty answers | as before | 410 | 404 | 404 |
//! | copy of everything | as before | own: what lives beats what was removed | own | 404 |
//! | original of everything | 409: two claims | own | own | 404 |
//! | deleted: removed everything | as before | 410 | 410 | 404 |
//! | reserved everything | as before | 410 | 403 | 404 |
//! | varies | as before or 409 | 410, 300 or own | all of these, 300, 508, named | 404 or 503 |
//! | feed: only its feed claims | as before | 410, 300 or own | the same | 404 or 503 |
//!
//! What an honest Archive holds is as before, always. Where the Original of a last edition is
//! required and the hostile Archive claims Originals, it is as before or 409: it may claim that of
//! another item than the honest Archive names.

use crate::ask::ReaderReply;
use crate::questions::QuestionKind;

/// A line of `hostile-archive --list`.
#[derive(Debug, Clone)]
pub struct ListedBehaviour {
    pub name: String,
    pub effect: String,
    clause: String,
}

impl ListedBehaviour {
    pub fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t').map(str::to_owned);
        let (name, effect, clause) = (fields.next()?, fields.next()?, fields.next()?);
        fields.next().map(|_| Self { name, effect, clause })
    }

    /// Whether it has a location feed.
    pub fn has_feed(&self) -> bool {
        self.name.starts_with("feed-")
    }

    /// Whether the resolver may not include it: it does not confirm, or not at its own address.
    pub fn is_refused(&self) -> bool {
        self.clause.starts_with("3.3") && self.effect == "fails"
    }
}

/// What came, in the words of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JudgedOutcome {
    AsBefore,
    Own,
    /// To the item of an honest Archive that the hostile one names.
    Named,
    Status(u16),
    /// A redirect elsewhere, or no answer.
    Wrong,
}

impl JudgedOutcome {
    pub fn of(reply: &ReaderReply, before: &ReaderReply, host: &str) -> Self {
        let ReaderReply { status, location, whole } = reply;
        if whole.to_ascii_lowercase().contains("\nx-injected") {
            return JudgedOutcome::Wrong;
        }
        if *status == 302 && (status, location) == (&before.status, &before.location) {
            return JudgedOutcome::AsBefore;
        }
        let authority = location.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let is_own = authority.is_some_and(|own| own.split(':').next() == Some(host));
        match (status, location.is_empty()) {
            (302, _) if is_own => JudgedOutcome::Own,
            (300, true) | (400.., true) => JudgedOutcome::Status(*status),
            _ => JudgedOutcome::Wrong,
        }
    }
}

/// Whether the table has it.
pub fn is_allowed(outcome: JudgedOutcome, kind: QuestionKind, effect: &str, before: u16) -> bool {
    use JudgedOutcome::{AsBefore, Named, Own, Status};
    let outcome = if outcome == Status(before) { AsBefore } else { outcome };
    match (kind, effect) {
        (_, _) if outcome == JudgedOutcome::Wrong => false,
        (QuestionKind::Held, _) => outcome == AsBefore,
        (QuestionKind::OriginalRequired, "original") => outcome == Status(409),
        (QuestionKind::OriginalRequired, "varies")
        | (QuestionKind::EditionRequired, "original" | "varies") => matches!(outcome, AsBefore | Status(409)),
        (QuestionKind::OriginalRequired | QuestionKind::EditionRequired, _) => outcome == AsBefore,
        (QuestionKind::Removed, "copy" | "original") => outcome == Own,
        (QuestionKind::Removed, "varies" | "feed") => matches!(outcome, AsBefore | Own | Status(300)),
        (QuestionKind::Removed, _) => outcome == AsBefore,
        (QuestionKind::Unknown, "fails") => outcome == Status(503),
        (QuestionKind::Unknown, "nothing") => outcome == AsBefore,
        (QuestionKind::Unknown, "copy" | "original") => outcome == Own,
        (QuestionKind::Unknown, "deleted") => outcome == Status(410),
        (QuestionKind::Unknown, "reserved") => outcome == Status(403),
        (QuestionKind::Unknown, _) => {
            matches!(outcome, AsBefore | Own | Named | Status(300 | 403 | 410 | 503 | 508))
        }
        (QuestionKind::NoTranslation, "fails" | "varies" | "feed") => {
            matches!(outcome, AsBefore | Status(503))
        }
        (QuestionKind::NoTranslation, _) => outcome == AsBefore,
    }
}
