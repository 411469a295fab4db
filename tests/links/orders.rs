//! The 14 modifiers over chains of editions and groups of translations spread over three Archives,
//! in many orders of deposit, copy, hand-over and drop: compared with a model after each.

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
}

impl Model {
    /// The target of modifiers from an item, for a client with this language: an item, and whether
    /// it is its metadata.
    fn leads(&self, from: usize, modifiers: &str, reads: &str) -> (usize, bool) {
        let (mut at, mut metadata) = (from, false);
        for modifier in modifiers.chars() {
            match modifier {
                '!' => {
                    while let Some(next) = self.items[at].next {
                        at = next;
                    }
                }
                '+' if !metadata => {
                    let group = self.items[at].group;
                    let fits = |item: &Modelled| item.group == group && item.language == reads;
                    at = self.items.iter().position(fits).unwrap_or(at);
                }
                ':' => metadata = true,
                _ => {}
            }
        }
        (at, metadata)
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
    let older = (count > 0).then(|| chance.below(count));
    let follows = chance.below(2) == 0;
    let (language, link) = match older {
        // A new edition follows the last one of a chain.
        Some(older) if follows => {
            let (last, _) = model.leads(older, "!", "");
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
    });
    if link.is_some() {
        settled(&federation.archives[archive], &label, "accepted");
    }
}

fn hold(federation: &Federation, model: &mut Model, chance: &mut Chance) -> String {
    let at = chance.below(model.items.len());
    let item = model.items[at].clone();
    let other = chance.below(federation.archives.len());
    let here = |number: usize| -> &Member { &federation.archives[number] };
    if other == item.original {
        return "nothing".to_owned();
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

fn check(federation: &Federation, model: &Model, done: &[String]) {
    for (from, item) in model.items.iter().enumerate() {
        for modifiers in MODIFIERS {
            let reads = LANGUAGES[from % LANGUAGES.len()];
            let (to, metadata) = model.leads(from, modifiers, reads);
            let found = federation.leads_for(&format!("{}{modifiers}", item.label), reads);
            let right = match metadata {
                true => format!("col/{}/", model.items[to].metadata),
                false => format!("col/{}/doc/a.txt", model.items[to].label),
            };
            let found = found.split('?').next().unwrap_or_default();
            assert_eq!(found, right, "{from} with {modifiers} for {reads}: {to}\n{done:#?}\n{model:#?}");
        }
    }
}

#[test]
fn modifiers_lead_where_they_should_whatever_is_copied_and_handed_over() {
    // `IBI_ORDERS=20` tries more orders than there is time for in every run.
    let seeds = std::env::var("IBI_ORDERS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(2);
    let mut has_crossed = false;
    for seed in 1..=seeds {
        let federation = Federation::of_friends(3);
        let mut model = Model::default();
        let mut chance = Chance(seed);
        let mut done = Vec::new();
        for _ in 0..3 {
            deposit(&federation, &mut model, &mut chance);
        }
        for _ in 0..14 {
            if model.items.len() < 6 && chance.below(2) == 0 {
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
}
