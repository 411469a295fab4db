//! What was counted of an item, as the API and the command tell it.

use ibi_protocol::ContentType;
use ibi_store::records::Role;
use ibi_store::service::Counted;
use serde::Serialize;

use crate::archive::Holding;
use crate::item::Labels;
use crate::service::What;

/// How often an item was asked for, or its metadata: in all, and by day.
#[derive(Debug, Serialize)]
pub struct Counts<'a> {
    item: &'a str,
    contenttype: &'static str,
    totals: Totals,
    /// In order.
    pub days: Vec<Day>,
}

#[derive(Debug, Serialize)]
struct Totals {
    resolutions: Total,
    views: Total,
    downloads: Total,
}

#[derive(Debug, Serialize)]
struct Total {
    people: u64,
    robots: u64,
}

/// So many times on one day.
#[derive(Debug, Serialize)]
pub struct Day {
    /// The day, in UTC.
    pub day: String,
    /// What was done.
    pub what: String,
    /// Whether by robots.
    pub robots: bool,
    /// How often.
    pub times: u64,
}

impl<'a> Counts<'a> {
    /// Of an item, or of its metadata, by the label of either (clause 3.5).
    pub fn new(item: &'a str, kind: ContentType, counted: Vec<Counted>) -> Self {
        let total = |what: What| {
            let of = |robots: bool| {
                let counted =
                    counted.iter().filter(|count| count.what == what.name() && count.robots == robots);
                counted.map(|count| count.times).sum()
            };
            Total { people: of(false), robots: of(true) }
        };
        let totals = Totals {
            resolutions: total(What::Resolution),
            views: total(What::View),
            downloads: total(What::Download),
        };
        let day = |count: Counted| Day {
            day: count.day,
            what: count.what,
            robots: count.robots,
            times: count.times,
        };
        Self { item, contenttype: kind.as_str(), totals, days: counted.into_iter().map(day).collect() }
    }
}

/// Whose figures a label stands for: the item's, or those of its metadata.
pub fn counted_as(holding: &Holding, role: Role) -> (&Labels, ContentType) {
    match role {
        Role::Item | Role::Alias => (&holding.item.labels, ContentType::Data),
        Role::Metadata => (&holding.item.metadata, ContentType::Metadata),
    }
}
