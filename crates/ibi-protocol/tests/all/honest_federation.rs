//! 2.4 and 4.2: editions and translations spread over honest Archives, some of them outdated. A
//! client is sent where the links lead, in whatever order the Archives answer.

use ibi_protocol::analysis::{
    AcceptedLanguages, AnswerExpectation, ArchiveId, ArchiveReply, FoundUrl, RoundAnswer, RoundDecision,
    RoundQuery, check, decide,
};
use ibi_protocol::{Language, Pairs, PairsLimits, Relation, Verbs};
use proptest::prelude::*;
use proptest::sample::select;

const ARCHIVES: usize = 3;
const LANGUAGES: [&str; 4] = ["pt", "en", "fr", "it"];

/// What one Archive holds of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    Nothing,
    Original,
    Copy,
    /// A Copy from before the next edition or a translation existed.
    StaleCopy,
    Removed,
}

/// An item, by what each Archive holds of it.
#[derive(Debug, Clone)]
struct Held([Has; ARCHIVES]);

impl Held {
    fn is_live(&self) -> bool {
        self.0.iter().any(|has| !matches!(has, Has::Nothing | Has::Removed))
    }
}

fn held() -> impl Strategy<Value = Held> {
    let copy = select(vec![Has::Nothing, Has::Nothing, Has::Copy, Has::StaleCopy]);
    (0..ARCHIVES, prop::bool::weighted(0.2), prop::array::uniform3(copy)).prop_map(
        |(holder, removed, mut has)| {
            has[holder] = if removed { Has::Removed } else { Has::Original };
            Held(has)
        },
    )
}

/// Editions, and translations in these languages.
#[derive(Debug, Clone)]
struct World {
    editions: Vec<Held>,
    translations: Vec<(Language, Held)>,
    /// Whether an Archive that follows links beyond its holdings names the first edition that it
    /// does not hold, or the next one.
    names_first_unheld: bool,
}

fn label(edition: usize) -> String {
    format!("a.br/b/{}/02.16.17.46", 2000 + edition)
}

fn translation_label(at: usize) -> String {
    format!("a.br/t/{}/02.16.17.46", 2000 + at)
}

impl World {
    fn is_stale(&self, archive: usize, edition: usize) -> bool {
        self.editions[edition].0[archive] == Has::StaleCopy
    }

    /// The next edition, as known to an Archive.
    fn next(&self, archive: usize, edition: usize) -> Option<usize> {
        (edition + 1 < self.editions.len() && !self.is_stale(archive, edition)).then_some(edition + 1)
    }

    /// The answer of an Archive by 2.4.
    fn answer(&self, archive: usize, asked: &str, verbs: &Verbs) -> String {
        let host = format!("archive.n{archive}.br");
        let state = |has: Has| if has == Has::Original { "Original" } else { "Copy" };
        let url = |relation: &str, path: &str, has: Has| {
            format!(" url{relation} http://{host}/{path} state{relation} {}", state(has))
        };
        if let Some(at) = (0..self.translations.len()).find(|at| translation_label(*at) == asked) {
            return match self.translations[at].1.0[archive] {
                Has::Nothing => String::new(),
                Has::Removed => "state Deleted timestamp 2020".to_owned(),
                has => url("", asked, has),
            };
        }
        let Some(edition) = (0..self.editions.len()).find(|edition| label(*edition) == asked) else {
            return String::new();
        };
        let has = self.editions[edition].0[archive];
        if has == Has::Nothing {
            return String::new();
        }
        let modifiers = verbs.relation.modifiers();
        let mut text = String::from("x y");
        if has == Has::Removed {
            text = "state Deleted timestamp 2020".to_owned();
        }
        if modifiers.starts_with('!') {
            let (mut end, mut beyond) = (edition, None);
            while let Some(next) = self.next(archive, end) {
                if self.editions[next].0[archive] == Has::Nothing {
                    beyond = Some(next);
                    break;
                }
                end = next;
            }
            let named = if self.names_first_unheld { beyond } else { None };
            if let Some(next) = named.or(self.next(archive, edition)) {
                text += &format!(" ibi.nextedition {{rep {}}}", label(next));
            }
            if beyond.is_none() && has != Has::Removed {
                text += &format!(" ibi.lastedition {{rep {}}}", label(end));
                let has = self.editions[end].0[archive];
                let translates = modifiers.ends_with('+');
                if has != Has::Removed {
                    // An item without a stated language is its own translation.
                    let relation = if translates { ".lastedition.translation" } else { ".lastedition" };
                    text += &url(relation, &label(end), has);
                }
                // Only the last edition has translations here.
                let has_any = translates && end + 1 == self.editions.len() && !self.is_stale(archive, end);
                for (at, (language, held)) in self.translations.iter().enumerate().filter(|_| has_any) {
                    let relation = format!(".lastedition.translation({language})");
                    text += &format!(" ibi{relation} {{rep {}}}", translation_label(at));
                    if !matches!(held.0[archive], Has::Nothing | Has::Removed) {
                        text += &url(&relation, &translation_label(at), held.0[archive]);
                    }
                }
            }
        } else if modifiers.starts_with('+') && !self.is_stale(archive, edition) {
            for (at, (language, held)) in self.translations.iter().enumerate() {
                let relation = format!(".translation({language})");
                text += &format!(" ibi{relation} {{rep {}}}", translation_label(at));
                let there = held.0[archive];
                if has != Has::Removed && !matches!(there, Has::Nothing | Has::Removed) {
                    text += &url(&relation, &translation_label(at), there);
                }
            }
        } else if has != Has::Removed {
            text += &url("", asked, has);
        }
        text
    }

    /// Resolves a query. In each round the Archives answer in the order given by `seed`.
    fn resolve(&self, mut wanted: RoundQuery, mut seed: u64) -> RoundDecision {
        loop {
            let mut left: Vec<usize> = (0..ARCHIVES).collect();
            let mut answers: Vec<RoundAnswer> = Vec::new();
            let decision = loop {
                if let Some(waiting) = left.first() {
                    let at = (seed % left.len() as u64) as usize;
                    // The grace period may end before any other answer.
                    wanted.grace_over = seed & 64 != 0;
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
                            >> 1;
                    let mut so_far = answers.clone();
                    so_far.push(RoundAnswer {
                        archive: ArchiveId(*waiting as u64),
                        said: ArchiveReply::Waiting { has_own_prefix: seed & 32 != 0 },
                    });
                    match decide(&so_far, &wanted) {
                        RoundDecision::Wait => answers.push(self.said(left.remove(at), &wanted)),
                        decision => break decision,
                    }
                } else {
                    break decide(&answers, &wanted);
                }
            };
            match decision {
                RoundDecision::AskAgain(again) => wanted = wanted.next(&again),
                decision => return decision,
            }
        }
    }

    fn said(&self, archive: usize, wanted: &RoundQuery) -> RoundAnswer {
        let text = self.answer(archive, wanted.label.spelling(), &wanted.verbs);
        let service = format!("n{archive}.br/archive/2001/01.01.01.01");
        let said = if text.is_empty() {
            ArchiveReply::Nothing
        } else {
            let text = format!("ibi {{rep {}}} ibi.archiveservice {{rep {service}}} {text}", wanted.label);
            let pairs = Pairs::read(text.as_bytes(), &PairsLimits::default()).unwrap();
            let (service, hosts) = (service.parse().unwrap(), [format!("archive.n{archive}.br")]);
            let (label, verbs) = (&wanted.label, &wanted.verbs);
            ArchiveReply::from(check(
                &pairs,
                &AnswerExpectation { label, verbs, service: &service, hosts: &hosts },
            ))
        };
        RoundAnswer { archive: ArchiveId(archive as u64), said }
    }
}

fn wanted(item: &str, modifiers: &str, header: &str) -> RoundQuery {
    RoundQuery {
        verbs: Verbs::from(Relation::from_modifiers(modifiers).unwrap()),
        languages: AcceptedLanguages::parse(header),
        ..RoundQuery::new(item.parse().unwrap())
    }
}

fn path(found: &FoundUrl) -> &str {
    found.url.split_once(".br/").unwrap().1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// 2.4: no outdated Copy and no removed edition in the middle changes what `!` leads to.
    #[test]
    fn clause_2_4_the_last_edition_wherever_it_lives(
        editions in prop::collection::vec(held(), 1..12),
        names_first_unheld in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let world = World { editions, translations: Vec::new(), names_first_unheld };
        let last = world.editions.len() - 1;
        match world.resolve(wanted(&label(0), "!", ""), seed) {
            RoundDecision::Found(found) => prop_assert_eq!(path(&found), label(last)),
            RoundDecision::Deleted { living, .. } => {
                prop_assert!(!world.editions[last].is_live());
                let living = living.map(|living| living.label.to_string());
                let expected = (0..last).rev().find(|edition| world.editions[*edition].is_live());
                // With outdated Copies, Copies of removed items, or Archives that skip editions,
                // links may not reach every edition; the result is then any existing edition.
                let is_plain = world.editions.iter().all(|held| {
                    !held.0.contains(&Has::StaleCopy) && (!held.0.contains(&Has::Removed) || !held.is_live())
                });
                match living {
                    living if is_plain && !names_first_unheld => {
                        prop_assert_eq!(living, expected.map(label));
                    }
                    Some(living) => {
                        let is_it = |edition: &usize| label(*edition) == living && world.editions[*edition].is_live();
                        prop_assert!((0..last).any(|edition| is_it(&edition)), "{}", living);
                    }
                    None => {}
                }
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// 4.2 step 6: the best available language, wherever it is; otherwise the item itself.
    #[test]
    fn clause_4_2_6_the_best_translation_wherever_it_lives(
        item in held(),
        translations in prop::collection::vec(held(), 0..5),
        header in select(vec!["pt", "pt,en;q=0.5", "it;q=0.2,fr;q=0.9,pt;q=0.4", "de,en;q=0.1"]),
        seed in any::<u64>(),
    ) {
        // An outdated Copy alone knows no translation.
        prop_assume!(item.0.contains(&Has::Original));
        let languages = LANGUAGES.iter().map(|language| language.parse().unwrap());
        let translations: Vec<(Language, Held)> = languages.zip(translations).collect();
        let world = World { editions: vec![item], translations, names_first_unheld: false };
        let accepted = AcceptedLanguages::parse(header);
        let live = world.translations.iter().enumerate().filter(|(_, (_, held))| held.is_live());
        let best = accepted.choose(live.clone().map(|(_, (language, _))| *language));
        let expected = best.and_then(|best| live.clone().find(|(_, (language, _))| *language == best));
        let expected = expected.map_or_else(|| label(0), |(at, _)| translation_label(at));
        // All answer within the grace period here; later answers would not be awaited.
        let mut all = wanted(&label(0), "+", header);
        let decision = loop {
            let answers: Vec<RoundAnswer> = (0..ARCHIVES)
                .map(|archive| world.said((archive + seed as usize % ARCHIVES) % ARCHIVES, &all))
                .collect();
            match decide(&answers, &all) {
                RoundDecision::AskAgain(again) => all = all.next(&again),
                decision => break decision,
            }
        };
        match decision {
            RoundDecision::Found(found) => prop_assert_eq!(path(&found), expected),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// 2.4: both combined, `!+`: the best translation of the last edition, wherever both are.
    #[test]
    fn clause_2_4_a_translation_of_the_last_edition(
        editions in prop::collection::vec(held(), 1..8),
        translations in prop::collection::vec(held(), 0..4),
        names_first_unheld in any::<bool>(),
        turn in 0..ARCHIVES,
    ) {
        let last = editions.len() - 1;
        prop_assume!(editions[last].0.contains(&Has::Original));
        let languages = LANGUAGES.iter().map(|language| language.parse().unwrap());
        let translations: Vec<(Language, Held)> = languages.zip(translations).collect();
        let world = World { editions, translations, names_first_unheld };
        let header = "pt,fr;q=0.5,en;q=0.2";
        let live = world.translations.iter().enumerate().filter(|(_, (_, held))| held.is_live());
        let best = AcceptedLanguages::parse(header).choose(live.clone().map(|(_, (language, _))| *language));
        let expected = live.clone().find(|(_, (language, _))| Some(*language) == best);
        let expected = expected.map_or_else(|| label(last), |(at, _)| translation_label(at));
        let mut all = wanted(&label(0), "!+", header);
        let decision = loop {
            let said = |at| world.said((at + turn) % ARCHIVES, &all);
            let answers: Vec<RoundAnswer> = (0..ARCHIVES).map(said).collect();
            match decide(&answers, &all) {
                RoundDecision::AskAgain(again) => all = all.next(&again),
                decision => break decision,
            }
        };
        match decision {
            RoundDecision::Found(found) => prop_assert_eq!(path(&found), expected),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

/// 4.2 step 5: 30 editions, alternating between two Archives.
#[test]
fn clause_4_2_5_a_chain_of_30_editions_over_two_archives() {
    let held = |edition: usize| {
        let mut has = [Has::Nothing; ARCHIVES];
        has[edition % 2] = Has::Original;
        Held(has)
    };
    let editions = (0..30).map(held).collect();
    let world = World { editions, translations: Vec::new(), names_first_unheld: false };
    let RoundDecision::Found(found) = world.resolve(wanted(&label(0), "!", ""), 7) else { panic!() };
    assert_eq!(path(&found), label(29));
}

/// 2.4: two outdated Copies lead to the fourth edition on two paths; the fifth is removed. The
/// fourth is not returned in its place, whichever path is tried first.
#[test]
fn clause_2_4_a_copy_on_a_second_path_does_not_replace_a_removed_edition() {
    use Has::{Copy, Nothing, Original, Removed, StaleCopy};
    let editions = vec![
        Held([Copy, Original, Nothing]),
        Held([Original, Copy, Nothing]),
        Held([Copy, StaleCopy, Original]),
        Held([StaleCopy, Original, Nothing]),
        Held([Nothing, Nothing, Removed]),
    ];
    let world = World { editions, translations: Vec::new(), names_first_unheld: false };
    for seed in (0..200).map(|number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
        let decision = world.resolve(wanted(&label(0), "!", ""), seed);
        let RoundDecision::Deleted { living, .. } = decision else { panic!("{seed}: {decision:?}") };
        assert_eq!(living.map(|living| living.label.to_string()), Some(label(3)), "{seed}");
    }
}
