//! The responses of Archives and resolver: their pairs, and the filtering of a urlRequest's answer
//! (3.3 to 3.5).

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use crate::key::is_key;
use crate::pairs::Pairs;
use crate::relation::{Relation, RelationPart};
use crate::untrusted_text::quote_untrusted;
use crate::verb::Verbs;

/// The properties given for each relation: the pair names without the relation.
pub const RELATION_PROPERTIES: [&str; 5] = ["contenttype", "ibi", "state", "timestamp", "url"];

/// Pairs that are never filtered out. Without `ibi.alias` the resolver could not tell that an
/// answer is about the label it queried (4.2 step 2).
const UNFILTERED_PAIRS: [&str; 5] =
    ["archiveaddress", "ibi", "ibi.alias", "ibi.archiveservice", "ibi.platformsoftware"];

/// Lists the items for which the queried spelling is canonical, each in braces (1.3). Replaces the
/// URL.
pub const ALTERNATIVES_PAIR: &str = "ibi.alternatives";

/// The `state` of a label that is reserved for a draft (3.4).
pub const RESERVED_STATE: &str = "Reserved";

/// Keeps what the verbs request (3.4): the pairs of their relation, the `ibi` of its leading parts,
/// the next edition, and the pairs that identify the Archive and the item. Of a removed item the
/// tombstone, its next edition and its translations are kept.
pub fn filter(mut pairs: Pairs, verbs: &Verbs) -> Pairs {
    let requested = &verbs.relation;
    let (has_edition, has_translation) = (
        requested.parts().contains(&RelationPart::LastEdition),
        requested.parts().iter().any(|part| matches!(part, RelationPart::Translation(_))),
    );
    if pairs.get("state") == Some(State::Deleted.as_str()) {
        pairs.retain(|name, _| match name {
            "state" | "timestamp" => true,
            "ibi.nextedition" => has_edition,
            _ if UNFILTERED_PAIRS.contains(&name) => true,
            _ => has_translation && is_translation(name),
        });
        return pairs;
    }
    let before = requested.before_last_edition().unwrap_or_default();
    let leading: Vec<Relation> = requested.leading().collect();
    let is_reserved = pairs.get("state") == Some(RESERVED_STATE);
    pairs.retain(|name, _| match name {
        _ if UNFILTERED_PAIRS.contains(&name) => true,
        "urlkey" => true,
        "ibi.nextedition" => has_edition,
        ALTERNATIVES_PAIR => true,
        "state" if is_reserved => true,
        _ if !before.is_empty()
            && next_edition_of(name).is_some_and(|relation| before.accepts(&relation)) =>
        {
            true
        }
        _ => property(name).is_some_and(|(property, offered)| {
            requested.accepts(&offered)
                || property == "ibi" && leading.iter().any(|part| part.accepts(&offered))
        }),
    });
    if !pairs.iter().any(|(name, _)| matches!(property(name), Some(("url", _)))) {
        pairs.retain(|name, _| name != "urlkey");
    }
    pairs
}

/// Splits a pair's name: `url.metadata(oai_dc)` is the property `url` of `.metadata(oai_dc)`.
/// `None` for names without a relation, such as `urlkey` or `ibi.archiveservice`.
pub fn property(name: &str) -> Option<(&'static str, Relation)> {
    RELATION_PROPERTIES.into_iter().find_map(|property| {
        let relation = name.strip_prefix(property)?;
        Some((property, Relation::parse(relation).ok()?))
    })
}

/// The P of `ibi P.nextedition` (3.4): nothing, or a translation.
pub fn next_edition_of(name: &str) -> Option<Relation> {
    let relation = Relation::parse(name.strip_prefix("ibi")?.strip_suffix(".nextedition")?).ok()?;
    matches!(relation.parts(), [] | [RelationPart::Translation(_)]).then_some(relation)
}

/// Whether a pair names a translation of the item itself.
fn is_translation(name: &str) -> bool {
    property(name).is_some_and(|(property, relation)| {
        property == "ibi" && matches!(relation.parts(), [RelationPart::Translation(_)])
    })
}

/// `confirmation yes`: an Archive confirms that it requested inclusion (3.3).
pub fn confirmation() -> Pairs {
    pairs_of(&[("confirmation", "yes")])
}

/// The resolver included an Archive; `confirmed` says whether the Archive confirmed (3.3).
pub fn included(confirmed: bool) -> Pairs {
    let confirmation = if confirmed { "successful" } else { "unsuccessful" };
    pairs_of(&[("status.archive", "included"), ("status.confirmation", confirmation)])
}

/// The resolver excluded an Archive (3.3).
pub fn excluded() -> Pairs {
    pairs_of(&[("status.archive", "excluded")])
}

/// The Archive is unknown or its key is wrong. One response for both, so that neither can be probed
/// (3.3).
pub fn refused() -> Pairs {
    pairs_of(&[("status.archive", "refused")])
}

/// `notice {acknowledgment received}` (3.5).
pub fn acknowledged() -> Pairs {
    pairs_of(&[("notice", "acknowledgment received")])
}

fn pairs_of(list: &[(&str, &str)]) -> Pairs {
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
            type Err = WireWordError;

            fn from_str(text: &str) -> Result<Self, WireWordError> {
                match text {
                    $(stringify!($variant) => Ok($name::$variant),)*
                    _ => Err(WireWordError { given: quote_untrusted(text), what: $what, words: &[$(stringify!($variant)),*] }),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
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
    /// The Original; exactly one Archive holds it.
    Original
    /// A copy.
    Copy
    /// Removed; only the tombstone remains.
    Deleted
}

/// Not one of the standard's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a valid {what}: use one of {}", words.join(", "))]
pub struct WireWordError {
    given: String,
    what: &'static str,
    words: &'static [&'static str],
}
