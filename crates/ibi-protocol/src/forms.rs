//! The forms in which one item is identified: `rep sid.inpe.br/… ibip 8JMKD3MGP8W/…` (3.4).

use std::fmt;
use std::str::FromStr;

use ibi_id::{Label, ParseError};

use crate::answer::ALTERNATIVES;
use crate::pairs::{Pairs, PairsError, words};
use crate::shown::shown;

/// The labels of one item. They are compared by meaning and written as they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forms(Vec<Label>);

impl Forms {
    /// The forms that these labels have.
    pub fn new(labels: impl IntoIterator<Item = Label>) -> Self {
        Self(labels.into_iter().collect())
    }

    /// The labels, in the order in which they are written.
    pub fn labels(&self) -> &[Label] {
        &self.0
    }

    /// Whether one of them is this label, in whatever spelling.
    pub fn hold(&self, label: &Label<impl AsRef<str>>) -> bool {
        self.0.iter().any(|own| own == label)
    }

    /// Puts them into an answer, in braces.
    pub fn push_to(&self, pairs: &mut Pairs, name: impl Into<String>) {
        let words: Vec<&str> =
            self.0.iter().flat_map(|label| [label.form().name(), label.spelling()]).collect();
        pairs.push_words(name, &words);
    }

    /// Puts items that one spelling is canonical for into an answer: each in braces, in braces (1.3).
    pub fn push_alternatives(items: &[Forms], pairs: &mut Pairs) {
        let each: Vec<String> = items.iter().map(|item| format!("{{{item}}}")).collect();
        pairs.push_list(ALTERNATIVES, &each.join(" "));
    }
}

impl FromStr for Forms {
    type Err = FormsError;

    /// Reads the value of a pair `ibi`: a name of a form and a label, again and again. A form that we do not know is
    /// skipped, like any pair that we do not know (3.1); `{}` has no label.
    fn from_str(value: &str) -> Result<Self, FormsError> {
        let words = words(value)?;
        let mut labels = Vec::new();
        for pair in words.chunks(2) {
            let &[form, label] = pair else { return Err(FormsError::Odd { given: shown(value) }) };
            if !matches!(form, "rep" | "ibip" | "legacy") {
                continue;
            }
            let wrong = |rule| FormsError::Label { given: shown(label), rule };
            let label = Label::parse(label).map_err(wrong)?.into_owned();
            // A label under the wrong name is still that label: its shape says its form (1.3).
            labels.push(label);
        }
        Ok(Self(labels))
    }
}

impl fmt::Display for Forms {
    /// As an acknowledgment has them, without braces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        for label in &self.0 {
            write!(f, "{space}{} {}", label.form().name(), label.spelling())?;
            space = " ";
        }
        Ok(())
    }
}

/// What is wrong with forms of an IBI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormsError {
    /// A form without a label.
    #[error("`{given}` does not say its forms in pairs, as in `rep sid.inpe.br/mtc-m18/2009/02.16.17.46`")]
    Odd {
        /// What was given.
        given: String,
    },
    /// A label that is none.
    #[error("`{given}` is no IBI: {rule}")]
    Label {
        /// What was given.
        given: String,
        /// The rule that it breaks.
        rule: ParseError,
    },
    /// Not even a list of words.
    #[error(transparent)]
    Words(#[from] PairsError),
}
