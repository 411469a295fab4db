//! The labels that identify one item: `rep sid.inpe.br/… ibip 8JMKD3MGP8W/…` (3.4).

use std::fmt;
use std::str::FromStr;

use ibi_id::{Label, ParseError};

use crate::answer::ALTERNATIVES_PAIR;
use crate::pairs::{Pairs, PairsError, words};
use crate::untrusted_text::quote_untrusted;

/// The labels of one item, compared by meaning and written as found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelForms(Vec<Label>);

impl LabelForms {
    /// Collects labels of one item.
    pub fn new(labels: impl IntoIterator<Item = Label>) -> Self {
        Self(labels.into_iter().collect())
    }

    /// The labels, in the order in which they are written.
    pub fn labels(&self) -> &[Label] {
        &self.0
    }

    /// Whether one of them equals this label, in any spelling.
    pub fn contains(&self, label: &Label<impl AsRef<str>>) -> bool {
        self.0.iter().any(|own| own == label)
    }

    /// Adds them to an answer, in braces.
    pub fn push_to(&self, pairs: &mut Pairs, name: impl Into<String>) {
        let words: Vec<&str> =
            self.0.iter().flat_map(|label| [label.form().name(), label.spelling()]).collect();
        pairs.push_words(name, &words);
    }

    /// Adds the items that share a canonical spelling to an answer: each in braces, all in braces
    /// (1.3).
    pub fn push_alternatives(items: &[LabelForms], pairs: &mut Pairs) {
        let each: Vec<String> = items.iter().map(|item| format!("{{{item}}}")).collect();
        pairs.push_list(ALTERNATIVES_PAIR, &each.join(" "));
    }
}

impl FromStr for LabelForms {
    type Err = LabelFormsError;

    /// Parses the value of an `ibi` pair: names of forms alternating with labels. Unknown forms are
    /// skipped, like unknown pairs (3.1); `{}` has no label.
    fn from_str(value: &str) -> Result<Self, LabelFormsError> {
        let words = words(value)?;
        let mut labels = Vec::new();
        for pair in words.chunks(2) {
            let &[form, label] = pair else {
                return Err(LabelFormsError::Odd { given: quote_untrusted(value) });
            };
            if !matches!(form, "rep" | "ibip" | "legacy") {
                continue;
            }
            let wrong = |rule| LabelFormsError::Label { given: quote_untrusted(label), rule };
            let label = Label::parse(label).map_err(wrong)?.into_owned();
            // The name of the form is not checked: the label's shape determines its form (1.3).
            labels.push(label);
        }
        Ok(Self(labels))
    }
}

impl fmt::Display for LabelForms {
    /// As in an acknowledgment, without braces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        for label in &self.0 {
            write!(f, "{space}{} {}", label.form().name(), label.spelling())?;
            space = " ";
        }
        Ok(())
    }
}

/// Why a value is not a list of labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelFormsError {
    /// A form without a label.
    #[error("`{given}` is not a list of forms and labels, as in `rep sid.inpe.br/mtc-m18/2009/02.16.17.46`")]
    Odd {
        /// What was given.
        given: String,
    },
    /// An invalid label.
    #[error("`{given}` is not a valid IBI: {rule}")]
    Label {
        /// What was given.
        given: String,
        /// The violated rule.
        rule: ParseError,
    },
    /// Not a valid list of words.
    #[error(transparent)]
    Words(#[from] PairsError),
}
