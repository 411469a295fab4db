//! Feeds whose paths and names would lead readers elsewhere (R3, R5).

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, FeedAnswers, HostileAct::*, HostileBehaviour};
use crate::feed::{FeedRecord, FeedRequest, json_text, json_texts};

pub const FEED_PATHS: &[HostileBehaviour] = &[
    behaviour(
        "feed-foreign-targets",
        Feed,
        "4.2 R3",
        "files whose names are URLs of another Archive",
        Feeds(FeedAnswers::Empty, |asked| {
            let victim = &asked.me.victim;
            named(
                asked,
                &[
                    format!("http://{victim}/x"),
                    format!("//{victim}/x"),
                    format!("@{victim}/x"),
                    format!("../../../../..//{victim}/x"),
                    format!("\\\\{victim}\\x"),
                    format!("?@{victim}/#//{victim}"),
                ],
            )
        }),
    ),
    behaviour(
        "feed-absolute-paths",
        Feed,
        "4.2 R3",
        "items whose names in the Archive are URLs of another one",
        Feeds(FeedAnswers::Empty, |asked| {
            let url = |label: &str| format!("http://{}/col/{label}/doc/x", asked.me.victim);
            let record = |record: FeedRecord| FeedRecord { path: url(&record.labels[0]), ..record };
            asked.once(&asked.claims(record))
        }),
    ),
    behaviour(
        "feed-header-injection",
        Varies,
        "R5",
        "files whose names end the line of a header",
        Feeds(FeedAnswers::Empty, |asked| {
            let names =
                ["x\r\nX-Injected: yes", "x\nX-Injected: yes", "x\0", "x\u{2028}X-Injected: yes", "x y"];
            named(asked, &names.map(str::to_owned))
        }),
    ),
    behaviour(
        "feed-escaped-injection",
        Feed,
        "R5",
        "the same, percent-encoded",
        Feeds(FeedAnswers::Empty, |asked| {
            let names = ["x%0d%0aX-Injected:%20yes", "x%0aX-Injected:%20yes", "%00", "%e2%80%a8X-Injected"];
            named(asked, &names.map(str::to_owned))
        }),
    ),
    behaviour(
        "feed-injected-paths",
        Feed,
        "R5",
        "items whose names in the Archive have ends of lines in them",
        Feeds(FeedAnswers::Empty, |asked| {
            let path = |label: &str| format!("{label}\r\nX-Injected: yes\r\n\r\n\0");
            let record = |record: FeedRecord| FeedRecord { path: path(&record.path), ..record };
            asked.once(&asked.claims(record))
        }),
    ),
    behaviour(
        "feed-file-lists",
        Varies,
        "R5 W1",
        "lists of files with names that lead up, elsewhere, or end the line of a header",
        Feeds(FeedAnswers::Empty, |asked| {
            let files = ["data/table.csv", "../data/table.csv", "/data/table.csv", "a\r\nX-Injected: yes"];
            let more = format!("\"files\":{},", json_texts(&files.map(str::to_owned)));
            asked.once(&asked.claims(|record| FeedRecord { more: more.clone(), ..record }))
        }),
    ),
    behaviour(
        "feed-targets-elsewhere",
        Feed,
        "4.2 R3",
        "everything is a URL elsewhere, to which it would redirect",
        Feeds(FeedAnswers::Empty, |asked| {
            let record = |record| FeedRecord { target: "\"url\"".to_owned(), ..record };
            asked.once(&asked.claims(record))
        }),
    ),
    behaviour(
        "feed-long-file-names",
        Varies,
        "R3 R6",
        "files with names of 100 KB",
        Feeds(FeedAnswers::Empty, |asked| named(asked, &["x".repeat(100_000)])),
    ),
    behaviour(
        "feed-labels-without-metadata",
        Feed,
        "4.4",
        "items whose targets are their metadata, which have no labels",
        Feeds(FeedAnswers::Empty, |asked| {
            let target = "\"metadata\"".to_owned();
            asked.once(&asked.claims(|record| FeedRecord {
                target: target.clone(),
                metadata: Vec::new(),
                ..record
            }))
        }),
    ),
];

/// Claims of everything, with these names of files, in turn.
fn named(asked: &FeedRequest<'_>, names: &[String]) -> Vec<u8> {
    let target = |name: &String| format!("{{\"file\":{}}}", json_text(name));
    let mut records = vec![asked.own_item()];
    for (label, name) in asked.me.claimed_labels().into_iter().zip(names.iter().cycle()) {
        records.push(FeedRecord { target: target(name), ..FeedRecord::new(label) }.text());
    }
    asked.once(&records)
}
