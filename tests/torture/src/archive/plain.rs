//! The plain tree (`docs/formats/plain-tree.md`), killed or its disk unplugged at every call that
//! changes it: what lies there is whole in the meantime, and running the command again ends in the
//! same tree as a fresh one.

mod snapshot;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::calls::{Call, killed_at, some, trace_below};
use super::image::Image;
use super::jobs::{Job, text};
use super::tally::Tally;
use super::trial::{Trial, copy_folder};
use crate::machine::finish;
use snapshot::TreeSnapshot;

/// Calls before anything of an item is written.
const FIRST_CALLS: usize = 6;

/// What a plain tree is made from, and what it should become.
struct PlainCase {
    name: &'static str,
    option: Option<&'static str>,
    /// The tree that is there before the command runs; none if it begins one.
    before: Option<PathBuf>,
    /// What the command must end in.
    wanted: TreeSnapshot,
}

/// kill -9 at so many calls of each command, or at all of them.
pub fn kill(mut trial: Trial, number: usize) -> Tally {
    let cases = cases(&mut trial);
    for case in &cases {
        at_calls(&mut trial, case, number, None);
    }
    watch::kill(&mut trial, number.div_ceil(4));
    trial.tally
}

/// The same with a power cut of the disk that the plain tree lies on.
pub fn power(mut trial: Trial, number: usize) -> Tally {
    let cases = cases(&mut trial);
    let out = out_folder(&trial);
    fs::create_dir_all(&out).expect("room");
    let image = Image::at(&trial.machine, &out, 64);
    // Hard links do not lead from one disk to another.
    for case in cases.iter().filter(|case| case.option.is_none()) {
        at_calls(&mut trial, case, number, Some(&image));
    }
    trial.tally
}

fn out_folder(trial: &Trial) -> PathBuf {
    trial.machine.home.join("plain")
}

/// A new tree; one with hard links; one that is brought up to date after an item was updated, one
/// removed and one deposited.
fn cases(trial: &mut Trial) -> Vec<PlainCase> {
    trial.machine.init_archive();
    let [updated, removed, same] = [(); 3].map(|()| {
        let job = Job::deposit(trial.new_source());
        trial.run(&job).pop().expect("it was deposited")
    });
    let earlier = trial.machine.home.join("plain-earlier");
    fresh(trial, &earlier, None);
    let update = Job::update(&updated, trial.new_source());
    trial.run(&update);
    let title = trial.collection.items[&removed].title.clone();
    trial.run(&Job::remove(&removed, &title, false));
    let new = Job::deposit(trial.new_source());
    trial.run(&new);
    if !earlier.join(&same).join("doc").is_dir() {
        trial.tally.wrong(format!("{same} is not laid out"));
    }
    let [copied, linked] = [("copied", None), ("linked", Some("--link"))].map(|(name, option)| {
        let folder = trial.machine.home.join(format!("plain-{name}"));
        fresh(trial, &folder, option);
        TreeSnapshot::of(&folder)
    });
    vec![
        PlainCase { name: "new", option: None, before: None, wanted: copied.clone() },
        PlainCase { name: "linked", option: Some("--link"), before: None, wanted: linked },
        PlainCase { name: "brought up to date", option: None, before: Some(earlier), wanted: copied },
    ]
}

/// A tree that nothing happened to.
fn fresh(trial: &mut Trial, folder: &Path, option: Option<&str>) {
    let _ = fs::remove_dir_all(folder);
    let ended = finish(&mut trial.machine.at(&trial.machine.data(), &plain_job(folder, option).arguments()));
    if ended.status != Some(0) || !ended.printed.contains("laid\t") {
        trial.tally.wrong(format!("a fresh plain tree: {:?} {}", ended.status, ended.said));
    }
}

fn plain_job(folder: &Path, option: Option<&str>) -> Job {
    let mut arguments = ["archive", "plain-tree", "--out"].map(str::to_owned).to_vec();
    arguments.push(text(folder));
    arguments.extend(option.map(str::to_owned));
    Job { arguments, changes: Vec::new() }
}

fn at_calls(trial: &mut Trial, case: &PlainCase, number: usize, image: Option<&Image>) {
    let out = out_folder(trial);
    let job = plain_job(&out, case.option);
    lay_out(&out, case.before.as_deref());
    let (calls, ended) = trace_below(&trial.machine, &job, &out);
    if ended.status != Some(0) {
        trial.tally.wrong(format!("{:?} fails: {}", job.arguments, ended.said));
    }
    if calls.is_empty() {
        trial.tally.wrong(format!("{}: no call changes the plain tree", case.name));
    }
    let before = case.before.as_deref().map(TreeSnapshot::of).unwrap_or_default();
    let chance = trial.machine.chance.next();
    // With its first calls a tree is begun: they are never left out.
    let rest = calls.get(FIRST_CALLS..).unwrap_or_default();
    let calls: Vec<&Call> = calls.iter().take(FIRST_CALLS).chain(some(rest, number, chance)).collect();
    for call in calls {
        if trial.is_over() {
            return;
        }
        lay_out(&out, case.before.as_deref());
        if image.is_some() {
            sync_all(&out);
        }
        let killed = killed_at(&trial.machine, &job, call);
        trial.tally.troubles += usize::from(killed.status.is_none_or(|status| status > 128));
        let Call { name, number, about, .. } = call;
        let about = format!("plain tree, {}, at {name} {number} ({about}", case.name);
        if let Some(image) = image {
            image.cut();
        }
        let left = TreeSnapshot::of(&out);
        left.check_items(&[&before, &case.wanted], &about, &mut trial.tally);
        finishes(trial, &job, &out, &case.wanted, &about);
    }
}

/// The command, run again, ends in the tree that it should.
fn finishes(trial: &mut Trial, job: &Job, out: &Path, wanted: &TreeSnapshot, about: &str) {
    let again = finish(&mut trial.machine.at(&trial.machine.data(), &job.arguments()));
    if again.status != Some(0) {
        trial.tally.wrong(format!("{about}: run again it fails: {:?} {}", again.status, again.said));
    }
    if let Some(difference) = TreeSnapshot::of(out).difference(wanted) {
        trial.tally.wrong(format!("{about}: run again it differs from a fresh plain tree: {difference}"));
    }
}

/// Puts a tree in the place of what is there; the folder itself may be a mounted disk.
fn lay_out(out: &Path, tree: Option<&Path>) {
    fs::create_dir_all(out).expect("room");
    for entry in fs::read_dir(out).expect("ours").flatten() {
        if entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).expect("ours");
        } else {
            fs::remove_file(entry.path()).expect("ours");
        }
    }
    for entry in tree.into_iter().flat_map(|tree| fs::read_dir(tree).expect("ours").flatten()) {
        copy_folder(&entry.path(), &out.join(entry.file_name()));
    }
}

fn sync_all(folder: &Path) {
    let status = Command::new("sync").arg("-f").arg(folder).status();
    assert!(status.is_ok_and(|status| status.success()), "{} cannot be synced", folder.display());
}
