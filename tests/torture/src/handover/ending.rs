//! What must be true when a hand-over is over.

use std::fs;

use super::address::{Answer, files};
use super::figures::Figures;
use super::pair::Pair;
use super::side::Side;
use crate::archive::collection::answers;
use crate::machine::{Machine, finish};

/// One Original, at the taker, in the second epoch; at the giver what was to stay; and both
/// Archives are sound.
pub fn check(machine: &Machine, pair: &mut Pair, keep: bool, figures: &mut Figures) {
    let kept = if keep { Answer::Copy } else { Answer::Nothing };
    for (name, side, expected) in [("giver", &pair.giver, kept), ("taker", &pair.taker, Answer::Original)] {
        let answer = side.address.ask();
        if answer != expected {
            figures.wrong(format!("at the end: the {name} answers {answer:?}: {}", side.said()));
        }
    }
    if last(&pair.taker) != "accept Original epoch=2" {
        figures.wrong(format!("at the end: the taker's journal says {}", last(&pair.taker)));
    }
    let expected = if keep { "given Copy epoch=2" } else { "drop Copy epoch=2" };
    if last(&pair.giver) != expected {
        figures.wrong(format!("at the end: the giver's journal says {}", last(&pair.giver)));
    }
    if keep && files(&pair.giver.address.object()) != files(&pair.taker.address.object()) {
        figures.wrong("at the end: the trees differ".to_owned());
    }
    for side in [&mut pair.giver, &mut pair.taker] {
        sound(machine, side, figures);
    }
    pair.family.check(machine, &pair.giver.address, &pair.taker.address, figures);
}

/// What happened to the item last.
fn last(side: &Side) -> String {
    let path = format!(" path={} ", side.address.path);
    let journal = side.address.journal();
    let line = journal.lines().rfind(|line| line.contains(&path)).unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let state = words.iter().find_map(|word| word.strip_prefix("state=")).unwrap_or_default();
    let epoch = words.iter().find(|word| word.starts_with("epoch=")).unwrap_or(&"");
    format!("{} {state} {epoch}", words.get(2).unwrap_or(&""))
}

/// The audit finds nothing; stopped and rebuilt, it answers as before; nothing is left over.
fn sound(machine: &Machine, side: &mut Side, figures: &mut Figures) {
    let (data, url) = (side.address.data.clone(), side.url());
    let audit = finish(&mut machine.at(&data, &["archive", "audit"]));
    if audit.status != Some(0) {
        figures.wrong(format!("at the end: {url}: the audit found {} {}", audit.printed, audit.said));
    }
    side.stop();
    let show = |path: &str| finish(&mut machine.at(&data, &["archive", "show", path, "--json"])).printed;
    let before = answers(machine, &data) + &show(&side.address.path);
    for folder in ["staging", "service/handovers", "service/copies"] {
        let left = fs::read_dir(data.join(folder)).into_iter().flatten().flatten().next();
        if let Some(left) = left {
            figures.wrong(format!("at the end: {} is left over", left.path().display()));
        }
    }
    let rebuilt = finish(&mut machine.at(&data, &["archive", "rebuild", "--json"]));
    if rebuilt.status != Some(0) || !rebuilt.printed.contains(r#""adopted":[],"missing":[],"damaged":[]"#) {
        figures.wrong(format!("at the end: {url}: rebuilding found {} {}", rebuilt.printed, rebuilt.said));
    }
    let after = answers(machine, &data) + &show(&side.address.path);
    if before != after {
        let differs = before.lines().zip(after.lines()).find(|(one, other)| one != other);
        figures.wrong(format!("at the end: {url}: opening differs from rebuilding: {differs:?}"));
    }
}
