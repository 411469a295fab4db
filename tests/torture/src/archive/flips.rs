//! Bits that flip on their way from the disk: no damaged byte is given out as good.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::collection::{answers, same_folder};
use super::jobs::{self, Job, text};
use super::tally::Tally;
use super::trial::Trial;
use crate::machine::{Ended, finish};

/// What flips, in so many of a hundred reads.
const FLIPS: [&str; 6] = [
    "100 /content/doc/",
    "30 /content/doc/",
    "5 /tree/",
    "40 inventory.json",
    "60 item.json",
    "60 oai_dc.xml",
];

pub fn flips(mut trial: Trial, rounds: usize) -> Tally {
    let cable = Cable::new(&trial);
    trial.machine.init_archive();
    let mut source = trial.new_source();
    // More than one block.
    let folder = source.files.take().expect("it has files");
    jobs::write(&folder.join("large.bin"), 1_200_000, &mut trial.machine.chance);
    source.files = Some(folder);
    let mut paths = trial.run(&Job::deposit(source));
    for _ in 0..2 {
        let job = Job::deposit(trial.new_source());
        paths.extend(trial.run(&job));
    }
    let update = Job::update(&paths[1], trial.new_source());
    trial.run(&update);
    let good: Vec<PathBuf> = (0..paths.len()).map(|n| trial.machine.home.join(format!("good {n}"))).collect();
    for (path, bag) in paths.iter().zip(&good) {
        assert_eq!(export(&trial, path, bag).status, Some(0), "nothing flips yet");
    }
    for round in 0..rounds {
        if trial.is_over() {
            break;
        }
        let flips = FLIPS[round % FLIPS.len()];
        cable.flip(flips);
        for (path, good) in paths.iter().zip(&good) {
            let bag = trial.machine.home.join("bag");
            let _ = fs::remove_dir_all(&bag);
            let ended = export(&trial, path, &bag);
            match same_folder(&bag, good) {
                Err(what) if ended.status == Some(0) => {
                    trial.tally.damaged(format!("{flips}: {path}: {what}"))
                }
                _ if ended.status != Some(0) && bag.exists() => {
                    trial.tally.wrong(format!("{flips}: {path}: refused, and a bag is there"));
                }
                _ => {}
            }
        }
        audit(&mut trial, &cable, flips);
        rebuild(&mut trial, &cable, flips);
        trial.check_holdings(&format!("{flips}, and no more"));
    }
    trial.tally.troubles += cable.flipped();
    trial.tally
}

fn export(trial: &Trial, path: &str, out: &std::path::Path) -> Ended {
    finish(&mut trial.machine.at(&trial.machine.data(), &["archive", "export", path, "--out", &text(out)]))
}

/// An audit says what changed, and that it is right again when nothing flips.
fn audit(trial: &mut Trial, cable: &Cable, flips: &str) {
    let audit = |trial: &Trial| {
        finish(&mut trial.machine.at(&trial.machine.data(), &["archive", "audit", "--json", "--restart"]))
    };
    let before = cable.flipped();
    let ended = audit(trial);
    let found = !ended.printed.contains(r#""findings":[]"#);
    if cable.flipped() > before && (!found || !matches!(ended.status, Some(1 | 3))) {
        trial.tally.wrong(format!("{flips}: an audit finds nothing: {:?} {}", ended.status, ended.printed));
    }
    cable.flip("");
    let ended = audit(trial);
    if ended.status != Some(0) {
        trial.tally.wrong(format!("{flips}, and no more: an audit finds {} {}", ended.printed, ended.said));
    }
    cable.flip(flips);
}

/// What was misread while rebuilding is not remembered: rebuilt once more, all is as it was.
fn rebuild(trial: &mut Trial, cable: &Cable, flips: &str) {
    let data = trial.machine.data();
    cable.flip("");
    let before = answers(&trial.machine, &data);
    cable.flip(flips);
    for _ in 0..4 {
        finish(&mut trial.machine.at(&data, &["archive", "rebuild", "--json"]));
    }
    cable.flip("");
    let ended = finish(&mut trial.machine.at(&data, &["archive", "rebuild", "--json"]));
    let after = answers(&trial.machine, &data);
    if ended.status != Some(0) || before != after {
        let differs = before.lines().zip(after.lines()).find(|(one, other)| one != other);
        trial.tally.wrong(format!("{flips}: a misread rebuild left {} {differs:?}", ended.printed));
    }
}

/// A bad cable between the Archive and its disk (`flipbits.c`, built beside this program).
struct Cable {
    real: PathBuf,
    control: PathBuf,
    log: PathBuf,
    mount: PathBuf,
}

impl Cable {
    fn new(trial: &Trial) -> Self {
        let home = &trial.machine.home;
        let cable = Self {
            real: home.join("real"),
            control: home.join("flips"),
            log: home.join("flipped"),
            mount: trial.machine.data(),
        };
        fs::create_dir_all(&cable.real).expect("room");
        let status =
            Command::new(std::env::var("FLIPBITS").expect("FLIPBITS names the filesystem's program"))
                .arg(&cable.mount)
                .env("FLIP_ROOT", &cable.real)
                .env("FLIP_CONTROL", &cable.control)
                .env("FLIP_LOG", &cable.log)
                .status();
        assert!(status.is_ok_and(|status| status.success()), "the filesystem cannot be mounted");
        cable
    }

    fn flip(&self, what: &str) {
        fs::write(&self.control, format!("{what}\n")).expect("room");
    }

    fn flipped(&self) -> usize {
        fs::read_to_string(&self.log).map_or(0, |log| log.lines().count())
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.mount).status();
    }
}
