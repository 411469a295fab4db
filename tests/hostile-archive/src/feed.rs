//! The location feed of an Archive (clause 4.4, `docs/formats/location-feed.md`), as text: what a
//! resolver asks, and pages and records that may hold anything.

use std::time::Duration;

use crate::identity::HostileIdentity;
use crate::question::ArchiveQuestion;
use crate::wire::framed;

/// A request of the feed: `GET /api/v1/locations?after=POSITION&limit=N&wait=MILLISECONDS`.
pub struct FeedRequest<'a> {
    pub me: &'a HostileIdentity,
    wait: Duration,
    /// How many requests came before this one.
    pub number: u64,
}

impl<'a> FeedRequest<'a> {
    /// The request, if it is one of the feed.
    pub fn of(question: &ArchiveQuestion<'a>) -> Option<Self> {
        let (path, query) = question.target.split_once('?')?;
        if path != "/api/v1/locations" {
            return None;
        }
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
        };
        let wait = Duration::from_millis(value("wait").parse().unwrap_or(0));
        Some(Self { me: question.me, wait, number: 0 })
    }

    /// A page with these records once, and then what an honest Archive without changes says.
    pub fn once(&self, records: &[String]) -> Vec<u8> {
        match self.number {
            0 => self.page("1-1111111111111111", "", records),
            _ => self.idle("1-1111111111111111"),
        }
    }

    /// A page without changes, after the time that the resolver wants to wait.
    pub fn idle(&self, next: &str) -> Vec<u8> {
        std::thread::sleep(self.wait);
        self.page(next, &format!("\"waited\":{},", self.wait.as_millis()), &[])
    }

    /// A page that is the last one for now, with further members.
    pub fn page(&self, next: &str, members: &str, records: &[String]) -> Vec<u8> {
        self.page_of(&self.me.service, next, "false", members, &records.join(","))
    }

    /// A page after which more follow at once.
    pub fn page_before_more(&self, next: &str, records: &[String]) -> Vec<u8> {
        self.page_of(&self.me.service, next, "true", "", &records.join(","))
    }

    /// A page with any texts.
    pub fn page_of(&self, service: &str, next: &str, more: &str, members: &str, records: &str) -> Vec<u8> {
        let (service, next) = (json_text(service), json_text(next));
        json(&format!(
            "{{\"service\":[{service}],\"next\":{next},\"more\":{more},{members}\"records\":[{records}]}}"
        ))
    }

    /// An item of its own, which shows that the feed was read.
    pub fn own_item(&self) -> String {
        FeedRecord::new(&self.me.own_label(1)).text()
    }

    /// A record for each label that is claimed, and one of its own.
    pub fn claims(&self, record: impl Fn(FeedRecord) -> FeedRecord) -> Vec<String> {
        let claimed = self.me.claimed_labels().into_iter();
        let records = claimed.map(|label| record(FeedRecord::new(label)).text());
        [self.own_item()].into_iter().chain(records).collect()
    }
}

/// A record of the feed. Members hold texts of JSON.
pub struct FeedRecord {
    pub path: String,
    pub labels: Vec<String>,
    pub metadata: Vec<String>,
    pub aliases: Vec<String>,
    pub state: &'static str,
    pub epoch: String,
    pub target: String,
    /// Further members, each followed by a comma.
    pub more: String,
}

impl FeedRecord {
    /// An Original with this label, as an honest Archive reports one.
    pub fn new(label: &str) -> Self {
        Self {
            path: label.to_owned(),
            labels: vec![label.to_owned()],
            metadata: vec![with_more_digits(label)],
            aliases: Vec::new(),
            state: "Original",
            epoch: "1".to_owned(),
            target: "{\"file\":\"lie\"}".to_owned(),
            more: "\"inventories\":[\"00000000000000000000000000000000\"],".to_owned(),
        }
    }

    pub fn text(&self) -> String {
        let Self { path, labels, metadata, aliases, state, epoch, target, more } = self;
        format!(
            "{{\"path\":{},\"labels\":{},\"metadata\":{},\"aliases\":{},\"state\":\"{state}\",\"epoch\":{epoch},\
             \"target\":{target},{more}\"data_time\":\"2020-01-01T00:00:00Z\"}}",
            json_text(path),
            json_texts(labels),
            json_texts(metadata),
            json_texts(aliases),
        )
    }
}

/// Another label with the prefix of this one, a part of a second later.
pub fn with_more_digits(label: &str) -> String {
    match label.rsplit('/').next().unwrap_or_default().matches('.').count() {
        3 => format!("{label}.59"),
        4 => format!("{label}.07"),
        _ => format!("{label}7"),
    }
}

/// A response with a body of JSON.
pub fn json(body: &str) -> Vec<u8> {
    framed("200 OK", "", body.as_bytes())
}

/// A text as JSON.
pub fn json_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..='\x1f' => quoted += &format!("\\u{:04x}", u32::from(character)),
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

pub fn json_texts(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| json_text(text)).collect::<Vec<_>>().join(","))
}
