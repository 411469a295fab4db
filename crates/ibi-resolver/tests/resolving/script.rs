//! Scenarios as they are written: see `tests/scenarios/README.md`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ibi_protocol::Relation;
use ibi_resolver::RegistrationStatus;

/// How long an Archive takes to answer, unless it is said.
const USUAL: Duration = Duration::from_millis(10);

pub(crate) struct Scenario {
    /// Where it begins: file and line.
    pub(crate) place: String,
    pub(crate) title: String,
    /// Each with its place.
    pub(crate) steps: Vec<(String, Step)>,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// An Archive comes to be known, or changes.
    Archive { name: String, standing: RegistrationStatus, address: String, also: Vec<String> },
    /// It never says anything, or always fails like that.
    Always { name: String, reaction: Reaction },
    /// What it says to a question: the first time, or when it is asked again.
    Answers { name: String, question: String, after: Duration, reaction: Reaction },
    /// A client asks.
    Asks { url: String, reading: String, from: Vec<IpAddr> },
    /// Time passes.
    Passes(Duration),
    /// Something must be so.
    Expect(Expectation),
}

#[derive(Debug, Clone)]
pub(crate) enum Reaction {
    Nothing,
    Hangs,
    Fails(String),
    Raw(String),
    Bytes(usize),
    Says(Vec<Said>),
}

/// A part of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    Known,
    Relation {
        modifiers: String,
        ibi: Option<String>,
        held: Option<Held>,
    },
    NextEdition(String),
    /// Of what these modifiers lead to.
    NextEditionOf(String, String),
    Reserved,
    Several(Vec<String>),
    KnownAs(String),
    Alias(String),
    InTheNameOf(String),
    WithoutKey,
    Removed(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) state: String,
    pub(crate) contenttype: Option<String>,
    pub(crate) url: String,
}

#[derive(Debug)]
pub(crate) enum Expectation {
    /// The last client gets this.
    Gets(String),
    Waited(Duration),
    WasAsked {
        name: String,
        questions: Vec<String>,
    },
    /// Who got acknowledgments of which URLs, all in all.
    Acknowledged(Vec<(String, String)>),
    Alerts(Vec<String>),
    Explained(String),
}

/// Reads a file of scenarios.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Scenario>, String> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut items = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let place = format!("{file}:{number}");
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix("== ") {
            items.clear();
            scenarios.push(Scenario { place, title: title.to_owned(), steps: Vec::new() });
            continue;
        }
        let wrong = |why: String| format!("{place}: {why}");
        let scenario =
            scenarios.last_mut().ok_or_else(|| wrong("no scenario has begun: `== title`".to_owned()))?;
        if let Some((name, label)) = line.strip_prefix("item ").and_then(|rest| rest.split_once(": ")) {
            label.parse::<ibi_id::Label>().map_err(|why| wrong(format!("{label}: {why}")))?;
            items.insert(format!("<{name}>"), label.to_owned());
            continue;
        }
        let line = items.iter().fold(line.to_owned(), |line, (name, label)| line.replace(name, label));
        let step = step(&line).map_err(wrong)?;
        scenario.steps.push((place, step));
    }
    for Scenario { place, steps, .. } in &scenarios {
        if !steps.iter().any(|(_, step)| matches!(step, Step::Expect(_))) {
            return Err(format!("{place}: the scenario says nothing that must be so"));
        }
    }
    Ok(scenarios)
}

fn step(line: &str) -> Result<Step, String> {
    let unknown = || format!("not understood: `{line}`");
    if let Some(open) = line.find('<') {
        return Err(format!("no such item: `{}`", &line[open..]));
    }
    if let Some(rest) = line.strip_prefix("archive ") {
        return archive(rest).ok_or_else(unknown);
    }
    if let Some(rest) = line.strip_prefix("the client asks ") {
        return asks(rest).ok_or_else(unknown);
    }
    if let Some(rest) = line.strip_suffix(" pass") {
        return Ok(Step::Passes(duration(rest).ok_or_else(unknown)?));
    }
    if let Some((name, rest)) = line.split_once(" answers ") {
        let (head, content) = rest.split_once(" -> ").ok_or_else(unknown)?;
        let (question, after) = match head.split_once(" after ") {
            Some((question, after)) => (question, duration(after).ok_or_else(unknown)?),
            None => (head, USUAL),
        };
        let (name, question) = (name.to_owned(), question.to_owned());
        return Ok(Step::Answers { name, question, after, reaction: reaction(content)? });
    }
    for (words, reaction) in [
        (" always hangs", Reaction::Hangs),
        (" always closes the connection", Reaction::Fails("the connection was closed".to_owned())),
    ] {
        if let Some(name) = line.strip_suffix(words) {
            return Ok(Step::Always { name: name.to_owned(), reaction });
        }
    }
    expectation(line).map(Step::Expect).ok_or_else(unknown)
}

/// `inpe is online at inpe.br:8080 and mirror.org`
fn archive(rest: &str) -> Option<Step> {
    let (name, rest) = rest.split_once(" is ")?;
    let (standing, at) = rest.split_once(" at ").unwrap_or((rest, ""));
    let standing = match standing {
        "registered" => RegistrationStatus::New,
        "unconfirmed" => RegistrationStatus::Unconfirmed,
        "online" => RegistrationStatus::OnLine,
        "offline" => RegistrationStatus::OffLine,
        "retired" => RegistrationStatus::Retired,
        _ => return None,
    };
    let mut at = at.split(" and ").filter(|host| !host.is_empty()).map(str::to_owned);
    let address = at.next().unwrap_or_else(|| format!("{name}.br"));
    Some(Step::Archive { name: name.to_owned(), standing, address, also: at.collect() })
}

/// `/a.br/b/2009/02.16.17.46! reading pt-BR,en;q=0.5 from 10.0.0.1 via 10.0.0.2`
fn asks(rest: &str) -> Option<Step> {
    let (rest, from) = rest.split_once(" from ").unwrap_or((rest, "192.0.2.1"));
    let (url, reading) = rest.split_once(" reading ").unwrap_or((rest, ""));
    let from = from.split(" via ").map(|address| address.parse().ok()).collect::<Option<_>>()?;
    let is_url = url.starts_with('/') && !url.contains(' ');
    is_url.then(|| Step::Asks { url: url.to_owned(), reading: reading.to_owned(), from })
}

fn expectation(line: &str) -> Option<Expectation> {
    if let Some(outcome) = line.strip_prefix("the client gets ") {
        return Some(Expectation::Gets(outcome.to_owned()));
    }
    if let Some(time) = line.strip_prefix("the client waited ") {
        return duration(time).map(Expectation::Waited);
    }
    if let Some(text) = line.strip_prefix("the explanation says ") {
        return Some(Expectation::Explained(text.to_owned()));
    }
    if let Some((name, questions)) = line.split_once(" was asked ") {
        let questions = match questions {
            "nothing" => Vec::new(),
            questions => questions.split(", ").map(str::to_owned).collect(),
        };
        return Some(Expectation::WasAsked { name: name.to_owned(), questions });
    }
    if line == "nobody got an acknowledgment" {
        return Some(Expectation::Acknowledged(Vec::new()));
    }
    if let Some((name, url)) = line.split_once(" got an acknowledgment of ") {
        return Some(Expectation::Acknowledged(vec![(name.to_owned(), url.to_owned())]));
    }
    match line.strip_prefix("an alert names ") {
        Some(names) => Some(Expectation::Alerts(names.split(" and ").map(str::to_owned).collect())),
        None => (line == "no alert was raised").then(|| Expectation::Alerts(Vec::new())),
    }
}

fn reaction(content: &str) -> Result<Reaction, String> {
    if let Some(raw) = content.strip_prefix("raw ") {
        return Ok(Reaction::Raw(raw.to_owned()));
    }
    if let Some(count) = content.strip_suffix(" bytes").and_then(|count| count.parse().ok()) {
        return Ok(Reaction::Bytes(count));
    }
    Ok(match content {
        "nothing" => Reaction::Nothing,
        "hangs" => Reaction::Hangs,
        "closes the connection" => Reaction::Fails("the connection was closed".to_owned()),
        _ => Reaction::Says(content.split("; ").map(said).collect::<Result<_, _>>()?),
    })
}

fn said(part: &str) -> Result<Said, String> {
    let label = |label: &str| match label.parse::<ibi_id::Label>() {
        Ok(_) => Ok(label.to_owned()),
        Err(why) => Err(format!("{label}: {why}")),
    };
    let mut words = part.split_whitespace();
    let (first, rest) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>());
    match (first, rest.as_slice()) {
        ("known", []) => return Ok(Said::Known),
        ("known", ["as", item]) => return label(item).map(Said::KnownAs),
        ("next", ["edition", item]) => return label(item).map(Said::NextEdition),
        ("next", ["edition", "of", modifiers, item]) => {
            return label(item).map(|item| Said::NextEditionOf((*modifiers).to_owned(), item));
        }
        ("reserved", []) => return Ok(Said::Reserved),
        ("several:", items) => {
            return items.iter().map(|item| label(item)).collect::<Result<_, _>>().map(Said::Several);
        }
        ("alias", [item]) => return label(item).map(Said::Alias),
        ("in", ["the", "name", "of", name]) => return Ok(Said::InTheNameOf((*name).to_owned())),
        ("without", ["a", "key"]) => return Ok(Said::WithoutKey),
        ("removed", [at]) => return Ok(Said::Removed((*at).to_owned())),
        _ => {}
    }
    let unknown = || format!("not understood: `{part}`");
    let is_relation = first.starts_with(['!', '+', ':']);
    let modifiers = if is_relation { first } else { "" };
    Relation::from_modifiers(modifiers).map_err(|why| why.to_string())?;
    let rest = if is_relation { part[first.len()..].trim() } else { part };
    let (ibi, held) = match rest.strip_prefix("is ").map(|rest| rest.split_once(", ")) {
        Some(None) => (Some(label(&rest["is ".len()..])?), None),
        Some(Some((ibi, held))) => (Some(label(ibi)?), Some(held)),
        None => (None, Some(rest)),
    };
    let held = held.map(|held| {
        let (what, url) = held.split_once(" at ").ok_or_else(unknown)?;
        let (state, contenttype) = match what.split_once(" as ") {
            Some((state, contenttype)) => (state, Some(contenttype.to_owned())),
            None => (what, None),
        };
        let is_state = matches!(state, "Original" | "Copy") && !url.contains(' ');
        is_state
            .then(|| Held { state: state.to_owned(), contenttype, url: url.to_owned() })
            .ok_or_else(unknown)
    });
    Ok(Said::Relation { modifiers: modifiers.to_owned(), ibi, held: held.transpose()? })
}

fn duration(text: &str) -> Option<Duration> {
    match text.split_once(' ')? {
        (count, "ms") => count.parse().ok().map(Duration::from_millis),
        (count, "s") => count.parse().ok().map(Duration::from_secs),
        _ => None,
    }
}
