//! What Archives and resolver answer: the pairs by name, and the filter of a urlRequest's answer (3.3 to 3.5).

use std::fmt;
use std::str::FromStr;

pub use crate::key::is_key;
use crate::pairs::Pairs;
use crate::relation::{Part, Relation};
use crate::shown::shown;
use crate::verb::Verbs;

/// The properties that an answer has for each relation, being the names of their pairs without the relation.
pub const PROPERTIES: [&str; 5] = ["contenttype", "ibi", "state", "timestamp", "url"];

/// The pairs that stay whatever was asked. `ibi.alias` is one of them: without it the resolver could not tell that an
/// answer is about the label it asked for (4.2 step 2).
const ALWAYS: [&str; 5] =
    ["archiveaddress", "ibi", "ibi.alias", "ibi.archiveservice", "ibi.platformsoftware"];

/// Names the items of which the spelling asked for is canonical, each in braces (1.3). It comes instead of a URL.
pub const ALTERNATIVES: &str = "ibi.alternatives";

/// The `state` of a label that is reserved for a draft (3.4).
pub const RESERVED: &str = "Reserved";

/// Leaves of an answer what the verbs ask for (3.4): the pairs of the relation that they spell, the `ibi` of its
/// leading parts, where its editions go on, and what says who answers and about which item. Of a removed item stay the
/// tombstone, its next edition and its translations.
pub fn filter(mut pairs: Pairs, verbs: &Verbs) -> Pairs {
    let wanted = &verbs.relation;
    let (has_edition, has_translation) = (
        wanted.parts().contains(&Part::LastEdition),
        wanted.parts().iter().any(|part| matches!(part, Part::Translation(_))),
    );
    if pairs.get("state") == Some(State::Deleted.as_str()) {
        pairs.retain(|name, _| match name {
            "state" | "timestamp" => true,
            "ibi.nextedition" => has_edition,
            _ if ALWAYS.contains(&name) => true,
            _ => has_translation && is_translation(name),
        });
        return pairs;
    }
    let before = wanted.before_last_edition().unwrap_or_default();
    let leading: Vec<Relation> = wanted.leading().collect();
    let is_reserved = pairs.get("state") == Some(RESERVED);
    pairs.retain(|name, _| match name {
        _ if ALWAYS.contains(&name) => true,
        "urlkey" => true,
        "ibi.nextedition" => has_edition,
        ALTERNATIVES => true,
        "state" if is_reserved => true,
        _ if !before.is_empty() && next_edition_of(name).is_some_and(|of| before.takes(&of)) => true,
        _ => property(name).is_some_and(|(property, offered)| {
            wanted.takes(&offered) || property == "ibi" && leading.iter().any(|part| part.takes(&offered))
        }),
    });
    if !pairs.iter().any(|(name, _)| matches!(property(name), Some(("url", _)))) {
        pairs.retain(|name, _| name != "urlkey");
    }
    pairs
}

/// Takes a pair's name apart: `url.metadata(oai_dc)` is the property `url` of `.metadata(oai_dc)`. `None` for names
/// that have no relation in them, as `urlkey` or `ibi.archiveservice`.
pub fn property(name: &str) -> Option<(&'static str, Relation)> {
    PROPERTIES.into_iter().find_map(|property| {
        let relation = name.strip_prefix(property)?;
        Some((property, Relation::parse(relation).ok()?))
    })
}

/// The P of `ibi P.nextedition` (3.4): nothing, or a translation.
pub fn next_edition_of(name: &str) -> Option<Relation> {
    let relation = Relation::parse(name.strip_prefix("ibi")?.strip_suffix(".nextedition")?).ok()?;
    matches!(relation.parts(), [] | [Part::Translation(_)]).then_some(relation)
}

/// Whether a pair names a translation of the item itself.
fn is_translation(name: &str) -> bool {
    property(name).is_some_and(|(property, relation)| {
        property == "ibi" && matches!(relation.parts(), [Part::Translation(_)])
    })
}

/// `confirmation yes`: an Archive says that it did ask to be included (3.3).
pub fn confirmation() -> Pairs {
    one_by_one(&[("confirmation", "yes")])
}

/// The resolver included an Archive, and says whether the Archive confirmed it (3.3).
pub fn included(confirmed: bool) -> Pairs {
    let confirmation = if confirmed { "successful" } else { "unsuccessful" };
    one_by_one(&[("status.archive", "included"), ("status.confirmation", confirmation)])
}

/// The resolver excluded an Archive (3.3).
pub fn excluded() -> Pairs {
    one_by_one(&[("status.archive", "excluded")])
}

/// The resolver does not know the Archive, or its key is another: the same answer, so that neither can be found out
/// (3.3).
pub fn refused() -> Pairs {
    one_by_one(&[("status.archive", "refused")])
}

/// `notice {acknowledgment received}` (3.5).
pub fn acknowledged() -> Pairs {
    one_by_one(&[("notice", "acknowledgment received")])
}

fn one_by_one(list: &[(&str, &str)]) -> Pairs {
    let mut pairs = Pairs::new();
    for (name, value) in list {
        pairs.push(*name, value);
    }
    pairs
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident $what:literal: $($(#[$about:meta])* $variant:ident)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$about])* $variant),* }

        impl $name {
            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => stringify!($variant)),* }
            }
        }

        impl FromStr for $name {
            type Err = WordError;

            fn from_str(text: &str) -> Result<Self, WordError> {
                match text {
                    $(stringify!($variant) => Ok($name::$variant),)*
                    _ => Err(WordError { given: shown(text), what: $what, words: &[$(stringify!($variant)),*] }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// What a URL leads to (3.4).
    ContentType "content type":
    /// The item's files.
    Data
    /// Its metadata.
    Metadata
}

words! {
    /// What an Archive holds of an item (2.1).
    State "state":
    /// The original: no other Archive holds it.
    Original
    /// A copy.
    Copy
    /// Removed: nothing is left but the tombstone.
    Deleted
}

/// A word that is not among those that the norm has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no {what}: it is one of {}", words.join(", "))]
pub struct WordError {
    given: String,
    what: &'static str,
    words: &'static [&'static str],
}
