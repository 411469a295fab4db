//! The statistics of an item, as output by the API and the command.

use ibi_protocol::ContentType;
use ibi_store::index::LabelRole;
use ibi_store::service::UsageCount;
use serde::Serialize;

use crate::archive::HeldItem;
use crate::item::ItemLabels;
use crate::service::StatisticsEvent;

/// Usage of an item or of its metadata: totals, and counts by day.
#[derive(Debug, Serialize)]
pub struct StatisticsReport<'a> {
    item: &'a str,
    contenttype: &'static str,
    totals: StatisticsTotals,
    /// In chronological order.
    pub days: Vec<StatisticsDay>,
}

#[derive(Debug, Serialize)]
struct StatisticsTotals {
    resolutions: StatisticsVisitorTotal,
    views: StatisticsVisitorTotal,
    downloads: StatisticsVisitorTotal,
}

#[derive(Debug, Serialize)]
struct StatisticsVisitorTotal {
    people: u64,
    robots: u64,
}

/// The count of one event on one day.
#[derive(Debug, Serialize)]
pub struct StatisticsDay {
    /// The UTC date.
    pub day: String,
    /// The event.
    pub what: String,
    /// Whether the clients were robots.
    pub robots: bool,
    /// The count.
    pub times: u64,
}

impl<'a> StatisticsReport<'a> {
    /// The report on an item or its metadata, under the label of either (clause 3.5).
    pub fn new(item: &'a str, kind: ContentType, counted: Vec<UsageCount>) -> Self {
        let total = |what: StatisticsEvent| {
            let of = |robots: bool| {
                let counted =
                    counted.iter().filter(|count| count.what == what.name() && count.robots == robots);
                counted.map(|count| count.times).sum()
            };
            StatisticsVisitorTotal { people: of(false), robots: of(true) }
        };
        let totals = StatisticsTotals {
            resolutions: total(StatisticsEvent::Resolution),
            views: total(StatisticsEvent::View),
            downloads: total(StatisticsEvent::Download),
        };
        let day = |count: UsageCount| StatisticsDay {
            day: count.day,
            what: count.what,
            robots: count.robots,
            times: count.times,
        };
        Self { item, contenttype: kind.as_str(), totals, days: counted.into_iter().map(day).collect() }
    }
}

/// Whether a label refers to the statistics of the item or of its metadata.
pub fn statistics_subject(holding: &HeldItem, role: LabelRole) -> (&ItemLabels, ContentType) {
    match role {
        LabelRole::Item | LabelRole::Alias => (&holding.item.labels, ContentType::Data),
        LabelRole::Metadata => (&holding.item.metadata, ContentType::Metadata),
    }
}
