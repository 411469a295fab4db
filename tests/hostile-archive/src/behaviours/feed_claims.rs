//! Feeds that are well formed and claim what other Archives have (4.4, R1, R2, R4).

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, FeedAnswers, HostileAct::*, HostileBehaviour};
use crate::feed::{FeedRecord, json_text};

pub const FEED_CLAIMS: &[HostileBehaviour] = &[
    behaviour(
        "feed-originals",
        Feed,
        "4.4 R2",
        "claims the Original of everything, and contradicts itself when it is asked",
        Feeds(FeedAnswers::Empty, |asked| asked.once(&asked.claims(|record| record))),
    ),
    behaviour(
        "feed-originals-and-answers",
        Varies,
        "4.4 R2",
        "claims the Original of everything, also when it is asked",
        Feeds(FeedAnswers::Originals, |asked| asked.once(&asked.claims(|record| record))),
    ),
    behaviour(
        "feed-empty-and-answers",
        Varies,
        "4.4 R2",
        "its feed has nothing, and its answers claim the Original of everything",
        Feeds(FeedAnswers::Originals, |asked| asked.once(&[asked.own_item()])),
    ),
    behaviour(
        "feed-forged-copies",
        Feed,
        "4.4",
        "copies of everything, of versions that no Original had",
        Feeds(FeedAnswers::Empty, |asked| {
            asked.once(&asked.claims(|record| FeedRecord { state: "Copy", ..record }))
        }),
    ),
    behaviour(
        "feed-copies-without-digests",
        Feed,
        "4.4",
        "copies of everything, of versions that it does not name",
        Feeds(FeedAnswers::Empty, |asked| {
            let copy = |record| FeedRecord { state: "Copy", more: String::new(), ..record };
            asked.once(&asked.claims(copy))
        }),
    ),
    behaviour(
        "feed-earlier-epoch",
        Feed,
        "4.4",
        "Originals of epoch 0",
        Feeds(FeedAnswers::Empty, |asked| {
            asked.once(&asked.claims(|record| FeedRecord { epoch: "0".to_owned(), ..record }))
        }),
    ),
    behaviour(
        "feed-later-epoch",
        Feed,
        "4.4",
        "Originals of the last epoch that there is",
        Feeds(FeedAnswers::Empty, |asked| {
            asked.once(&asked.claims(|record| FeedRecord { epoch: u64::MAX.to_string(), ..record }))
        }),
    ),
    behaviour(
        "feed-tombstones",
        Feed,
        "4.3 4.4",
        "says that everything was removed",
        Feeds(FeedAnswers::Empty, |asked| {
            asked.once(&asked.claims(|record| FeedRecord { state: "Deleted", ..record }))
        }),
    ),
    behaviour(
        "feed-aliases-of-others",
        Feed,
        "4.4 R4",
        "an item of its own, for which the labels of others are aliases",
        Feeds(FeedAnswers::Empty, |asked| {
            let aliases = asked.me.claimed_labels().into_iter().map(str::to_owned).collect();
            asked.once(&[FeedRecord { aliases, ..FeedRecord::new(&asked.me.own_label(1)) }.text()])
        }),
    ),
    behaviour(
        "feed-metadata-of-others",
        Feed,
        "4.4 R4",
        "an item of its own, whose metadata have the labels of others",
        Feeds(FeedAnswers::Empty, |asked| {
            let metadata = asked.me.claimed_labels().into_iter().map(str::to_owned).collect();
            asked.once(&[FeedRecord { metadata, ..FeedRecord::new(&asked.me.own_label(1)) }.text()])
        }),
    ),
    behaviour(
        "feed-labels-of-others",
        Feed,
        "4.4 R4",
        "an item of its own, which also has the labels of others",
        Feeds(FeedAnswers::Empty, |asked| {
            let own = asked.me.own_label(1);
            let others = asked.me.claimed_labels().into_iter().map(str::to_owned);
            let labels = [own.clone()].into_iter().chain(others).collect();
            asked.once(&[FeedRecord { labels, ..FeedRecord::new(&own) }.text()])
        }),
    ),
    behaviour(
        "feed-other-spellings",
        Feed,
        "1.3 4.4",
        "the labels of others in other spellings, as Originals",
        Feeds(FeedAnswers::Empty, |asked| {
            let spelled = |label: &str| [label.to_ascii_uppercase(), label.replace("/archive/", "/ARCHIVE/")];
            let labels = asked.me.claimed_labels().into_iter().flat_map(spelled);
            let mut records: Vec<String> = labels.map(|label| FeedRecord::new(&label).text()).collect();
            records.push(asked.own_item());
            asked.once(&records)
        }),
    ),
    behaviour(
        "feed-next-editions",
        Feed,
        "2.4 4.4",
        "copies of everything, each with a next edition of its own",
        Feeds(FeedAnswers::Empty, |asked| {
            let next = json_text(&asked.me.own_label(1));
            let more = format!("\"next_edition\":[{next}],");
            asked.once(&asked.claims(|record| FeedRecord { state: "Copy", more: more.clone(), ..record }))
        }),
    ),
    behaviour(
        "feed-next-editions-of-originals",
        Feed,
        "2.4 4.4",
        "Originals of everything, each with a next edition of its own",
        Feeds(FeedAnswers::Empty, |asked| {
            let more = format!("\"next_edition\":[{}],", json_text(&asked.me.own_label(1)));
            asked.once(&asked.claims(|record| FeedRecord { more: more.clone(), ..record }))
        }),
    ),
    behaviour(
        "feed-translations",
        Feed,
        "2.4 4.4",
        "copies of everything, each with translations of its own into every language that is asked for",
        Feeds(FeedAnswers::Empty, |asked| {
            let own = json_text(&asked.me.own_label(1));
            let translation = |language| format!("{{\"language\":\"{language}\",\"labels\":[{own}]}}");
            let all = ["pt", "pt-BR", "en", "fr"].map(translation).join(",");
            let more = format!("\"translations\":[{all}],\"language\":\"de\",");
            asked.once(&asked.claims(|record| FeedRecord { state: "Copy", more: more.clone(), ..record }))
        }),
    ),
    behaviour(
        "feed-loop-of-editions",
        Varies,
        "4.2 4.4 R10",
        "Originals of everything, each the next edition of the one before, and the first of the last",
        Feeds(FeedAnswers::Empty, |asked| {
            let labels = asked.me.claimed_labels();
            let next = |at: usize| json_text(labels[(at + 1) % labels.len()]);
            let record = |(at, label): (usize, &&str)| {
                let more = format!("\"next_edition\":[{}],", next(at));
                FeedRecord { more, ..FeedRecord::new(label) }.text()
            };
            asked.once(&labels.iter().enumerate().map(record).collect::<Vec<_>>())
        }),
    ),
    behaviour(
        "feed-items-to-be-asked-about",
        Varies,
        "4.4",
        "Originals of everything, about which it has to be asked, and is then silent",
        Feeds(FeedAnswers::None, |asked| {
            let more = "\"ask\":true,".to_owned();
            asked.once(&asked.claims(|record| FeedRecord { more: more.clone(), ..record }))
        }),
    ),
];
