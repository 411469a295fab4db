//! What was counted of an item, as the API and the command tell it.

use ibi_store::service::Counted;
use serde::Serialize;

use crate::service::What;

/// How often an item was asked for: in all, and by day.
#[derive(Debug, Serialize)]
pub struct Counts<'a> {
    item: &'a str,
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
    /// Of an item, by its label.
    pub fn new(item: &'a str, counted: Vec<Counted>) -> Self {
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
        Self { item, totals, days: counted.into_iter().map(day).collect() }
    }
}
