//! Feeds whose positions and pages do not follow each other (4.4).

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, FeedAnswers, HostileAct::*, HostileBehaviour};
use crate::feed::{FeedRecord, FeedRequest, json_text};

pub const FEED_SEQUENCES: &[HostileBehaviour] = &[
    behaviour(
        "feed-rewound",
        Feed,
        "4.4",
        "positions go back with every page, and each page has the claims again",
        Feeds(FeedAnswers::Empty, |asked| {
            let next = format!("{}-0123456789abcdef", 1_000_000_u64.saturating_sub(asked.number));
            asked.page(&next, "", &asked.claims(|record| record))
        }),
    ),
    behaviour(
        "feed-gaps",
        Feed,
        "4.4",
        "positions leap ahead to the largest number, and what lies between is never told",
        Feeds(FeedAnswers::Empty, |asked| match asked.number {
            0 => asked.page("9000000000000000000-0123456789abcdef", "", &asked.claims(|record| record)),
            number => asked.idle(&format!("{}-0123456789abcdef", u64::MAX - number)),
        }),
    ),
    behaviour(
        "feed-repeats",
        Feed,
        "4.4",
        "gives the same page again and again, at once",
        Feeds(FeedAnswers::Empty, |asked| {
            asked.page("1-0123456789abcdef", "", &asked.claims(|record| record))
        }),
    ),
    behaviour(
        "feed-wrong-digest",
        Feed,
        "4.4",
        "the digest of the last line changes, its number does not",
        Feeds(FeedAnswers::Empty, |asked| {
            asked.page(&format!("7-{:016x}", asked.number), "", &asked.claims(|record| record))
        }),
    ),
    behaviour(
        "feed-restarts",
        Feed,
        "4.4",
        "voids everything with every page",
        Feeds(FeedAnswers::Empty, |asked| {
            let next = format!("{}-0123456789abcdef", asked.number + 1);
            asked.page(&next, "\"restart\":true,", &asked.claims(|record| record))
        }),
    ),
    behaviour(
        "feed-endless-pages",
        Nothing,
        "4.4 R6",
        "more pages follow, always, each with items that are new",
        Feeds(FeedAnswers::Empty, |asked| {
            let number = asked.number % 40;
            let item = |at: u64| FeedRecord::new(&asked.me.own_label(1 + number * 500 + at)).text();
            let records: Vec<String> = (0..500).map(item).collect();
            asked.page_before_more(&format!("{}-0123456789abcdef", asked.number + 1), &records)
        }),
    ),
    behaviour(
        "feed-endless-empty-pages",
        Nothing,
        "4.4 R6",
        "more pages follow, always, with nothing in them",
        Feeds(FeedAnswers::Empty, |asked| asked.page_before_more(&format!("{}-0", asked.number + 1), &[])),
    ),
    behaviour(
        "feed-huge-position",
        Nothing,
        "4.4 R6",
        "a position of 16 MiB",
        Feeds(FeedAnswers::Empty, |asked| asked.page(&"9".repeat(16 << 20), "", &[asked.own_item()])),
    ),
    behaviour(
        "feed-position-that-is-a-request",
        Varies,
        "4.4 R5",
        "a position with spaces, ends of lines, a fragment and another request in it",
        Feeds(FeedAnswers::Empty, |asked| {
            let next = "0 HTTP/1.1\r\nX-Injected: yes\r\n\r\nGET /@#&limit=1&after=\0";
            asked.page(next, "", &asked.claims(|record| record))
        }),
    ),
    behaviour(
        "feed-hot",
        Feed,
        "4.4 R12",
        "does not wait: nothing is new, at once, as often as it is asked",
        Feeds(FeedAnswers::Empty, |asked| match asked.number {
            0 => asked.once(&[asked.own_item()]),
            _ => asked.page("1-1111111111111111", "", &[]),
        }),
    ),
    behaviour(
        "feed-false-waits",
        Feed,
        "4.4",
        "says that it waited for the longest time, and did not",
        Feeds(FeedAnswers::Empty, |asked| {
            let waited = format!("\"waited\":{},", u64::MAX);
            let records = if asked.number == 0 { asked.claims(|record| record) } else { Vec::new() };
            asked.page("1-1111111111111111", &waited, &records)
        }),
    ),
    behaviour(
        "feed-vanishing",
        Feed,
        "4.4",
        "is current, and its items come and go with every page",
        Feeds(FeedAnswers::Empty, vanishing),
    ),
    behaviour(
        "feed-flipping",
        Feed,
        "4.4",
        "claims everything as Original, Copy, removed and not at all, in turn",
        Feeds(FeedAnswers::Empty, flipping),
    ),
    behaviour(
        "feed-wants-to-be-asked",
        Nothing,
        "4.4",
        "claims everything, wants to be asked about everything, and then has nothing",
        Feeds(FeedAnswers::Empty, |asked| {
            let next = format!("{}-1", asked.number);
            asked.page(&next, "\"ask\":true,", &asked.claims(|record| record))
        }),
    ),
    behaviour(
        "feed-of-another",
        Nothing,
        "4.4 R1",
        "a page in the name of another Archive's service",
        Feeds(FeedAnswers::Empty, |asked| {
            let records = asked.claims(|record| record).join(",");
            asked.page_of(&asked.me.victim_service, "1-1", "false", "", &records)
        }),
    ),
    behaviour(
        "feed-changing-identity",
        Varies,
        "4.4 R1",
        "now its own feed, and now that of another Archive",
        Feeds(FeedAnswers::Empty, |asked| match asked.number % 2 {
            0 => asked.page(&format!("{}-1", asked.number), "", &asked.claims(|record| record)),
            _ => asked.page_of(&asked.me.victim_service, "1-1", "false", "", &asked.own_item()),
        }),
    ),
];

fn vanishing(asked: &FeedRequest<'_>) -> Vec<u8> {
    let next = format!("{}-0123456789abcdef", asked.number + 1);
    if asked.number.is_multiple_of(2) {
        return asked.page(&next, "", &asked.claims(|record| record));
    }
    let paths: Vec<String> = asked.me.claimed_labels().into_iter().map(json_text).collect();
    asked.page(&next, &format!("\"gone\":[{}],", paths.join(",")), &[])
}

fn flipping(asked: &FeedRequest<'_>) -> Vec<u8> {
    if asked.number % 4 == 3 {
        return vanishing(asked);
    }
    let state = ["Original", "Copy", "Deleted"][(asked.number % 4) as usize];
    let next = format!("{}-0123456789abcdef", asked.number + 1);
    asked.page(&next, "", &asked.claims(|record| FeedRecord { state, ..record }))
}
