//! Warnings about input that is accepted but may be a mistake: dates that no program parses, links
//! to items that are not here.

use crate::ArchiveError;
use crate::access::CalendarDate;
use crate::archive::{HeldItem, Holdings};
use crate::dublin_core::{DublinCore, Element};
use crate::item::ItemDescription;

/// Limit on warnings per item.
const MAX_ITEM_WARNINGS: usize = 20;

impl Holdings {
    /// The warnings about an item. None of them rejects it.
    pub fn warnings(&self, holding: &HeldItem) -> Result<Vec<String>, ArchiveError> {
        self.load_long_metadata(holding)?;
        let ItemDescription { translation_of, next_edition_of, .. } = &holding.item;
        self.warnings_of(&holding.metadata, [translation_of.as_deref(), next_edition_of.as_deref()])
    }

    /// The warnings about metadata and links: what the item is a translation and the next edition
    /// of.
    pub fn warnings_of(
        &self,
        metadata: &DublinCore,
        links: [Option<&str>; 2],
    ) -> Result<Vec<String>, ArchiveError> {
        let dates = metadata.of(Element::Date).map(|date| date.value()).filter(|date| !is_date(date));
        let mut warnings: Vec<String> = dates.take(MAX_ITEM_WARNINGS).map(date_warning).collect();
        for (what, to) in ["a translation", "the next edition"].into_iter().zip(links) {
            let Some(to) = to else { continue };
            match self.find_bare(to) {
                Ok(_) => {}
                Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. }) => warnings.push(format!(
                    "it is {what} of {to}, which is not in this Archive. Check the label if it should be here"
                )),
                Err(error) => return Err(error),
            }
        }
        Ok(warnings)
    }
}

fn date_warning(text: &str) -> String {
    const MAX_QUOTED_DATE_CHARS: usize = 40;
    let shown: String = text.chars().take(MAX_QUOTED_DATE_CHARS).collect();
    format!("`{}` is not a date: use 2009, 2009-02 or 2009-02-16", shown.escape_debug())
}

/// Whether a text is a date or a time by the W3C's note, or two of them with a `/` between.
fn is_date(text: &str) -> bool {
    match text.trim().split_once('/') {
        Some((from, to)) => is_one_date(from) && is_one_date(to),
        None => is_one_date(text.trim()),
    }
}

fn is_one_date(text: &str) -> bool {
    let (day, time) = text.split_once('T').map_or((text, None), |(day, time)| (day, Some(time)));
    let is_year = |text: &str| has_form(text, "0000");
    let is_day = match day.len() {
        4 => is_year(day),
        7 => format!("{day}-01").parse::<CalendarDate>().is_ok(),
        _ => has_form(day, "0000-00-00") && day.parse::<CalendarDate>().is_ok(),
    };
    is_day && time.is_none_or(|time| day.len() == 10 && is_time(time))
}

/// A time with its zone: `17:46Z`, `17:46:05.5-03:00`.
fn is_time(text: &str) -> bool {
    let at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(at);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_clock = has_form(time, "00:00:00") || (has_form(time, "00:00") && !text.contains('.'));
    let is_zone = zone == "Z" || has_form(zone.get(1..).unwrap_or_default(), "00:00");
    let numbers: Vec<u32> = time.split(':').filter_map(|number| number.parse().ok()).collect();
    let is_in_day = numbers.iter().zip([23, 59, 60]).all(|(number, most)| *number <= most);
    is_clock && is_zone && is_in_day && !fraction.is_empty() && fraction.bytes().all(|c| c.is_ascii_digit())
}

/// Whether a text has digits where this one has `0`, and else the same.
fn has_form(text: &str, form: &str) -> bool {
    let same = |(c, form): (u8, u8)| if form == b'0' { c.is_ascii_digit() } else { c == form };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_w3cs_note() {
        for date in [
            "2009",
            "2009-02",
            "2009-02-16",
            "2008-02-29",
            "2009-02-16T17:46Z",
            "2009-02-16T17:46:05-03:00",
            "2009-02-16T17:46:05.25Z",
            "2009/2010-01",
        ] {
            assert!(is_date(date), "{date}");
        }
        for other in [
            "banana",
            "",
            "16/02/2009",
            "2009-13",
            "2009-02-30",
            "2009-2-1",
            "c. 1900",
            "2009T17:46Z",
            "2009-02-16T25:00Z",
            "2009-02-16T17:46",
            "2009-02-16T17:46.5Z",
            "2009-02-16 17:46",
            "áé",
        ] {
            assert!(!is_date(other), "{other}");
        }
    }
}
