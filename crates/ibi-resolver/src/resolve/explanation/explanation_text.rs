//! An explanation as text.

use std::fmt;

use ibi_protocol::analysis::{
    CycleReason, ItemQuery, NotFoundReason, RequeryReason, RoundDecision, RoundPurpose, RoundQuery,
};
use ibi_protocol::{RelationPart, untrusted_text};

use super::{ExplainedAnswer, ExplainedOffer, ExplainedReply, ResolutionExplanation};

/// A query in the form of a persistent URL.
pub(crate) fn question_text(question: &ItemQuery) -> String {
    let ItemQuery { label, verbs, file } = question;
    let file = file.as_ref().map(|file| String::from_utf8_lossy(file.as_bytes()));
    let list = if verbs.file_list { " and its list of files" } else { "" };
    format!("{}{}{}{list}", label.spelling(), verbs.relation.modifiers(), file.unwrap_or_default())
}

/// Why a round ends with this decision.
pub(super) fn decision_text(decision: &RoundDecision, wanted: &RoundQuery) -> String {
    let parts = wanted.verbs.relation.parts();
    let text = match decision {
        RoundDecision::Found(_) if wanted.original => {
            "the original is required, and this Archive alone claims it (4.2 step 3)"
        }
        RoundDecision::Found(found) if parts.contains(&RelationPart::Translation(None)) => {
            match found.relation.parts().iter().any(|part| matches!(part, RelationPart::Translation(Some(_))))
            {
                true => "of the translations offered in time it suits the client best (4.2 step 6)",
                false => {
                    "no translation suits the client better than one whose language is not said (4.2 step 6)"
                }
            }
        }
        RoundDecision::Found(_) if parts.first() == Some(&RelationPart::LastEdition) => {
            "the first answer that satisfies the request, and nobody knew a later edition in time (4.2 step 4)"
        }
        RoundDecision::Found(_) => "the first answer that satisfies the request (4.2 step 4)",
        RoundDecision::AskAgain(again) => match &again.why {
            RequeryReason::NextBest(why) => {
                return format!("the best came to nothing; {}", requery_text(why));
            }
            why => return requery_text(why),
        },
        RoundDecision::Alert(_) => "several Archives claim the original, also when asked again (4.2 step 3)",
        RoundDecision::Deleted { .. } => "an Archive says Deleted, and nobody who answered has it live (4.3)",
        RoundDecision::Ambiguous(_) => "the spelling is canonical for several items (1.3)",
        RoundDecision::Reserved(_) => "the label is reserved for a draft, and nobody has it live (4.3)",
        RoundDecision::NotFound(not_found) => match not_found {
            NotFoundReason::Item => "every Archive answered, and none has it (4.3)",
            NotFoundReason::Original { .. } => {
                "nobody claims the original, also when asked again (4.2 step 3)"
            }
            NotFoundReason::File { .. } => "the item is known, but not that file in it (4.3)",
            NotFoundReason::Related { .. } => "the item is known, but not that of it (4.3)",
            NotFoundReason::Unheld { .. } => "the item is known by its name, but no Archive has it (4.3)",
        },
        RoundDecision::Incomplete { .. } => {
            "not found, but some Archive did not answer, so that it may be there (4.3)"
        }
        RoundDecision::Cycle { why: CycleReason::Repeats, .. } => "the answers lead in circles (4.2 step 5)",
        RoundDecision::Cycle { why: CycleReason::TooManyRounds, .. } => {
            "the answers lead further than 32 rounds (4.2 step 5)"
        }
        RoundDecision::Wait => "somebody may still say something",
    };
    match wanted.purpose {
        RoundPurpose::Recount => format!("asked again: {text}"),
        _ => text.to_owned(),
    }
}

/// Why a query is sent.
fn requery_text(why: &RequeryReason) -> String {
    let text = match why {
        RequeryReason::Leading(part) => {
            let part = part.modifiers();
            return format!(
                "nobody has a URL, but an Archive knows to which item `{part}` leads (4.2 step 5)"
            );
        }
        RequeryReason::NextBest(why) => return requery_text(why),
        RequeryReason::NextEdition => "an Archive knows a next edition (4.2 step 5)",
        RequeryReason::CopyOfLast => {
            "only copies of a later edition are known: asked for the editions after it (4.2 step 4)"
        }
        RequeryReason::WhoDecides => {
            "Archives name different editions or translations: the Archive of the Original decides (2.4)"
        }
        RequeryReason::Decided => "the Archive of the Original is known: its word counts (2.4)",
        RequeryReason::LastLiving => {
            "the last edition was removed: the last one that lives is looked for (4.3)"
        }
        RequeryReason::WithoutTranslation => {
            "no translation suits the client: the item itself will do (4.2 step 6)"
        }
        RequeryReason::Claims => {
            "not exactly one Archive claims the original: asked once more before it counts (4.2 step 3)"
        }
        RequeryReason::Offers => "the item is known, but not that of it: asked to name what there is (4.3)",
    };
    text.to_owned()
}

impl fmt::Display for ResolutionExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { persistent, rounds, status, location, because, microseconds, .. } = self;
        writeln!(f, "{}", untrusted_text::truncate_untrusted(persistent, 2000))?;
        for (number, round) in (1..).zip(rounds) {
            let (question, took) =
                (untrusted_text::truncate_untrusted(&round.question, 500), DisplayMillis(round.microseconds));
            writeln!(f, "\n{number}. {question}: {}; {took}", round.why)?;
            for heard in &round.archives {
                writeln!(f, "   {heard}")?;
            }
        }
        writeln!(f, "\n{status}: {because}; {}", DisplayMillis(*microseconds))?;
        location.iter().try_for_each(|location| writeln!(f, "-> {location}"))
    }
}

impl fmt::Display for ExplainedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { archive, address, secure, said, microseconds } = self;
        match microseconds {
            Some(micros) => write!(f, "{:>12}  ", DisplayMillis(*micros).to_string())?,
            None => write!(f, "{:>12}  ", "-")?,
        }
        write!(f, "{archive}")?;
        let scheme = if *secure { "https://" } else { "" };
        address.iter().try_for_each(|address| write!(f, " at {scheme}{address}"))?;
        write!(f, ": {said}")
    }
}

impl fmt::Display for ExplainedReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExplainedReply::Nothing => f.write_str("does not hold it"),
            ExplainedReply::Waiting => f.write_str("was not waited for"),
            ExplainedReply::Failed { why } => write!(f, "failed: {why}"),
            ExplainedReply::Deleted { item, timestamp, next_edition, offers } => {
                write!(f, "says that {item} was removed")?;
                timestamp.iter().try_for_each(|at| write!(f, ", {at}"))?;
                offers.iter().try_for_each(|offer| write!(f, "; {offer}"))?;
                next_edition.iter().try_for_each(|next| write!(f, "; next edition {next}"))
            }
            ExplainedReply::Several { items } => {
                write!(f, "has several items of this spelling: {}", items.join(", "))
            }
            ExplainedReply::Reserved { item } => write!(f, "says that {item} is reserved for a draft"),
            ExplainedReply::Offered { item, offers, next_edition, translated_next } => {
                write!(f, "knows {item}")?;
                offers.iter().try_for_each(|offer| write!(f, "; {offer}"))?;
                next_edition.iter().try_for_each(|next| write!(f, "; next edition {next}"))?;
                translated_next.iter().try_for_each(|(of, next)| write!(f, "; next edition of {of} {next}"))
            }
        }
    }
}

impl fmt::Display for ExplainedOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { modifiers, ibi, url, state } = self;
        f.write_str(if modifiers.is_empty() { "itself" } else { modifiers })?;
        state.iter().try_for_each(|state| write!(f, " {state}"))?;
        match (url, ibi) {
            (Some(url), _) => write!(f, " at {url}"),
            (None, Some(ibi)) => write!(f, " is {ibi}, which it does not hold"),
            (None, None) => Ok(()),
        }
    }
}

/// Milliseconds, with microsecond precision.
struct DisplayMillis(u64);

impl fmt::Display for DisplayMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}
