//! An explanation in words.

use std::fmt;

use ibi_protocol::analysis::{Decision, Endless, NotFound, Purpose, Question, Wanted, Why};
use ibi_protocol::{Part, shown};

use super::{ExplainedOffer, Explanation, Heard, Heeded};

/// A question, as a persistent URL has it.
pub(crate) fn question(question: &Question) -> String {
    let Question { label, verbs, file } = question;
    let file = file.as_ref().map(|file| String::from_utf8_lossy(file.as_bytes()));
    let list = if verbs.file_list { " and its list of files" } else { "" };
    format!("{}{}{}{list}", label.spelling(), verbs.relation.modifiers(), file.unwrap_or_default())
}

/// Why a round ends as it does.
pub(super) fn because(decision: &Decision, wanted: &Wanted) -> String {
    let parts = wanted.verbs.relation.parts();
    let text = match decision {
        Decision::Found(_) if wanted.original => {
            "the original is required, and this Archive alone claims it (4.2 step 3)"
        }
        Decision::Found(found) if parts.contains(&Part::Translation(None)) => {
            match found.relation.parts().iter().any(|part| matches!(part, Part::Translation(Some(_)))) {
                true => "of the translations offered in time it suits the client best (4.2 step 6)",
                false => {
                    "no translation suits the client better than one whose language is not said (4.2 step 6)"
                }
            }
        }
        Decision::Found(_) if parts.first() == Some(&Part::LastEdition) => {
            "the first answer that satisfies the request, and nobody knew a later edition in time (4.2 step 4)"
        }
        Decision::Found(_) => "the first answer that satisfies the request (4.2 step 4)",
        Decision::AskAgain(again) => match &again.why {
            Why::NextBest(why) => return format!("the best came to nothing; {}", reason(why)),
            why => return reason(why),
        },
        Decision::Alert(_) => "several Archives claim the original, also when asked again (4.2 step 3)",
        Decision::Deleted { .. } => "an Archive says Deleted, and nobody who answered has it live (4.3)",
        Decision::Ambiguous(_) => "the spelling is canonical for several items (1.3)",
        Decision::Reserved(_) => "the label is reserved for a draft, and nobody has it live (4.3)",
        Decision::NotFound(not_found) => match not_found {
            NotFound::Item => "every Archive answered, and none has it (4.3)",
            NotFound::Original { .. } => "nobody claims the original, also when asked again (4.2 step 3)",
            NotFound::File { .. } => "the item is known, but not that file in it (4.3)",
            NotFound::Related { .. } => "the item is known, but not that of it (4.3)",
            NotFound::Unheld { .. } => "the item is known by its name, but no Archive has it (4.3)",
        },
        Decision::Incomplete { .. } => {
            "not found, but some Archive did not answer, so that it may be there (4.3)"
        }
        Decision::Cycle { why: Endless::Repeats, .. } => "the answers lead in circles (4.2 step 5)",
        Decision::Cycle { why: Endless::TooManyRounds, .. } => {
            "the answers lead further than 32 rounds (4.2 step 5)"
        }
        Decision::Wait => "somebody may still say something",
    };
    match wanted.purpose {
        Purpose::Recount => format!("asked again: {text}"),
        _ => text.to_owned(),
    }
}

/// Why something is asked.
fn reason(why: &Why) -> String {
    let text = match why {
        Why::Leading(part) => {
            let part = part.modifiers();
            return format!(
                "nobody has a URL, but an Archive knows to which item `{part}` leads (4.2 step 5)"
            );
        }
        Why::NextBest(why) => return reason(why),
        Why::NextEdition => "an Archive knows a next edition (4.2 step 5)",
        Why::CopyOfLast => {
            "only copies of a later edition are known: asked for the editions after it (4.2 step 4)"
        }
        Why::LastLiving => "the last edition was removed: the last one that lives is looked for (4.3)",
        Why::WithoutTranslation => "no translation suits the client: the item itself will do (4.2 step 6)",
        Why::Claims => {
            "not exactly one Archive claims the original: asked once more before it counts (4.2 step 3)"
        }
        Why::Offers => "the item is known, but not that of it: asked to name what there is (4.3)",
    };
    text.to_owned()
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { persistent, rounds, status, location, because, microseconds, .. } = self;
        writeln!(f, "{}", shown::cut(persistent, 2000))?;
        for (number, round) in (1..).zip(rounds) {
            let (question, took) = (shown::cut(&round.question, 500), Millis(round.microseconds));
            writeln!(f, "\n{number}. {question}: {}; {took}", round.why)?;
            for heard in &round.archives {
                writeln!(f, "   {heard}")?;
            }
        }
        writeln!(f, "\n{status}: {because}; {}", Millis(*microseconds))?;
        location.iter().try_for_each(|location| writeln!(f, "-> {location}"))
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { archive, address, said, microseconds } = self;
        match microseconds {
            Some(micros) => write!(f, "{:>12}  ", Millis(*micros).to_string())?,
            None => write!(f, "{:>12}  ", "-")?,
        }
        write!(f, "{archive}")?;
        address.iter().try_for_each(|address| write!(f, " at {address}"))?;
        write!(f, ": {said}")
    }
}

impl fmt::Display for Heeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Heeded::Nothing => f.write_str("does not hold it"),
            Heeded::Waiting => f.write_str("was not waited for"),
            Heeded::Failed { why } => write!(f, "failed: {why}"),
            Heeded::Deleted { item, timestamp, next_edition, offers } => {
                write!(f, "says that {item} was removed")?;
                timestamp.iter().try_for_each(|at| write!(f, ", {at}"))?;
                offers.iter().try_for_each(|offer| write!(f, "; {offer}"))?;
                next_edition.iter().try_for_each(|next| write!(f, "; next edition {next}"))
            }
            Heeded::Several { items } => {
                write!(f, "has several items of this spelling: {}", items.join(", "))
            }
            Heeded::Reserved { item } => write!(f, "says that {item} is reserved for a draft"),
            Heeded::Offered { item, offers, next_edition, translated_next } => {
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

/// Milliseconds, to the microsecond.
struct Millis(u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}
