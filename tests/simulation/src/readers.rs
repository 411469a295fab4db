//! Readers: their requests, what they get, and how often that is counted.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::{ContentType, PersistentUrl, RelationPart};
use ibi_resolver::{ResolutionOutcome, ResolutionRequest};

use crate::judge::{OutcomeJudge, ReaderOutcome, ReaderRequest};
use crate::truth::{KnownState, TimeSpan};
use crate::world::{SimulatedWorld, locked};
use crate::writes::{CONSTANT_FILE, target_file};

/// The languages of items and readers.
pub(crate) const LANGUAGES: [&str; 4] = ["en", "pt", "es", "fr"];

/// The 14 compositions of modifiers (4.1).
const MODIFIERS: [&str; 14] =
    [":", ":+", "!", "!+", "!:", "!+:", "!:+", "!+:+", "+", "+!", "+:", "+!:", "+:+", "+!:+"];

/// How long before a kill a count may be lost: counts are written once a second.
const UNWRITTEN_COUNTS: u64 = 1_100_000;

/// How long an acknowledgment takes, and until the Archive has written it, without faults.
const ACKNOWLEDGMENT_TIME: u64 = 8_000_000;

/// What readers got, as far as it is counted.
#[derive(Debug, Default)]
pub(crate) struct ReaderLog {
    redirects: Vec<LoggedRedirect>,
    /// When the resolver was killed.
    pub(crate) kills: Vec<u64>,
    /// When the clock of an Archive was stepped.
    pub(crate) steps: Vec<(u64, usize)>,
    /// Items that left an Archive: what is reported of them later is not counted there.
    pub(crate) left: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct LoggedRedirect {
    at: u64,
    host: usize,
    item: usize,
    /// Whether the index answered: the resolver reports it.
    is_reported: bool,
    /// Whether it leads along an edition and a translation: the key of such an answer may be for an
    /// item that the Archive does not look for when it is acknowledged.
    is_combined: bool,
}

impl SimulatedWorld {
    /// A reader asks for something.
    pub(crate) fn read(&mut self) {
        let count = self.truth().items.len() as u64;
        // The newest items are asked for most.
        let item = match self.numbers.percent(50) {
            true => count - 1 - self.numbers.below(count.min(6)),
            false => self.numbers.below(count),
        } as usize;
        let mut path = format!("/{}", self.truth().items[item].label);
        let mut query = String::new();
        match self.numbers.below(20) {
            0..=7 => {}
            8..=13 => {
                let modifiers = self.numbers.pick(&MODIFIERS).copied().unwrap_or("");
                for modifier in modifiers.chars() {
                    path.push(modifier);
                    if modifier == '+' && self.numbers.percent(40) {
                        let language = self.numbers.pick(&LANGUAGES).copied().unwrap_or("en");
                        path.push_str(&format!("({language})"));
                    } else if modifier == ':' && self.numbers.percent(30) {
                        path.push_str("(oai_dc)");
                    }
                }
            }
            14 | 15 => {
                let version = self.numbers.range(1, 3) as u32;
                let name = match self.numbers.percent(50) {
                    true => CONSTANT_FILE.to_owned(),
                    false => target_file(item, version),
                };
                path.push_str(&format!("/{name}"));
            }
            16 => query = "ibiurl.verblist=GetFileList".to_owned(),
            17 | 18 => query = "ibiurl.requireditemstatus=Original".to_owned(),
            // A label that nobody ever had.
            _ => {
                let year = self.numbers.range(2000, 2019);
                self.read_unknown(&format!("/a0.sim.test/archive/{year}/01.01.00.00"));
                return;
            }
        }
        let is_fresh = self.numbers.percent(10);
        self.ask(item, &path, &query, is_fresh);
    }

    /// Reads an item when all is well.
    pub(crate) fn read_finally(&mut self, item: usize) {
        let label = self.truth().items[item].label.clone();
        self.ask(item, &format!("/{label}"), "", false);
        self.ask(item, &format!("/{label}"), "ibiurl.requireditemstatus=Original", false);
    }

    fn languages(&mut self) -> Vec<&'static str> {
        let first = self.numbers.below(4) as usize;
        let count = self.numbers.below(3) as usize;
        (0..count).map(|at| LANGUAGES[(first + at) % 4]).collect()
    }

    fn ask(&mut self, item: usize, path: &str, query: &str, is_fresh: bool) {
        let Ok(url) = PersistentUrl::parse(path, Some(query).filter(|query| !query.is_empty())) else {
            self.trace.violation(&format!("{path} is not understood"));
            return;
        };
        let languages = self.languages();
        let request = ReaderRequest { item, url, languages, is_fresh };
        let (trace, truth, log) = (self.trace.clone(), Arc::clone(&self.truth), Arc::clone(&self.log));
        let (resolver, is_alive) = (self.machine.process.resolver.clone(), self.machine.process.is_alive());
        let from = trace.now();
        trace.line(&format!("? {}{}", request.url, if is_fresh { " (fresh)" } else { "" }));
        self.readers.push(tokio::spawn(async move {
            let located = (!is_fresh).then(|| resolver.locate(&request.url, false)).flatten();
            let (outcome, is_reported) = match located {
                Some(location) => {
                    trace.count("outcome: 302 by a lookup");
                    (ReaderOutcome::Redirect(location), true)
                }
                None => {
                    let resolved = resolver.resolve(resolution(&request)).await.outcome;
                    match resolved {
                        ResolutionOutcome::Found { location, found, .. } => {
                            let is_reported = found.urlkey.is_none();
                            trace.count(match is_reported {
                                true => "outcome: 302 by the rules, from the index",
                                false => "outcome: 302 by asking",
                            });
                            (ReaderOutcome::Redirect(location), is_reported)
                        }
                        other => {
                            trace.count(outcome_name(other.status()));
                            (ReaderOutcome::Status(other.status()), false)
                        }
                    }
                }
            };
            if !is_alive.load(Ordering::Acquire) {
                trace.count("outcome: cut off by a restart of the resolver");
                return;
            }
            let asked = TimeSpan { from, to: trace.now() };
            trace.line(&format!("= {} from {from}: {outcome:?}", request.url));
            let truth = locked(&truth);
            if let Err(why) = OutcomeJudge::new(&truth, &request, asked).check(&outcome) {
                trace.violation(&format!("{}: {why}", request.url));
            }
            if let ReaderOutcome::Redirect(location) = &outcome {
                let host = (0..truth.host_count())
                    .find(|number| location.contains(&format!("a{number}.sim.test/col/")));
                let found = truth.items.iter().find(|item| {
                    location.contains(&format!("/col/{}/", item.label))
                        || location.contains(&format!("/col/{}/", item.metadata))
                });
                if let (Some(host), Some(item)) = (host, found) {
                    let (at, item) = (asked.to, item.number);
                    let parts = request.url.verbs.relation.parts();
                    let is_combined = parts.contains(&RelationPart::LastEdition)
                        && parts.iter().any(|part| matches!(part, RelationPart::Translation(_)));
                    let redirect = LoggedRedirect { at, host, item, is_reported, is_combined };
                    locked(&log).redirects.push(redirect);
                }
            }
        }));
    }

    /// A label that nobody has: 404, or 503 if an Archive does not answer.
    fn read_unknown(&mut self, path: &str) {
        let Ok(url) = PersistentUrl::parse(path, None) else { return };
        let request = ReaderRequest { item: 0, url, languages: Vec::new(), is_fresh: false };
        let (trace, truth) = (self.trace.clone(), Arc::clone(&self.truth));
        let (resolver, is_alive) = (self.machine.process.resolver.clone(), self.machine.process.is_alive());
        let from = trace.now();
        trace.line(&format!("? {} (unknown)", request.url));
        self.readers.push(tokio::spawn(async move {
            let status = resolver.resolve(resolution(&request)).await.outcome.status();
            if !is_alive.load(Ordering::Acquire) {
                return;
            }
            let asked = TimeSpan { from, to: trace.now() };
            trace.line(&format!("= {} {status}", request.url));
            trace.count(outcome_name(status));
            let is_disturbed = locked(&truth).is_any_disturbed(asked);
            if status != 404 && !(status == 503 && is_disturbed) {
                trace.violation(&format!("{}: {status} for a label that nobody has", request.url));
            }
        }));
    }

    /// Two Archives that still claim one Original have led to an alert, and no others have.
    pub(crate) fn check_alerts(&self) {
        let (now, truth) = (self.now(), self.truth());
        let alerts = self.machine.directory.alerts();
        let lately = TimeSpan { from: now.saturating_sub(60_000_000), to: now };
        for item in &truth.items {
            let claims =
                |host: &usize| truth.is_throughout(*host, item.number, lately, KnownState::is_original);
            let count = (0..truth.host_count()).filter(claims).count();
            if count > 1 && !alerts.iter().any(|(_, label)| item.has_label(label)) {
                self.trace.violation(&format!("{} has {count} Originals, and there is no alert", item.label));
            }
        }
        for (at, label) in &alerts {
            self.trace.count("outcome: alert");
            let item = truth.items.iter().find(|item| item.has_label(label));
            let span = TimeSpan { from: at.saturating_sub(8_000_000), to: *at };
            if item.is_none_or(|item| truth.claimants(item.number, span).len() < 2) {
                self.trace.violation(&format!("an alert about {label}, which has one Original"));
            }
        }
    }

    /// Each redirect was counted at most once; once, if nothing was killed and no acknowledgment
    /// lost.
    pub(crate) fn check_counts(&self) {
        let (truth, log) = (self.truth(), locked(&self.log));
        let mut bounds: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
        for redirect in &log.redirects {
            let LoggedRedirect { at, host, item, is_reported, is_combined } = *redirect;
            let bound = bounds.entry((host, item)).or_default();
            bound.1 += 1;
            let is_killed = |after: u64| log.kills.iter().any(|kill| (at..at + after).contains(kill));
            let after = TimeSpan { from: at, to: at + ACKNOWLEDGMENT_TIME };
            let is_certain = match is_reported {
                true => !is_killed(UNWRITTEN_COUNTS),
                false => {
                    let is_stepped = |(step, other): &(u64, usize)| {
                        *other == host && (at.saturating_sub(3_000_000)..after.to).contains(step)
                    };
                    !is_combined
                        && !is_killed(3_000_000)
                        && !truth.is_disturbed(host, TimeSpan { from: at.saturating_sub(3_000_000), ..after })
                        && !log.steps.iter().any(is_stepped)
                }
            };
            bound.0 += u64::from(is_certain && !log.left.contains(&(host, item)));
        }
        for ((host, item), (least, most)) in bounds {
            let path = &truth.items[item].label;
            let counted: u64 = [ContentType::Data, ContentType::Metadata]
                .map(|kind| self.hosts[host].counted(path, kind))
                .into_iter()
                .sum();
            if counted > most {
                self.trace
                    .violation(&format!("Archive {host} counted {counted} of {most} redirects to {path}"));
            } else if counted < least {
                self.trace.violation(&format!(
                    "Archive {host} counted {counted} of {most} redirects to {path}, and not at least {least}"
                ));
            }
            if counted > 0 {
                self.trace.count("outcome: redirects counted");
            }
        }
    }
}

fn resolution(request: &ReaderRequest) -> ResolutionRequest {
    ResolutionRequest {
        persistent: format!("http://resolver.sim.test{}", request.url),
        url: request.url.clone(),
        languages: AcceptedLanguages::parse(&weighted(&request.languages)),
        client: vec![IpAddr::from([192, 0, 2, 1])],
        explain: false,
        robot: false,
        fresh: request.is_fresh,
        goes: true,
    }
}

/// `Accept-Language`, the best first.
fn weighted(languages: &[&str]) -> String {
    let each = languages.iter().enumerate().map(|(at, language)| format!("{language};q=0.{}", 9 - at));
    each.collect::<Vec<_>>().join(", ")
}

fn outcome_name(status: u16) -> &'static str {
    match status {
        404 => "outcome: 404",
        409 => "outcome: 409",
        410 => "outcome: 410",
        503 => "outcome: 503",
        _ => "outcome: another status",
    }
}
