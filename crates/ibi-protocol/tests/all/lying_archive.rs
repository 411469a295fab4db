//! 2.4, *Consent*, and ADR 13: a registered Archive that lies about the items of others. As long as
//! the holders of the Originals answer, every client is sent to the same place as without it.

use ibi_protocol::analysis::{
    AcceptedLanguages, AnswerExpectation, ArchiveId, ArchiveReply, RoundAnswer, RoundDecision, RoundQuery,
    check, decide,
};
use ibi_protocol::{Pairs, PairsLimits, Relation, RelationPart, Verbs};
use proptest::prelude::*;
use proptest::sample::select;

/// Number of honest Archives; the liar has the next id.
const HONEST: usize = 3;
const LIAR: usize = HONEST;
const EVIL: [&str; 2] = ["n3.br/archive/2020/01.01.01.01", "n3.br/archive/2020/01.01.01.02"];
const LANGUAGES: [&str; 3] = ["pt", "en", "fr"];

/// An item whose links all honest holders know.
#[derive(Debug, Clone)]
struct Item {
    label: String,
    original: usize,
    copies: [bool; HONEST],
    language: &'static str,
    next: Option<usize>,
    /// The translations of an item including itself, each in another language.
    group: Vec<usize>,
}

#[derive(Debug, Clone)]
struct World(Vec<Item>);

/// What a relation leads to: an item, or its metadata in a language.
#[derive(Debug, Clone, PartialEq)]
struct Target {
    item: usize,
    metadata: Option<Option<String>>,
}

impl World {
    fn holds(&self, archive: usize, item: usize) -> bool {
        self.0[item].original == archive || self.0[item].copies[archive]
    }

    fn last_edition(&self, archive: usize, item: usize) -> Result<usize, usize> {
        match self.0[item].next {
            None => Ok(item),
            Some(next) if self.holds(archive, next) => self.last_edition(archive, next),
            Some(next) => Err(next),
        }
    }

    /// An honest Archive's answer about an item (2.4, 3.4).
    fn answer(&self, archive: usize, asked: &Target, relation: &Relation) -> String {
        let name = |item: usize| format!("{{rep {}}}", self.0[item].label);
        let target_name = |target: &Target| match target.metadata {
            None => name(target.item),
            Some(_) => format!("{{rep {}}}", metadata_label(&self.0[target.item].label)),
        };
        let mut text = format!("ibi {} ", target_name(asked));
        let item = asked.item;
        if asked.metadata.is_none()
            && relation.parts().contains(&RelationPart::LastEdition)
            && let Some(next) = self.last_edition(archive, item).err().or(self.0[item].next)
        {
            text += &format!("ibi.nextedition {} ", name(next));
        }
        let mut reached = vec![(String::new(), asked.clone())];
        for part in relation.parts() {
            let mut next = Vec::new();
            for (before, from) in &reached {
                for (word, target) in self.step(archive, from, part) {
                    let whole = format!("{before}{word}");
                    match target {
                        Ok(target) => {
                            text += &format!("ibi{whole} {} ", target_name(&target));
                            next.push((whole, target));
                        }
                        Err(unheld) if *part == RelationPart::LastEdition => {
                            if !before.is_empty() {
                                text += &format!("ibi{before}.nextedition {} ", name(unheld));
                            }
                        }
                        Err(unheld) => text += &format!("ibi{whole} {} ", name(unheld)),
                    }
                }
            }
            reached = next;
        }
        for (relation, Target { item, metadata }) in reached {
            let state = if self.0[item].original == archive { "Original" } else { "Copy" };
            let page =
                metadata.map_or_else(String::new, |language| format!("/m{}", language.unwrap_or_default()));
            let url = format!("http://archive.n{archive}.br/{}{page}", self.0[item].label);
            text += &format!("url{relation} {url} state{relation} {state} ");
        }
        text
    }

    /// The target of one step: held here, or an item held elsewhere.
    fn step(
        &self,
        archive: usize,
        from: &Target,
        part: &RelationPart,
    ) -> Vec<(String, Result<Target, usize>)> {
        let item = &self.0[from.item];
        match (part, &from.metadata) {
            (RelationPart::LastEdition, Some(_)) => vec![(".lastedition".to_owned(), Ok(from.clone()))],
            (RelationPart::LastEdition, None) => {
                let last = self.last_edition(archive, from.item);
                vec![(".lastedition".to_owned(), last.map(|item| Target { item, metadata: None }))]
            }
            (RelationPart::Metadata(_), _) => {
                let target = Target { item: from.item, metadata: Some(None) };
                vec![(".metadata".to_owned(), Ok(target))]
            }
            (RelationPart::Translation(_), None) => {
                let members = item.group.iter().map(|&member| {
                    let word = format!(".translation({})", self.0[member].language);
                    let held = Target { item: member, metadata: None };
                    (word, if self.holds(archive, member) { Ok(held) } else { Err(member) })
                });
                members.filter(|(word, _)| takes(part, word)).collect()
            }
            (RelationPart::Translation(_), Some(_)) => {
                let page = |language: Option<&str>| {
                    let word =
                        language.map_or(".translation".to_owned(), |one| format!(".translation({one})"));
                    let metadata = Some(language.map(str::to_owned));
                    (word, Ok(Target { item: from.item, metadata }))
                };
                let pages = [page(None), page(Some(item.language))];
                pages.into_iter().filter(|(word, _)| takes(part, word)).collect()
            }
        }
    }
}

/// The label of an item's metadata, in a year of its own.
fn metadata_label(label: &str) -> String {
    label.replace("/20", "/21")
}

fn takes(part: &RelationPart, word: &str) -> bool {
    part.accepts_part(&Relation::parse(word).unwrap().parts()[0])
}

/// At most three editions, each in up to three languages. An Original may have been handed over to
/// an Archive other than its minter.
fn world(are_minted: bool) -> impl Strategy<Value = World> {
    let item = (0..HONEST, any::<[bool; HONEST]>(), any::<[bool; 3]>());
    (prop::collection::vec(item, 9), 1..4_usize).prop_map(move |(held, editions)| {
        let at = |edition: usize, language: usize| edition * LANGUAGES.len() + language;
        let items = held.iter().enumerate().map(|(number, &(original, copies, [has_next, is_handed, _]))| {
            let (edition, language) = (number / LANGUAGES.len(), number % LANGUAGES.len());
            let minter = if are_minted || !is_handed { original } else { (original + 1) % HONEST };
            let is_member = |&other: &usize| other == number || held[other].2[2] && held[number].2[2];
            Item {
                label: format!("n{minter}.br/archive/20{edition}{language}/02.16.17.46"),
                original,
                copies,
                language: LANGUAGES[language],
                next: (edition + 1 < editions && has_next).then(|| at(edition + 1, language)),
                group: (0..LANGUAGES.len()).map(|other| at(edition, other)).filter(is_member).collect(),
            }
        });
        World(items.collect())
    })
}

/// A lie about one relation or the next edition.
#[derive(Debug, Clone)]
struct Lie {
    /// Selects the relation at random.
    relation: usize,
    /// One of its own items, the true one, or none.
    item: usize,
    has_url: bool,
    is_original: bool,
    adds_own_name: bool,
}

#[derive(Debug, Clone)]
struct Liar {
    lies: Vec<Lie>,
    is_removed: bool,
    /// Whether it claims the Originals of others, not only Copies.
    claims_originals: bool,
}

fn liar(claims_originals: bool) -> impl Strategy<Value = Liar> {
    let lie = (0..64_usize, 0..4_usize, any::<[bool; 3]>()).prop_map(|(relation, item, has)| {
        let [has_url, is_original, adds_own_name] = has;
        Lie { relation, item, has_url, is_original, adds_own_name }
    });
    (prop::collection::vec(lie, 1..6), prop::bool::weighted(0.1)).prop_map(move |(lies, is_removed)| Liar {
        lies,
        is_removed,
        claims_originals,
    })
}

impl Liar {
    /// The relations that can be offered for a query, including leading parts.
    fn relations(wanted: &Relation) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut whole = vec![String::new()];
        for part in wanted.parts() {
            let words: Vec<String> = match part {
                RelationPart::Translation(None) => {
                    let named = LANGUAGES.iter().map(|language| format!(".translation({language})"));
                    named.chain([".translation".to_owned()]).collect()
                }
                RelationPart::Translation(Some(language)) => vec![format!(".translation({language})")],
                RelationPart::LastEdition => vec![".lastedition".to_owned()],
                RelationPart::Metadata(_) => vec![".metadata".to_owned()],
            };
            if *part == RelationPart::LastEdition {
                all.extend(whole.iter().map(|before| format!("{before}.nextedition")));
            }
            whole = whole
                .iter()
                .flat_map(|before| words.iter().map(move |word| format!("{before}{word}")))
                .collect();
            all.extend(whole.iter().cloned());
        }
        all
    }

    fn answer(&self, world: &World, label: &str, relation: &Relation) -> String {
        if EVIL.contains(&label) {
            // Its claims about its own items affect nobody else.
            let relations = Self::relations(relation).into_iter().filter(|one| !one.contains("nextedition"));
            let offers =
                relations.map(|one| format!("url{one} http://archive.n3.br/evil state{one} Original "));
            return format!("ibi {{rep {label}}} {}", offers.collect::<String>());
        }
        let relations = Self::relations(relation);
        let mut text = format!("ibi {{rep {label}}} ");
        if self.is_removed {
            text += "state Deleted timestamp 2020 ";
        }
        let mut said: Vec<&str> = Vec::new();
        for lie in &self.lies {
            let relation = &relations[lie.relation % relations.len()];
            if said.contains(&relation.as_str()) || self.is_removed && relation.is_empty() {
                continue;
            }
            said.push(relation);
            let other = &world.0[lie.relation % world.0.len()].label;
            let item = EVIL.get(lie.item).copied().unwrap_or(if lie.item == 2 { label } else { other });
            let name = match lie.adds_own_name {
                true => format!("{{ibip 8JMKD3MGP8W/35MME4E rep {item}}}"),
                false => format!("{{rep {item}}}"),
            };
            if !relation.is_empty() {
                text += &format!("ibi{relation} {name} ");
            }
            if lie.has_url && !relation.contains("nextedition") && !self.is_removed {
                // Metadata has the state of its item.
                let of = relation.split(".metadata").next().unwrap();
                let names_own = |lie: &&Lie| relations[lie.relation % relations.len()] == of;
                let is_own = self.lies.iter().find(names_own).is_some_and(|lie| lie.item < EVIL.len());
                let may_claim = self.claims_originals || is_own && !of.is_empty();
                let state = if lie.is_original && may_claim { "Original" } else { "Copy" };
                text += &format!("url{relation} http://archive.n3.br/evil state{relation} {state} ");
            }
        }
        text
    }
}

fn said(world: &World, liar: Option<&Liar>, archive: usize, wanted: &RoundQuery) -> RoundAnswer {
    let (label, relation) = (wanted.label.spelling(), &wanted.verbs.relation);
    let target = world.0.iter().enumerate().find_map(|(item, Item { label: own, .. })| match () {
        () if own == label => Some(Target { item, metadata: None }),
        () if metadata_label(own) == label => Some(Target { item, metadata: Some(None) }),
        () => None,
    });
    let text = match (target, liar) {
        // The second label of its own items.
        (None, Some(liar)) if archive == LIAR && label == "8JMKD3MGP8W/35MME4E" => liar
            .answer(world, EVIL[0], relation)
            .replace(EVIL[0], "n3.br/archive/2020/01.01.01.01 ibip 8JMKD3MGP8W/35MME4E"),
        (_, Some(liar)) if archive == LIAR => liar.answer(world, label, relation),
        (Some(target), _) if world.holds(archive, target.item) => world.answer(archive, &target, relation),
        _ => String::new(),
    };
    let said = if text.is_empty() {
        ArchiveReply::Nothing
    } else {
        let service = format!("n{archive}.br/archive/2001/01.01.01.01");
        let text = format!("{text} ibi.archiveservice {{rep {service}}}");
        let pairs = Pairs::read(text.as_bytes(), &PairsLimits::default()).unwrap();
        let (service, hosts) = (service.parse().unwrap(), [format!("archive.n{archive}.br")]);
        let asked = AnswerExpectation {
            label: &wanted.label,
            verbs: &wanted.verbs,
            service: &service,
            hosts: &hosts,
        };
        ArchiveReply::from(check(&pairs, &asked))
    };
    RoundAnswer { archive: ArchiveId(archive as u64), said }
}

/// Resolves a query. In each round the Archives answer in the order given by `seed`, all within the
/// grace period. Returns the path that the client is sent to, or a status.
fn resolve(
    world: &World,
    liar: Option<&Liar>,
    mut wanted: RoundQuery,
    mut seed: u64,
    at_once: bool,
) -> String {
    let count = HONEST + usize::from(liar.is_some());
    for _ in 0..100 {
        let mut left: Vec<usize> = (0..count).collect();
        let mut answers: Vec<RoundAnswer> = Vec::new();
        let decision = loop {
            let prefix = |archive: &usize| wanted.label.spelling().starts_with(&format!("n{archive}.br/"));
            let waiting = ArchiveReply::Waiting { has_own_prefix: left.iter().any(prefix) };
            let waits = RoundAnswer { archive: ArchiveId(9), said: waiting };
            let so_far: Vec<RoundAnswer> = match left.is_empty() {
                true => answers.clone(),
                false => answers.iter().cloned().chain([waits]).collect(),
            };
            match decide(&so_far, &wanted) {
                decision if left.is_empty() || !at_once && decision != RoundDecision::Wait => break decision,
                _ => {
                    let at = (seed % left.len() as u64) as usize;
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
                            >> 1;
                    answers.push(said(world, liar, left.remove(at), &wanted));
                }
            }
        };
        match decision {
            RoundDecision::AskAgain(again) => wanted = wanted.next(&again),
            RoundDecision::Found(found) if found.archive.0 == LIAR as u64 => return "the liar".to_owned(),
            RoundDecision::Found(found) => return found.url.split_once(".br/").unwrap().1.to_owned(),
            decision => return format!("{:?}", decision.status()),
        }
    }
    "no end".to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn clause_2_4_a_liar_leads_nobody_anywhere(
        // Of two claims to one Original, that of the minter is accepted (4.4), so the minter must
        // be present.
        (world, liar) in any::<bool>().prop_flat_map(|claims| (world(claims), liar(claims))),
        modifiers in prop_oneof![
            Just(""),
            select(Relation::ALL_COMPOSITIONS.to_vec()),
            select(vec!["+(pt)", "+(fr)!", "!+(en)", ":+(fr)", "+(pt):", "!:+(pt)", "+(en):+", "+(fr)!:"]),
        ],
        header in select(vec!["", "pt", "en,pt;q=0.5", "fr;q=0.2,en;q=0.1", "de"]),
        seed in any::<u64>(),
    ) {
        let wanted = || RoundQuery {
            verbs: Verbs::from(Relation::from_modifiers(modifiers).unwrap()),
            languages: AcceptedLanguages::parse(header),
            ..RoundQuery::new(world.0[0].label.parse().unwrap())
        };
        let honest = resolve(&world, None, wanted(), 0, true);
        prop_assert_eq!(&honest, &resolve(&world, None, wanted(), seed, false), "without a liar");
        let lied_to = resolve(&world, Some(&liar), wanted(), seed, false);
        prop_assert_eq!(honest, lied_to);
    }
}
