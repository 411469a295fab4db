//! Feeds whose pages are too large, or cannot be read (4.4, R6). Questions are answered with
//! nothing.

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, FeedAnswers, HostileAct::*, HostileBehaviour};
use crate::feed::{FeedRecord, json};

/// Nearly as large as the largest page that a resolver reads.
const LARGE_PAGE_BYTES: usize = 30 << 20;

pub const FEED_BODIES: &[HostileBehaviour] = &[
    behaviour(
        "feed-cut-json",
        Nothing,
        "4.4 R16",
        "a page whose JSON ends in the middle of its claims",
        Feeds(FeedAnswers::Empty, |asked| {
            let page = asked.page("1-1", "", &asked.claims(|record| record));
            let body = String::from_utf8_lossy(&page).into_owned();
            let body = body.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            json(&body[..body.len() / 2])
        }),
    ),
    behaviour(
        "feed-nested",
        Nothing,
        "4.4 R6",
        "lists in lists, 10 million deep",
        Feeds(FeedAnswers::Empty, |_| json(&"[".repeat(10 << 20))),
    ),
    behaviour(
        "feed-nested-member",
        Nothing,
        "4.4 R6",
        "a page with a member that nobody knows, of objects in objects, a million deep",
        Feeds(FeedAnswers::Empty, |asked| {
            let member = format!("\"x\":{}1{},", "{\"a\":".repeat(1_000_000), "}".repeat(1_000_000));
            asked.page("1-1", &member, &[asked.own_item()])
        }),
    ),
    behaviour(
        "feed-wrong-types",
        Nothing,
        "4.4",
        "numbers for texts, and texts for lists",
        Feeds(FeedAnswers::Empty, |asked| {
            let wrong = [
                "null",
                "[]",
                "7",
                "\"page\"",
                "{\"service\":7,\"next\":7,\"more\":\"no\",\"records\":{}}",
                "{\"service\":[],\"next\":\"1\",\"more\":false,\"records\":[null]}",
                "{\"service\":[],\"next\":\"1\",\"more\":false,\"records\":[{\"path\":[]}]}",
                "{\"service\":[],\"next\":\"1\",\"more\":false,\"waited\":-1,\"records\":[]}",
            ];
            json(wrong[asked.number as usize % wrong.len()])
        }),
    ),
    behaviour(
        "feed-wrong-states",
        Nothing,
        "4.4",
        "an item in a state that there is not, in epoch -1",
        Feeds(FeedAnswers::Empty, |asked| {
            let record = |record| FeedRecord { state: "Owner", epoch: "-1".to_owned(), ..record };
            asked.page("1-1", "", &asked.claims(record))
        }),
    ),
    behaviour(
        "feed-no-utf8",
        Nothing,
        "4.4 R9",
        "bytes that are no text",
        Feeds(FeedAnswers::Empty, |_| crate::wire::framed("200 OK", "", &[0xff; 4096])),
    ),
    behaviour(
        "feed-empty-body",
        Nothing,
        "4.4 R16",
        "an empty body",
        Feeds(FeedAnswers::Empty, |_| json("")),
    ),
    behaviour(
        "feed-too-long",
        Nothing,
        "4.4 R6",
        "a page of 64 MiB of spaces",
        Feeds(FeedAnswers::Empty, |_| json(&" ".repeat(64 << 20))),
    ),
    behaviour(
        "feed-empty-texts",
        Nothing,
        "4.4 R6",
        "10 million empty texts in 30 MiB: each costs its reader far more than it costs to send",
        Feeds(FeedAnswers::Empty, |asked| {
            let gone = format!("\"gone\":[{}\"\"],", "\"\",".repeat(LARGE_PAGE_BYTES / 3));
            asked.page(&format!("{}-1", asked.number), &gone, &[])
        }),
    ),
    behaviour(
        "feed-empty-objects",
        Nothing,
        "4.4 R6",
        "2 million translations without labels in 30 MiB",
        Feeds(FeedAnswers::Empty, |asked| {
            let one = "{\"labels\":[]}";
            let many = format!("{one},").repeat(LARGE_PAGE_BYTES / 14);
            let more = format!("\"translations\":[{many}{one}],");
            let record = FeedRecord { more, ..FeedRecord::new(&asked.me.own_label(1)) };
            asked.page(&format!("{}-1", asked.number), "", &[record.text()])
        }),
    ),
    behaviour(
        "feed-huge-labels",
        Nothing,
        "4.4 R6",
        "labels of 1 MiB",
        Feeds(FeedAnswers::Empty, |asked| {
            let long = |label: &str| format!("{label}{}", ".00".repeat(350_000));
            let record = |record: FeedRecord| FeedRecord { labels: vec![long(&record.path)], ..record };
            asked.page("1-1", "", &asked.claims(record))
        }),
    ),
    behaviour(
        "feed-million-aliases",
        Nothing,
        "4.4 R6",
        "an item with 700,000 aliases, in 30 MiB",
        Feeds(FeedAnswers::Empty, |asked| {
            let alias = |number: u64| format!("{}.{:02}", asked.me.own_label(number), number % 60);
            let aliases: Vec<String> = (0..700_000).map(alias).collect();
            let record = FeedRecord { aliases, ..FeedRecord::new(&asked.me.own_label(1)) };
            asked.page("1-1", "", &[record.text()])
        }),
    ),
    behaviour(
        "feed-crowded-label",
        Varies,
        "4.4 R12",
        "100,000 items under one label of another Archive",
        Feeds(FeedAnswers::Empty, |asked| {
            if asked.number > 0 {
                return asked.idle("1-1111111111111111");
            }
            let item = |number: usize| {
                let record = FeedRecord::new(asked.me.claimed_labels()[0]);
                FeedRecord { path: format!("item{number}"), more: String::new(), ..record }.text()
            };
            asked.page("1-1111111111111111", "", &(0..100_000).map(item).collect::<Vec<_>>())
        }),
    ),
    behaviour(
        "feed-crowding-aliases",
        Varies,
        "4.4 R12",
        "items with a thousand times the same alias: a label of another Archive",
        Feeds(FeedAnswers::Empty, |asked| {
            let claimed = asked.me.claimed_labels();
            let item = |number: u64| {
                let aliases = vec![claimed[0].to_owned(); 1000];
                FeedRecord { aliases, ..FeedRecord::new(&asked.me.own_label(number)) }.text()
            };
            asked.once(&(1..200).map(item).collect::<Vec<_>>())
        }),
    ),
    behaviour(
        "feed-large-records",
        Varies,
        "4.4 R6",
        "records of 8 MiB: a time, digests and languages without end",
        Feeds(FeedAnswers::Empty, |asked| {
            let digests = vec!["0"; 1 << 20].join("\",\"");
            let more =
                format!("\"metadata_time\":\"{}\",\"inventories\":[\"{digests}\"],", "2".repeat(4 << 20));
            let record =
                |number| FeedRecord { more: more.clone(), ..FeedRecord::new(&asked.me.own_label(number)) };
            let records = [1, 2, 3].map(|number| record(number + asked.number * 3).text());
            asked.page_before_more(&format!("{}-1", asked.number + 1), &records)
        }),
    ),
    behaviour(
        "feed-many-services",
        Nothing,
        "4.4 R6",
        "a page that names its service 500,000 times",
        Feeds(FeedAnswers::Empty, |asked| {
            let service = format!("\",\"{}", asked.me.service).repeat(500_000);
            let page = asked.page("1-1", "", &[asked.own_item()]);
            let page = String::from_utf8_lossy(&page).into_owned();
            let body = page.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            json(&body.replacen(&asked.me.service, &format!("{}{service}", asked.me.service), 1))
        }),
    ),
];
