//! What is counted.

use std::fmt;

#[derive(Default)]
pub struct Tally {
    /// Kills, cuts, errors, flips.
    pub troubles: usize,
    /// Changes that were acknowledged.
    pub acknowledged: usize,
    /// Acknowledged changes that were not there after.
    pub lost: usize,
    /// Items that were there in part.
    pub half: usize,
    /// Files that were given out and are not what was deposited.
    pub damaged: usize,
    /// Links that were found as they should stand.
    pub links: usize,
    /// Trees that strangers called valid.
    pub valid: usize,
    /// Other things that must not happen.
    pub wrongs: Vec<String>,
}

impl Tally {
    pub fn lost(&mut self, what: String) {
        self.lost += 1;
        self.wrongs.push(format!("lost: {what}"));
    }

    pub fn half(&mut self, what: String) {
        self.half += 1;
        self.wrongs.push(format!("half-visible: {what}"));
    }

    pub fn damaged(&mut self, what: String) {
        self.damaged += 1;
        self.wrongs.push(format!("damaged and given out: {what}"));
    }

    pub fn wrong(&mut self, what: String) {
        self.wrongs.push(what);
    }

    pub fn holds(&self) -> bool {
        self.wrongs.is_empty() && self.troubles > 0 && self.acknowledged > 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { troubles, acknowledged, lost, half, damaged, links, valid, wrongs } = self;
        write!(
            f,
            "{troubles} troubles, {acknowledged} acknowledged changes, {lost} lost, {half} half-visible, "
        )?;
        write!(f, "{damaged} damaged files given out; {valid} trees valid for strangers")?;
        if *links > 0 {
            write!(f, "; {links} links as they should stand")?;
        }
        if !wrongs.is_empty() {
            write!(f, "; {} WRONG", wrongs.len())?;
        }
        wrongs.iter().take(20).try_for_each(|wrong| write!(f, "\n  WRONG: {wrong}"))
    }
}
