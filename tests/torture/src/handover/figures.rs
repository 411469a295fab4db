//! What is counted.

use std::fmt;

#[derive(Default)]
pub struct Figures {
    /// Calls that change disk or network in a hand-over: of the giver, of the taker, of the
    /// command.
    pub calls: [u64; 3],
    /// Hand-overs.
    pub rounds: usize,
    /// Processes that were killed at a call, of each.
    pub kills: [usize; 3],
    /// Networks that were cut at a call.
    pub cuts: usize,
    /// Commands that were given once more: the hand-over had not been noted when there was trouble.
    pub again: usize,
    /// How often the two Archives were asked, and their trees compared.
    pub asks: usize,
    pub two_originals: usize,
    pub fewer_places: usize,
    pub stuck: usize,
    /// How often who has an item named its last edition or its translation, and how often not, or
    /// another one.
    pub leads: usize,
    pub misled: usize,
    pub wrongs: Vec<String>,
}

impl Figures {
    pub fn two_originals(&mut self, what: String) {
        self.two_originals += 1;
        self.wrongs.push(format!("two originals: {what}"));
    }

    pub fn fewer_places(&mut self, what: String) {
        self.fewer_places += 1;
        self.wrongs.push(format!("fewer places: {what}"));
    }

    pub fn stuck(&mut self, what: String) {
        self.stuck += 1;
        self.wrongs.push(format!("stuck: {what}"));
    }

    pub fn misled(&mut self, what: String) {
        self.misled += 1;
        self.wrongs.push(format!("misled: {what}"));
    }

    pub fn wrong(&mut self, what: String) {
        self.wrongs.push(what);
    }

    /// Takes those of a round in; `about` says which.
    pub fn add(&mut self, other: Self, about: &str) {
        self.rounds += 1;
        self.cuts += other.cuts;
        self.again += other.again;
        self.asks += other.asks;
        self.two_originals += other.two_originals;
        self.fewer_places += other.fewer_places;
        self.stuck += other.stuck;
        self.leads += other.leads;
        self.misled += other.misled;
        for (all, more) in self.kills.iter_mut().zip(other.kills) {
            *all += more;
        }
        self.wrongs.extend(other.wrongs.into_iter().map(|wrong| format!("{about}: {wrong}")));
    }

    pub fn holds(&self) -> bool {
        self.wrongs.is_empty() && self.kills.iter().sum::<usize>() > 0 && self.leads > 0
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, rounds, kills, cuts, again, asks, .. } = self;
        let Self { two_originals, fewer_places, stuck, leads, misled, wrongs, .. } = self;
        let [giver, taker, command] = calls;
        write!(f, "{rounds} hand-overs; ")?;
        write!(f, "killed: giver {} (of {giver} calls), taker {} (of {taker}), ", kills[0], kills[1])?;
        write!(f, "command {} (of {command}); {cuts} networks cut, {again} begun again, ", kills[2])?;
        write!(
            f,
            "asked {asks} times, for editions and translations {leads} times; {two_originals} two originals, {fewer_places} \
             fewer places, {misled} misled, {stuck} stuck"
        )?;
        if !wrongs.is_empty() {
            write!(f, "; {} WRONG", wrongs.len())?;
        }
        wrongs.iter().take(20).try_for_each(|wrong| write!(f, "\n  WRONG: {wrong}"))
    }
}
