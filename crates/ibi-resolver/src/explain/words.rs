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
            Why::Leading(part) => {
                let part = part.modifiers();
                return format!(
                    "nobody has a URL, but an Archive knows to which item `{part}` leads (4.2 step 5)"
                );
            }
            Why::NextEdition => "an Archive knows a next edition (4.2 step 5)",
            Why::WithoutTranslation => {
                "no translation suits the client: the item itself will do (4.2 step 6)"
            }
            Why::Claims => {
                "not exactly one Archive claims the original: asked once more before it counts (4.2 step 3)"
            }
            Why::Offers => "the item is known, but not that of it: asked to name what there is (4.3)",
        },
        Decision::Alert(_) => "several Archives claim the original, also when asked again (4.2 step 3)",
        Decision::Deleted(_) => "an Archive says Deleted, and nobody who answered has it live (4.3)",
        Decision::NotFound(not_found) => match not_found {
            NotFound::Item => "every Archive answered, and none has it (4.3)",
            NotFound::Original { .. } => "nobody claims the original, also when asked again (4.2 step 3)",
            NotFound::File { .. } => "the item is known, but not that file in it (4.3)",
            NotFound::Related { .. } => "the item is known, but not that of it (4.3)",
        },
        Decision::Incomplete { .. } => {
            "not found, but some Archive did not answer, so that it may be there (4.3)"
        }
        Decision::Cycle { why: Endless::Repeats, .. } => "the answers lead in circles (4.2 step 5)",
        Decision::Cycle { why: Endless::TooManyRounds, .. } => {
            "the answers lead further than 8 rounds (4.2 step 5)"
        }
        Decision::Wait => "somebody may still say something",
    };
    match wanted.purpose {
        Purpose::Recount => format!("asked again: {text}"),
        _ => text.to_owned(),
    }
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
            Heeded::Deleted { item, timestamp } => {
                write!(f, "says that {item} was removed")?;
                timestamp.iter().try_for_each(|at| write!(f, ", {at}"))
            }
            Heeded::Offered { item, offers, next_edition } => {
                write!(f, "knows {item}")?;
                for ExplainedOffer { modifiers, ibi, url, state } in offers {
                    let name = if modifiers.is_empty() { "itself" } else { modifiers };
                    write!(f, "; {name}")?;
                    state.iter().try_for_each(|state| write!(f, " {state}"))?;
                    match (url, ibi) {
                        (Some(url), _) => write!(f, " at {url}")?,
                        (None, Some(ibi)) => write!(f, " is {ibi}, which it does not hold")?,
                        (None, None) => {}
                    }
                }
                next_edition.iter().try_for_each(|next| write!(f, "; next edition {next}"))
            }
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
