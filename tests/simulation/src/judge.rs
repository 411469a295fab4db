//! Which outcomes the model permits for a request.

use std::collections::BTreeSet;

use ibi_protocol::{PersistentUrl, RelationPart};
use ibi_resolver::location_index::MAX_INDEX_AGE;
use ibi_store::journal::State;

use crate::truth::{KnownState, SimulationTruth, TimeSpan};
use crate::writes::{CONSTANT_FILE, target_file};

/// The longest time after a failure before an Archive is asked again.
const MAX_BREAKER_DELAY_MICROS: u64 = 30_000_000;

/// How long after a fault the resolver may take to follow a feed again: it waits up to a minute
/// between attempts, and half a minute for a response.
const FEED_RECOVERY: u64 = 95_000_000;

/// A request of a reader.
#[derive(Debug, Clone)]
pub(crate) struct ReaderRequest {
    pub(crate) item: usize,
    pub(crate) url: PersistentUrl,
    /// The languages of the reader, the best first.
    pub(crate) languages: Vec<&'static str>,
    pub(crate) is_fresh: bool,
}

/// What a reader got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReaderOutcome {
    Redirect(String),
    Status(u16),
}

/// Something that a request may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequestTarget {
    item: usize,
    is_metadata: bool,
}

#[derive(Debug, Default)]
struct RequestTargets {
    all: BTreeSet<RequestTarget>,
    /// Whether it may lead to nothing.
    may_miss: bool,
    /// Whether a removed item is on the way.
    has_removed: bool,
}

/// Judges an outcome by what was true from shortly before the request until it was answered.
pub(crate) struct OutcomeJudge<'a> {
    truth: &'a SimulationTruth,
    request: &'a ReaderRequest,
    /// From the request to the answer.
    asked: TimeSpan,
    /// What the answer may be based on.
    window: TimeSpan,
}

impl<'a> OutcomeJudge<'a> {
    pub(crate) fn new(truth: &'a SimulationTruth, request: &'a ReaderRequest, asked: TimeSpan) -> Self {
        let bound = MAX_INDEX_AGE.as_micros() as u64;
        let before = TimeSpan { from: asked.from.saturating_sub(bound + 1_000_000), to: asked.to };
        // Who wants what is true now gets it, unless an Archive does not answer in time.
        let is_exact = request.url.original || (request.is_fresh && !truth.is_any_disturbed(before));
        let from = if is_exact { asked.from } else { asked.from.saturating_sub(bound) };
        Self { truth, request, asked, window: TimeSpan { from, to: asked.to } }
    }

    /// The request and the time before it in which a failure still keeps an Archive from being asked.
    fn with_breaker_delay(&self) -> TimeSpan {
        TimeSpan { from: self.asked.from.saturating_sub(MAX_BREAKER_DELAY_MICROS), to: self.asked.to }
    }

    /// Why an outcome is wrong.
    pub(crate) fn check(&self, outcome: &ReaderOutcome) -> Result<(), String> {
        let targets = self.targets();
        match outcome {
            ReaderOutcome::Redirect(location) => self.check_redirect(&targets, location),
            ReaderOutcome::Status(404) => self.check_not_found(&targets),
            ReaderOutcome::Status(409) if self.request.url.original => {
                let is_disputed =
                    |target: &RequestTarget| self.truth.claimants(target.item, self.window).len() > 1;
                match targets.all.iter().any(is_disputed) {
                    true => Ok(()),
                    false => Err("409, but one Archive alone has the Original".to_owned()),
                }
            }
            ReaderOutcome::Status(410) => self.check_removed(&targets),
            ReaderOutcome::Status(503) => match self.truth.is_any_disturbed(self.with_breaker_delay())
                || targets.all.iter().any(|target| self.is_unsettled(target.item))
            {
                true => Ok(()),
                false => Err("503, but every Archive answers".to_owned()),
            },
            ReaderOutcome::Status(status) => Err(format!("{status} is never right here")),
        }
    }

    fn is_reliable(&self, host: usize) -> bool {
        !self.truth.is_disturbed(host, self.window)
    }

    /// Whether another Archive had the Original, and its feed may not be followed again yet: the
    /// resolver then cannot know whether the Original was handed over.
    fn is_unsettled(&self, item: usize) -> bool {
        let ever = TimeSpan { from: 0, to: self.asked.to };
        let lately = TimeSpan { from: self.asked.from.saturating_sub(FEED_RECOVERY), to: self.asked.to };
        let claimants = self.truth.claimants(item, ever);
        claimants.len() > 1 && claimants.iter().any(|&host| self.truth.is_disturbed(host, lately))
    }

    fn hosts(&self) -> std::ops::Range<usize> {
        0..self.truth.host_count()
    }

    /// Whether links are part of the request: items other than the requested one may answer it.
    fn has_links(&self) -> bool {
        let parts = self.request.url.verbs.relation.parts();
        let metadata = parts.iter().position(|part| matches!(part, RelationPart::Metadata(_)));
        metadata.unwrap_or(parts.len()) > 0
    }

    fn check_redirect(&self, targets: &RequestTargets, location: &str) -> Result<(), String> {
        let mut found = None;
        for target in &targets.all {
            for host in self.hosts() {
                if self.locations(host, *target).contains(location) {
                    found = Some((host, *target));
                }
            }
        }
        let Some((host, target)) = found else {
            return Err(format!("a redirect to {location}, which no Archive had as {targets:?}"));
        };
        let claimants = self.truth.claimants(target.item, self.window);
        let holds = |host: &usize| {
            self.truth.is_throughout(*host, target.item, self.window, KnownState::is_original)
                && self.is_reliable(*host)
        };
        if self.request.url.original {
            if !claimants.contains(&host) {
                return Err(format!("a redirect to Archive {host}, which has no Original of it"));
            }
            if claimants.iter().filter(|host| holds(host)).count() > 1 {
                return Err("a redirect, but two Archives claim the Original".to_owned());
            }
        }
        if let [only] = claimants[..]
            && holds(&only)
            && only != host
            && !self.has_links()
            && self.file_name().is_none_or(|name| name == CONSTANT_FILE)
            && !self.is_unsettled(target.item)
        {
            return Err(format!("a redirect to a Copy of Archive {host}: Archive {only} has the Original"));
        }
        Ok(())
    }

    fn check_not_found(&self, targets: &RequestTargets) -> Result<(), String> {
        if targets.may_miss || (targets.has_removed && self.has_links()) {
            return Ok(());
        }
        let is_there = |target: &RequestTarget| match self.request.url.original {
            true => self.hosts().any(|host| {
                self.truth.is_throughout(host, target.item, self.window, KnownState::is_original)
            }),
            false => self.truth.is_always_somewhere(target.item, self.window),
        };
        match targets.all.iter().all(is_there) {
            true => Err(format!("a false 404: {:?} was there all the time", targets.all)),
            false => Ok(()),
        }
    }

    fn check_removed(&self, targets: &RequestTargets) -> Result<(), String> {
        if !targets.has_removed {
            return Err("410, but nothing was removed".to_owned());
        }
        let is_live = |target: &RequestTarget| {
            self.hosts().any(|host| {
                self.truth.is_throughout(host, target.item, self.window, KnownState::is_live)
                    && self.is_reliable(host)
            })
        };
        match !self.has_links() && targets.all.iter().all(is_live) {
            true => Err("410, but an Archive that answers has it".to_owned()),
            false => Ok(()),
        }
    }

    /// The URLs that an Archive may have given for a target.
    fn locations(&self, host: usize, target: RequestTarget) -> BTreeSet<String> {
        let item = &self.truth.items[target.item];
        let mut found = BTreeSet::new();
        for known in self.truth.values(host, target.item, self.window).into_iter().flatten() {
            if !known.is_live() {
                continue;
            }
            for address in self.truth.addresses(host, self.asked) {
                let (data, page) = (
                    format!("http://{address}/col/{}", item.label),
                    format!("http://{address}/col/{}/", item.metadata),
                );
                if target.is_metadata {
                    found.extend([format!("{page}oai_dc"), page]);
                } else if self.request.url.verbs.file_list {
                    found.insert(format!("{data}/files"));
                } else if known.held.is_closed {
                    found.insert(page);
                } else {
                    let own = target_file(target.item, known.held.version);
                    let name = self.file_name().unwrap_or_else(|| own.clone());
                    if name == own || name == CONSTANT_FILE {
                        found.insert(format!("{data}/doc/{name}"));
                    }
                }
            }
        }
        found
    }

    fn file_name(&self) -> Option<String> {
        let file = self.request.url.file.as_ref()?;
        Some(String::from_utf8_lossy(file.as_bytes()).trim_start_matches('/').to_owned())
    }

    /// Everything that the request may lead to, with whatever an Archive told within the window.
    fn targets(&self) -> RequestTargets {
        let mut targets = self.targets_by(false);
        let is_lost = |target: &RequestTarget| !self.truth.is_always_somewhere(target.item, self.window);
        if targets.has_removed || targets.all.iter().any(is_lost) {
            // What ends in nothing, or in a removed item, is followed by the next best (4.2 step 6).
            targets.all.extend(self.targets_by(true).all);
        }
        targets
    }

    /// The same, with every translation that the reader may get, or only the best.
    fn targets_by(&self, with_all: bool) -> RequestTargets {
        let mut targets = RequestTargets::default();
        targets.all.insert(RequestTarget { item: self.request.item, is_metadata: false });
        self.note_removed(&mut targets);
        for part in self.request.url.verbs.relation.parts() {
            let before = std::mem::take(&mut targets.all);
            for target in before {
                match part {
                    RelationPart::Metadata(_) => {
                        targets.all.insert(RequestTarget { is_metadata: true, ..target });
                    }
                    _ if target.is_metadata => {
                        // The metadata of the simulation have values in no language.
                        targets.may_miss |= matches!(part, RelationPart::Translation(Some(_)));
                        targets.all.insert(target);
                    }
                    RelationPart::LastEdition => self.add_last_editions(target.item, &mut targets),
                    RelationPart::Translation(language) => {
                        let wanted = language.map(|language| language.to_string());
                        self.add_translations(target.item, wanted.as_deref(), with_all, &mut targets);
                    }
                }
            }
            self.note_removed(&mut targets);
        }
        // A restored Archive gives links without URLs (2.4).
        targets.may_miss |= self.has_links() && self.truth.is_any_restored(self.window);
        if let Some(name) = self.file_name() {
            let lacks = |target: &RequestTarget| {
                let is_there = |known: &KnownState| {
                    !known.is_live()
                        || name == CONSTANT_FILE
                        || name == target_file(target.item, known.held.version)
                };
                target.is_metadata
                    || self.hosts().any(|host| {
                        self.truth.is_ever(host, target.item, self.window, |known| !is_there(known))
                    })
            };
            targets.may_miss |= targets.all.iter().any(lacks);
        }
        targets
    }

    fn note_removed(&self, targets: &mut RequestTargets) {
        let is_removed = |known: &KnownState| known.held.state == State::Deleted;
        targets.has_removed |= targets.all.iter().any(|target| {
            self.hosts().any(|host| self.truth.is_ever(host, target.item, self.window, is_removed))
        });
    }

    fn add_last_editions(&self, item: usize, targets: &mut RequestTargets) {
        let (mut waiting, mut seen) = (vec![item], BTreeSet::from([item]));
        while let Some(item) = waiting.pop() {
            for next in self.next_editions(item) {
                match next {
                    None => {
                        targets.all.insert(RequestTarget { item, is_metadata: false });
                    }
                    Some(next) if seen.insert(next) => waiting.push(next),
                    Some(_) => {}
                }
            }
            let is_removed = |known: &KnownState| known.held.state == State::Deleted;
            targets.has_removed |=
                self.hosts().any(|host| self.truth.is_ever(host, item, self.window, is_removed));
        }
    }

    /// The next editions that the deciding Archive told: the one with the Original, if it answers.
    fn next_editions(&self, item: usize) -> BTreeSet<Option<usize>> {
        let is_original = KnownState::is_original;
        let decides = |host: &usize| {
            self.truth.is_throughout(*host, item, self.window, is_original) && self.is_reliable(*host)
        };
        let is_decided = self.hosts().any(|host| decides(&host));
        let mut found = BTreeSet::new();
        for host in self.hosts() {
            for known in self.truth.values(host, item, self.window).into_iter().flatten() {
                if !is_decided || known.is_original() {
                    found.insert(known.next);
                }
            }
        }
        if found.is_empty() {
            found.insert(None);
        }
        found
    }

    fn add_translations(
        &self,
        item: usize,
        wanted: Option<&str>,
        with_all: bool,
        targets: &mut RequestTargets,
    ) {
        let group = self.truth.group(item);
        let in_language = |language: &str| {
            group
                .iter()
                .copied()
                .filter(|&member| self.truth.items[member].language == language)
                .collect::<Vec<_>>()
        };
        let target = |item| RequestTarget { item, is_metadata: false };
        if let Some(wanted) = wanted {
            let members = in_language(wanted);
            targets.may_miss |= !members.iter().any(|&member| self.is_certain_member(item, member));
            targets.all.extend(members.into_iter().map(target));
            return;
        }
        for language in &self.request.languages {
            let members = in_language(language);
            targets.all.extend(members.iter().copied().map(target));
            if !with_all && members.iter().any(|&member| self.is_certain_member(item, member)) {
                return;
            }
        }
        targets.all.insert(target(item));
    }

    /// Whether one Archive that answers has an item, its translation and the root of the group, and
    /// decides about all three.
    fn is_certain_member(&self, item: usize, member: usize) -> bool {
        let root = self.truth.items[item].translation_of.unwrap_or(item);
        self.hosts().any(|host| {
            self.is_reliable(host)
                && [item, root, member].into_iter().all(|item| {
                    self.truth.is_throughout(host, item, self.window, KnownState::is_original)
                        && self.truth.claimants(item, self.window).len() == 1
                })
        })
    }
}
