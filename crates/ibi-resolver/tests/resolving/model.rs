//! The resolver compared with a slow one, written from the letter of 4.2: everything is decided
//! anew, from all that was said, whenever anybody says anything.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ibi_protocol::analysis::{
    AcceptedLanguages, AnswerExpectation as Checked, ArchiveId, ArchiveReply, RoundAnswer, RoundDecision,
    RoundPurpose, RoundQuery, check, decide,
};
use ibi_protocol::{Pairs, PairsLimits, PersistentUrl, Relation, UrlRequest, WireRequest};
use ibi_resolver::{
    ArchiveDirectory, ArchivePlatform, ArchiveTransport, ArchiveTransportError, RaisedAlert,
    RegisteredArchive, RegistrationStatus, ResolutionOutcome, ResolutionRequest, Resolver,
};
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

/// The last one has the prefix of the first Archive.
const ITEMS: [&str; 3] =
    ["a.br/b/2009/02.16.17.46", "a.br/b/2010/02.16.17.46", "n0.br/archive/2011/02.16.17.46"];

/// Archives that say something else to each question, and each time, but the same in each play.
struct Fickle {
    seed: u64,
    archives: Arc<[Arc<RegisteredArchive>]>,
    times: Mutex<HashMap<(u64, String), u64>>,
}

/// What comes, after how many milliseconds: a body, a failure or nothing ever.
type Reply = (u64, Option<Result<String, ArchiveTransportError>>);

impl Fickle {
    fn new(seed: u64, count: u64) -> Arc<Self> {
        let archive = |number: u64| {
            Arc::new(RegisteredArchive {
                id: ArchiveId(number),
                service: format!("n{number}.br/archive/2001/01.01.01.01").parse().unwrap(),
                address: Some(format!("n{number}.br")),
                hosts: Vec::new(),
                standing: if (seed + number).is_multiple_of(11) {
                    RegistrationStatus::OffLine
                } else {
                    RegistrationStatus::OnLine
                },
                registered: 0,
                changed: 0,
                email: None,
                platform: ArchivePlatform::default(),
            })
        };
        let archives: Vec<_> = (0..count).map(archive).collect();
        Arc::new(Self { seed, archives: archives.into(), times: Mutex::default() })
    }

    fn reply(&self, number: u64, label: &str, relation: &Relation) -> Reply {
        let question = format!("{label}{relation}");
        let mut times = self.times.lock().unwrap();
        let time = times.entry((number, question.clone())).or_default();
        *time += 1;
        let mut hasher = DefaultHasher::new();
        (self.seed, number, question, *time).hash(&mut hasher);
        let chance = hasher.finish();
        let other = ITEMS[(chance >> 8) as usize % ITEMS.len()];
        let url = |relation: &Relation, state: &str| {
            format!("url{relation} http://n{number}.br/{chance} state{relation} {state}")
        };
        let leading = relation.leading().next().unwrap_or_default();
        let language = relation.to_string().replace(".translation", ".translation(pt)").parse();
        let said = match (chance >> 16) % 12 {
            0 | 1 => return (chance % 200 * 16 + number + 1, Some(Ok(String::new()))),
            2 => {
                return (
                    chance % 60 * 16 + number + 1,
                    Some(Err(ArchiveTransportError("closed".to_owned()))),
                );
            }
            3 => return (1, None),
            4 => "state Deleted timestamp 2020".to_owned(),
            5 => format!("ibi.nextedition {{rep {other}}}"),
            6 => format!("ibi{relation} {{rep {other}}}"),
            7 => format!("ibi{leading} {{rep {other}}} ibi.lastedition {{rep {label}}}"),
            8 => url(relation, "Copy"),
            9 => url(&language.unwrap_or_default(), "Original"),
            10 => format!("ibi.lastedition {{rep {label}}} {}", url(relation, "Original")),
            _ => url(relation, "Original"),
        };
        let service = &self.archives[number as usize].service;
        let body = format!("ibi {{rep {label}}} ibi.archiveservice {{rep {service}}} {said}");
        (chance % 30 * 16 + number + 1, Some(Ok(body)))
    }
}

impl ArchiveTransport for Fickle {
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        let WireRequest::Url(UrlRequest { ibi, verbs, .. }) = WireRequest::parse(query).unwrap() else {
            panic!()
        };
        let (after, reply) = self.reply(archive.id.0, &ibi, &verbs.relation);
        async move {
            sleep(Duration::from_millis(after)).await;
            match reply {
                Some(reply) => reply.map(Bytes::from),
                None => std::future::pending().await,
            }
        }
    }
}

impl ArchiveDirectory for Fickle {
    fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
        Arc::clone(&self.archives)
    }

    fn record_alert(&self, _suspected: &RaisedAlert, _now: i64) {}
}

/// The slow one: what follows, and when.
fn slowly(fickle: &Fickle, mut wanted: RoundQuery) -> (RoundDecision, u64) {
    let mut now = 0;
    loop {
        let deadline = 10_000.min(now + 2000);
        let mut arrived: Vec<RoundAnswer> = Vec::new();
        let is_online = |archive: &&Arc<RegisteredArchive>| archive.standing == RegistrationStatus::OnLine;
        for archive in fickle.archives.iter().filter(|archive| !is_online(archive)) {
            let said = ArchiveReply::Failed("offline".to_owned());
            arrived.push(RoundAnswer { archive: archive.id, said });
        }
        let (label, relation) = (wanted.label.clone(), wanted.verbs.relation.clone());
        let asked = |archive: &Arc<RegisteredArchive>, now: u64| {
            let (after, reply) = fickle.reply(archive.id.0, label.spelling(), &relation);
            (now + after, Arc::clone(archive), reply)
        };
        // 4.4: those with the label's own prefix are asked first, the others 50 ms later, or when
        // these have answered without a decision.
        let is_ordered = wanted.purpose == RoundPurpose::Find && !wanted.original;
        let (likely, mut held): (Vec<_>, Vec<_>) =
            fickle.archives.iter().filter(is_online).partition(|archive| {
                is_ordered && wanted.label.shares_prefix(&archive.service) == Some(true)
            });
        let head_start = now + 50;
        let first = if likely.is_empty() { std::mem::take(&mut held) } else { likely };
        let mut replies: Vec<_> = first.into_iter().map(|archive| asked(archive, now)).collect();
        let mut grace = None;
        let decision = loop {
            let is_late = now >= deadline;
            for (when, archive, reply) in &replies {
                let said = match reply {
                    Some(reply) if *when == now => said(reply, archive, &wanted),
                    _ => continue,
                };
                arrived.push(RoundAnswer { archive: archive.id, said });
            }
            let came =
                |id: ArchiveId, arrived: &[RoundAnswer]| arrived.iter().any(|answer| answer.archive == id);
            let mut all = arrived.clone();
            for archive in fickle.archives.iter().filter(|archive| !came(archive.id, &arrived)) {
                let has_own_prefix = wanted.label.shares_prefix(&archive.service) == Some(true);
                let said = match is_late {
                    true => ArchiveReply::Failed("late".to_owned()),
                    false => ArchiveReply::Waiting { has_own_prefix },
                };
                all.push(RoundAnswer { archive: archive.id, said });
            }
            wanted.grace_over = grace.is_some_and(|grace| now >= grace);
            match decide(&all, &wanted) {
                RoundDecision::Wait => {}
                decision => break decision,
            }
            let over = RoundQuery { grace_over: true, ..wanted.clone() };
            let is_offered = arrived.iter().any(|answer| matches!(answer.said, ArchiveReply::Offered(_)));
            if grace.is_none() && is_offered && decide(&all, &over) != RoundDecision::Wait {
                grace = Some(now + 150);
            }
            let is_quiet = replies.iter().all(|(_, archive, _)| came(archive.id, &arrived));
            if is_offered || is_quiet || now >= head_start {
                replies.extend(held.drain(..).map(|archive| asked(archive, now)));
            }
            let head_start = (!held.is_empty()).then_some(head_start);
            // Nothing happens in between.
            let next = replies.iter().filter(|(.., reply)| reply.is_some()).map(|(when, ..)| *when);
            now = next
                .chain(grace)
                .chain(head_start)
                .chain([deadline])
                .filter(|when| *when > now)
                .min()
                .unwrap();
        };
        match decision {
            RoundDecision::AskAgain(again) => wanted = wanted.next(&again),
            decision => return (decision, now),
        }
    }
}

fn said(
    reply: &Result<String, ArchiveTransportError>,
    archive: &RegisteredArchive,
    wanted: &RoundQuery,
) -> ArchiveReply {
    let body = match reply {
        Ok(body) => body,
        Err(ArchiveTransportError(why)) => return ArchiveReply::Failed(why.clone()),
    };
    let pairs = Pairs::read(body.as_bytes(), &PairsLimits::default()).unwrap();
    let (label, verbs, service) = (&wanted.label, &wanted.verbs, &archive.service);
    ArchiveReply::from(check(&pairs, &Checked { label, verbs, service, hosts: &archive.url_hosts() }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn the_resolver_does_what_the_slow_one_does(
        seed in any::<u32>(),
        count in 1..5_u64,
        modifiers in prop::sample::select(vec!["", "", "!", "!:", "+", "+:", ":", "!+", "+!:", ":+", "+(pt)", ":(x)"]),
        reading in prop::sample::select(vec!["", "pt", "en", "pt-BR,en;q=0.5"]),
        original in any::<bool>(),
    ) {
        let query = original.then_some("ibiurl.requireditemstatus=Original");
        let url = PersistentUrl::parse(&format!("/{}{modifiers}", ITEMS[seed as usize % ITEMS.len()]), query).unwrap();
        let languages = AcceptedLanguages::parse(reading);
        let slow = slowly(&Fickle::new(seed.into(), count), RoundQuery::of(&url, languages.clone()));
        let fickle = Fickle::new(seed.into(), count);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let (outcome, waited) = runtime.block_on(async {
            let resolver = Resolver::new(Arc::clone(&fickle), fickle, Arc::new(|| 0));
            let began = Instant::now();
            let client = vec!["::1".parse().unwrap()];
            let asked = ResolutionRequest { url, persistent: String::new(), languages, client, explain: false, robot: false, fresh: false, goes: true };
            (resolver.resolve(asked).await.outcome, began.elapsed().as_millis())
        });
        prop_assert_eq!(Some(outcome.status()), slow.0.status());
        prop_assert_eq!(waited, u128::from(slow.1));
        match (outcome, slow.0) {
            (ResolutionOutcome::Found { location, .. }, RoundDecision::Found(found)) => prop_assert_eq!(location, found.url),
            (ResolutionOutcome::NotFound(not_found), RoundDecision::NotFound(slow)) => prop_assert_eq!(not_found, slow),
            (ResolutionOutcome::Cycle { chain, .. }, RoundDecision::Cycle { chain: slow, .. }) => prop_assert_eq!(chain, slow),
            _ => {}
        }
    }
}
