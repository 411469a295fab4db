//! The 14 modifiers over chains of editions and groups of translations spread over three Archives,
//! in many orders of deposit, copy, hand-over, drop, update, refresh and removal: compared with a
//! model after each.

use super::{Federation, Member, settled};
use crate::online::rep;

const MODIFIERS: [&str; 14] =
    [":", ":+", "!", "!+", "!:", "!+:", "!:+", "!+:+", "+", "+!", "+:", "+!:", "+:+", "+!:+"];

const LANGUAGES: [&str; 3] = ["en", "pt", "fr"];

/// The expected state.
#[derive(Debug, Clone, Default)]
struct Model {
    items: Vec<Modelled>,
}

#[derive(Debug, Clone)]
struct Modelled {
    label: String,
    metadata: String,
    language: &'static str,
    next: Option<usize>,
    /// Items of one group have the same number.
    group: usize,
    /// The holder of the Original, and all holders.
    original: usize,
    holders: Vec<usize>,
    removed: bool,
}

/// What modifiers lead to.
#[derive(Debug, PartialEq, Eq)]
enum Lead {
    Data(usize),
    Metadata(usize),
    /// 410 (clause 2.4).
    Removed,
    /// Translations of a removed item: clause 2.4 leaves open who knows them.
    Open,
}

impl Model {
    /// The target of modifiers from an item, for a client with this language.
    fn leads(&self, from: usize, modifiers: &str, reads: &str) -> Lead {
        self.leads_on(from, modifiers, reads, false)
    }

    fn leads_on(&self, at: usize, modifiers: &str, reads: &str, metadata: bool) -> Lead {
        let mut rest = modifiers.chars();
        let item = &self.items[at];
        match rest.next() {
            None if item.removed => Lead::Removed,
            None if metadata => Lead::Metadata(at),
            None => Lead::Data(at),
            // A removed edition leads on to the next.
            Some('!') => self.leads_on(self.last_edition(at), rest.as_str(), reads, metadata),
            Some('+') if item.removed => Lead::Open,
            Some('+') if !metadata => {
                let fits =
                    |other: &Modelled| other.group == item.group && other.language == reads && !other.removed;
                let best = self.items.iter().position(fits).unwrap_or(at);
                // If the translation ends in nothing, it is the item itself (4.2 step 6).
                match self.leads_on(best, rest.as_str(), reads, metadata) {
                    Lead::Removed => self.leads_on(at, rest.as_str(), reads, metadata),
                    lead => lead,
                }
            }
            Some(modifier) => self.leads_on(at, rest.as_str(), reads, metadata || modifier == ':'),
        }
    }

    fn last_edition(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(next) = self.items[at].next {
            at = next;
        }
        at
    }

    fn live(&self) -> Vec<usize> {
        (0..self.items.len()).filter(|at| !self.items[*at].removed).collect()
    }
}

/// Deterministic random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn deposit(federation: &Federation, model: &mut Model, chance: &mut Chance) {
    let archive = chance.below(federation.archives.len());
    let count = model.items.len();
    let live = model.live();
    // Only what is there gets editions and translations.
    let older = (!live.is_empty()).then(|| live[chance.below(live.len())]);
    let older = older.filter(|older| !model.items[model.last_edition(*older)].removed);
    let follows = chance.below(2) == 0;
    let (language, link) = match older {
        // A new edition follows the last one of a chain.
        Some(older) if follows => {
            let last = model.last_edition(older);
            (model.items[last].language, Some(("--next-edition-of", last)))
        }
        Some(older) => {
            let group = model.items[older].group;
            let has = |language: &&&str| {
                !model.items.iter().any(|item| item.group == group && item.language == **language)
            };
            match LANGUAGES.iter().find(has) {
                Some(language) => (*language, Some(("--translation-of", older))),
                None => ("en", None),
            }
        }
        None => ("en", None),
    };
    let mut arguments = vec!["--language", language];
    if let Some((option, older)) = link {
        arguments.extend([option, &model.items[older].label]);
    }
    let content = count.to_string();
    let item = federation.archives[archive].folder.put(&[(b"a.txt", content.as_bytes())], &arguments);
    let (label, metadata) = (rep(&item), item["metadata"]["rep"].as_str().unwrap().to_owned());
    let group = match link {
        Some(("--translation-of", older)) => model.items[older].group,
        _ => count,
    };
    if let Some(("--next-edition-of", older)) = link {
        model.items[older].next = Some(count);
    }
    let holders = vec![archive];
    model.items.push(Modelled {
        label: label.clone(),
        metadata,
        language,
        next: None,
        group,
        original: archive,
        holders,
        removed: false,
    });
    if link.is_some() {
        settled(&federation.archives[archive], &label, "accepted");
    }
}

fn hold(federation: &Federation, model: &mut Model, chance: &mut Chance) -> String {
    let live = model.live();
    let at = live[chance.below(live.len())];
    let item = model.items[at].clone();
    let other = chance.below(federation.archives.len());
    let here = |number: usize| -> &Member { &federation.archives[number] };
    if other == item.original {
        here(other).does("update", &[&item.label, "--dc", "title=changed"]);
        return format!("updated {at}");
    }
    if item.holders.contains(&other) && chance.below(3) == 0 {
        here(other).does("refresh", &[&item.label]);
        return format!("refreshed {at} at {other}");
    }
    match chance.below(3) {
        0 if !item.holders.contains(&other) => {
            here(other).does("copy", &[&item.label, "--from", &here(item.original).url()]);
            model.items[at].holders.push(other);
            format!("copied {at} to {other}")
        }
        1 if item.holders.contains(&other) => {
            here(other).does("drop", &[&item.label, "--yes"]);
            model.items[at].holders.retain(|holder| *holder != other);
            format!("dropped {at} at {other}")
        }
        _ => {
            let keep = ["copy", "nothing"][chance.below(2)];
            here(item.original).hand_over(&item.label, here(other), keep);
            let modelled = &mut model.items[at];
            modelled.original = other;
            if !modelled.holders.contains(&other) {
                modelled.holders.push(other);
            }
            if keep == "nothing" {
                modelled.holders.retain(|holder| *holder != item.original);
            }
            format!("handed {at} over to {other}, {keep} stays")
        }
    }
}

/// Removes an item of which there is no copy: a copy would still be given out (D13).
fn remove(federation: &Federation, model: &mut Model, chance: &mut Chance) -> Option<String> {
    let alone: Vec<usize> =
        model.live().into_iter().filter(|at| model.items[*at].holders.len() == 1).collect();
    if alone.len() < 2 {
        return None;
    }
    let at = alone[chance.below(alone.len())];
    let item = &mut model.items[at];
    federation.archives[item.original].does("remove", &[&item.label, "--reason", "a test", "--yes"]);
    item.removed = true;
    Some(format!("removed {at}"))
}

fn check(federation: &Federation, model: &Model, done: &[String]) {
    for (from, item) in model.items.iter().enumerate() {
        for modifiers in MODIFIERS {
            let reads = LANGUAGES[from % LANGUAGES.len()];
            let lead = model.leads(from, modifiers, reads);
            let right = match lead {
                Lead::Metadata(to) => format!("col/{}/", model.items[to].metadata),
                Lead::Data(to) => format!("col/{}/doc/a.txt", model.items[to].label),
                Lead::Removed => "410".to_owned(),
                Lead::Open => continue,
            };
            let found = federation.leads_for(&format!("{}{modifiers}", item.label), reads);
            let found = found.split('?').next().unwrap_or_default();
            assert_eq!(found, right, "{from} with {modifiers} for {reads}: {lead:?}\n{done:#?}\n{model:#?}");
        }
    }
}

#[test]
fn modifiers_lead_where_they_should_whatever_is_copied_and_handed_over() {
    // `IBI_ORDERS=20` tries more orders than there is time for in every run.
    let seeds = std::env::var("IBI_ORDERS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(2);
    let mut has_crossed = false;
    let mut has_removed = false;
    for seed in 1..=seeds {
        let federation = Federation::of_friends(3);
        let mut model = Model::default();
        let mut chance = Chance(seed);
        let mut done = Vec::new();
        for _ in 0..3 {
            deposit(&federation, &mut model, &mut chance);
        }
        for step in 0..14 {
            if step % 7 == 6
                && let Some(removed) = remove(&federation, &mut model, &mut chance)
            {
                has_removed = true;
                done.push(removed);
            } else if model.items.len() < 6 && chance.below(2) == 0 {
                deposit(&federation, &mut model, &mut chance);
                done.push(format!("deposited {}", model.items.len() - 1));
            } else {
                done.push(hold(&federation, &mut model, &mut chance));
            }
            check(&federation, &model, &done);
        }
        let crosses =
            |item: &Modelled| item.next.is_some_and(|next| model.items[next].original != item.original);
        has_crossed |= model.items.iter().any(crosses);
    }
    assert!(has_crossed, "some editions must be in different Archives");
    assert!(has_removed, "some items must be removed");
}
