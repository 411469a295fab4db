//! The first title in metadata as JSON, without making all the others.

use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The first title; empty if there is none.
pub(crate) fn first_title(text: &str) -> String {
    let mut title = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    // It ends with an error as soon as a title is found: nobody needs the rest.
    let _ = reader.deserialize_seq(TitleVisitor(&mut title));
    title.unwrap_or_default()
}

struct TitleVisitor<'a>(&'a mut Option<String>);

impl<'de> Visitor<'de> for TitleVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("statements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(StatementTitle(title)) = list.next_element()? {
            if title.is_some() {
                *self.0 = title;
                return Err(A::Error::custom("found"));
            }
        }
        Ok(())
    }
}

/// The value of a statement, if that is a title.
struct StatementTitle(Option<String>);

impl<'de> Deserialize<'de> for StatementTitle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StatementVisitor)
    }
}

struct StatementVisitor;

impl<'de> Visitor<'de> for StatementVisitor {
    type Value = StatementTitle;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a statement")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StatementTitle, A::Error> {
        let (mut is_title, mut value) = (false, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                // The element is written first.
                "element" => is_title = map.next_value::<String>()? == "title",
                "value" if is_title => value = Some(map.next_value::<String>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(StatementTitle(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dublin_core::{DublinCore, Element};

    #[test]
    fn it_is_the_first_of_all_titles() {
        for text in
            ["title=One", "creator=Ana\ntitle@pt=T\u{ed}tulo \"um\"\ntitle=Two\nsubject=x", "creator=Ana", ""]
        {
            let metadata = DublinCore::parse(text).unwrap();
            let whole = metadata.of(Element::Title).next().map_or("", |title| title.value());
            assert_eq!(first_title(&serde_json::to_string(&metadata).unwrap()), whole, "{text}");
        }
        assert_eq!(first_title("no JSON"), "");
    }
}
