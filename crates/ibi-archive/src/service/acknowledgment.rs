//! Acknowledgments: a resolver sent a client here (clause 3.5).

use ibi_protocol::{Acknowledgment, ContentType, Relation, RelationPart};
use ibi_store::index::LabelRole;

use crate::archive::Holdings;
use crate::relations;
use crate::service::{AckKeys, Statistics, address};

/// Counts an access if the key is fresh, was issued here for the item that the URL leads to or for
/// a requested translation of it, and was not counted before.
pub fn count_acknowledgment(
    holdings: &Holdings,
    acknowledgment: &Acknowledgment,
    keys: &AckKeys,
    statistics: &Statistics,
    now: i64,
) {
    let urls = [acknowledgment.url.as_sent().to_owned(), acknowledgment.url.decoded()];
    let found = urls.iter().find_map(|url| {
        let (label, _) = address::split_label(url.split_once("/col/")?.1)?;
        holdings.find_bare(label).ok()
    });
    let Some((holding, role)) = found else { return };
    // Data or metadata: both the message and the URL decide (clause 3.5).
    let kind = if role == LabelRole::Metadata { ContentType::Metadata } else { acknowledgment.contenttype };
    let path = holding.path.clone();
    let led = relations::target_of(holding, LabelRole::Item);
    let any = Relation::new(vec![RelationPart::Translation(None)]).unwrap_or_default();
    let group = holdings.relation_offers(&led, &any).map(|offers| offers.whole).unwrap_or_default();
    let asked = group.iter().map(|(_, led)| led.holding.path.as_str());
    if [path.as_str()]
        .into_iter()
        .chain(asked)
        .any(|asked| keys.redeem_key(&acknowledgment.urlkey, now, asked))
    {
        statistics.count_resolution((&path, kind), now);
    }
}
