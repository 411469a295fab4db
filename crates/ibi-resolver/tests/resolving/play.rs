//! A scenario, played.

use std::sync::Arc;
use std::time::Duration;

use ibi_protocol::PersistentUrl;
use ibi_protocol::analysis::{AcceptedLanguages, CycleReason, ItemQuery, NotFoundReason};
use ibi_resolver::{ResolutionExplanation, ResolutionOutcome, ResolutionRequest, Resolver};
use tokio::time::{Instant, sleep};

use crate::script::{Expectation, Scenario, Step};
use crate::world::{Rule, World};

/// Where the resolver is.
pub(crate) const BASE: &str = "http://resolver.br";

/// The last client.
#[derive(Default)]
struct Client {
    gets: String,
    waited: Duration,
    explanation: Option<ResolutionExplanation>,
}

/// Plays it from beginning to end; the first thing that is not as it must be is an error.
pub(crate) async fn play(scenario: &Scenario, explain: bool) -> Result<(), String> {
    let world = Arc::new(World::default());
    let resolver = Resolver::new(Arc::clone(&world), Arc::clone(&world), Arc::new(|| 1_700_000_000));
    let mut client = Client::default();
    for (place, step) in &scenario.steps {
        match step {
            Step::Archive { name, standing, address, also } => world.archive(name, *standing, address, also),
            Step::Always { name, reaction } => {
                world.state().always.insert(name.clone(), reaction.clone());
            }
            Step::Answers { name, question, after, reaction } => world.state().rules.push(Rule {
                place: place.clone(),
                name: name.clone(),
                question: question.clone(),
                after: *after,
                reaction: reaction.clone(),
                used: 0,
            }),
            Step::Passes(time) => sleep(*time).await,
            Step::Asks { url, reading, from } => {
                let (path, query) = url.split_once('?').map_or((url.as_str(), None), |(p, q)| (p, Some(q)));
                let began = Instant::now();
                client = match PersistentUrl::parse(path, query) {
                    Err(_) => Client { gets: "400".to_owned(), ..Client::default() },
                    Ok(read) => {
                        let asked = ResolutionRequest {
                            robot: false,
                            fresh: false,
                            url: read,
                            persistent: format!("{BASE}{url}"),
                            languages: AcceptedLanguages::parse(reading),
                            client: from.clone(),
                            explain,
                            goes: true,
                        };
                        let resolution = resolver.resolve(asked).await;
                        let (gets, waited) = (told(&resolution.outcome, &world), began.elapsed());
                        Client { gets, waited, explanation: resolution.explanation }
                    }
                };
                // What is done in the background, at once, is done now.
                sleep(Duration::from_millis(5)).await;
            }
            Step::Expect(expectation) => {
                holds(expectation, &world, &client).map_err(|why| format!("{place}: {why}"))?;
            }
        }
    }
    resolver.close(Duration::from_secs(1)).await;
    let state = world.state();
    match state.rules.iter().find(|rule| rule.used == 0) {
        Some(rule) => Err(format!("{}: nobody asked {} for {}", rule.place, rule.name, rule.question)),
        None => Ok(()),
    }
}

fn holds(expectation: &Expectation, world: &World, client: &Client) -> Result<(), String> {
    let same = |is: String, expected: String| match is == expected {
        true => Ok(()),
        false => Err(format!("\n     it is: {is}\n  expected: {expected}")),
    };
    match expectation {
        Expectation::Gets(outcome) => same(client.gets.clone(), outcome.clone()),
        Expectation::Waited(time) => {
            same(format!("{} ms", client.waited.as_millis()), format!("{} ms", time.as_millis()))
        }
        Expectation::WasAsked { name, questions } => {
            let state = world.state();
            let asked = state.questions.iter().filter(|(who, _)| who == name);
            let asked: Vec<&str> = asked.map(|(_, question)| question.as_str()).collect();
            same(asked.join(", "), questions.join(", "))
        }
        Expectation::Acknowledged(all) => {
            let state = world.state();
            let got = state.acknowledgments.iter().map(|(name, url, _)| format!("{name} of {url}"));
            if let Some(other) = state.acknowledgments.iter().find(|(.., from)| !from.starts_with(BASE)) {
                return Err(format!("{} is no persistent URL of ours", other.2));
            }
            let expected: Vec<String> = all.iter().map(|(name, url)| format!("{name} of {url}")).collect();
            same(got.collect::<Vec<_>>().join(", "), expected.join(", "))
        }
        Expectation::Alerts(names) => {
            let alerts = world.state().alerts.clone();
            let alerts = alerts.iter().map(|alert| {
                let names: Vec<String> =
                    alert.claims.iter().map(|claim| world.name(&claim.service)).collect();
                names.join(" and ")
            });
            same(alerts.collect::<Vec<_>>().join("; "), names.join(" and "))
        }
        Expectation::Explained(text) => match &client.explanation {
            Some(explanation) if !explanation.to_string().contains(text) => {
                same(explanation.to_string(), text.clone())
            }
            _ => Ok(()),
        },
    }
}

/// What a client is told, in the words of the scenarios.
fn told(outcome: &ResolutionOutcome, world: &World) -> String {
    let status = outcome.status();
    match outcome {
        ResolutionOutcome::Found { location, .. } => format!("{status} to {location}"),
        ResolutionOutcome::Alert(suspected) => {
            let mut names: Vec<String> = suspected
                .iter()
                .flat_map(|one| &one.claims)
                .map(|claim| world.name(&claim.service))
                .collect();
            names.sort();
            format!("{status}: {} claim the original", names.join(" and "))
        }
        ResolutionOutcome::Deleted { tombstones, living } => {
            let says = tombstones.iter().map(|(archive, tombstone)| {
                let at = tombstone.timestamp.as_deref().unwrap_or("some day");
                format!("removed on {at}, says {}", world.name(&archive.service))
            });
            let living =
                living.as_ref().map_or_else(String::new, |living| format!("; there is {}", asked(living)));
            format!("{status}: {}{living}", says.collect::<Vec<_>>().join(" and "))
        }
        ResolutionOutcome::Ambiguous { items, .. } => {
            let spelled =
                items.iter().flat_map(|item| item.labels()).map(|label| label.spelling().to_owned());
            format!("{status}: {}", spelled.collect::<Vec<_>>().join(" or "))
        }
        ResolutionOutcome::Reserved(item) => format!("{status}: {item} is reserved"),
        ResolutionOutcome::NotFound(not_found) => format!("{status}: {}", missing(not_found)),
        ResolutionOutcome::Incomplete { silent, otherwise } => {
            let mut names: Vec<String> =
                silent.iter().map(|(archive, _)| world.name(&archive.service)).collect();
            names.sort();
            format!("{status}: {}, but {} did not answer", missing(otherwise), names.join(" and "))
        }
        ResolutionOutcome::Cycle { chain, why } => {
            let how = if *why == CycleReason::Repeats { "in circles" } else { "too far" };
            let chain = chain.iter().map(asked);
            format!("{status}: {how}: {}", chain.collect::<Vec<_>>().join(", "))
        }
    }
}

fn asked(question: &ItemQuery) -> String {
    format!("{}{}", question.label.spelling(), question.verbs.relation.modifiers())
}

fn missing(not_found: &NotFoundReason) -> String {
    let list = |offered: &[ibi_protocol::Relation]| {
        let names = offered.iter().map(|relation| match relation.is_empty() {
            true => "itself".to_owned(),
            false => relation.modifiers(),
        });
        names.collect::<Vec<_>>().join(" ")
    };
    match not_found {
        NotFoundReason::Item => "nobody has it".to_owned(),
        NotFoundReason::Related { offered, .. } if offered.is_empty() => "there is nothing of it".to_owned(),
        NotFoundReason::Related { offered, .. } => format!("there is only {}", list(offered)),
        NotFoundReason::File { offered, .. } => format!("no such file in {}", list(offered)),
        NotFoundReason::Unheld { item, older } => {
            let item = item.labels()[0].spelling();
            let older = older.as_ref().map_or_else(|| "nothing else".to_owned(), asked);
            format!("nobody has {item}, there is {older}")
        }
        NotFoundReason::Original { copies } => {
            let urls: Vec<&str> = copies.iter().map(|copy| copy.url.as_str()).collect();
            format!("only copies: {}", urls.join(" "))
        }
    }
}
