//! Asks both Archives all the time what they are, and looks at what they have on disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::address::{Address, Answer, Files, files};
use super::figures::Figures;
use super::links::Family;

pub struct Watch<'a> {
    pub giver: Address,
    pub taker: Address,
    pub files: &'a Files,
    pub keep: bool,
    pub family: &'a Family,
}

/// Links are asked for one time in so many.
const SELDOM: usize = 4;

/// What one Archive answered so far.
#[derive(Default, Clone, Copy)]
struct Seen {
    /// Whether its last answer was Original.
    original: bool,
    /// Whether the other one has answered Original since then.
    other_since: bool,
}

impl Watch<'_> {
    /// Until it is told to stop, and once more.
    pub fn run(&self, stop: &AtomicBool) -> Figures {
        let mut figures = Figures::default();
        let mut seen = [Seen::default(); 2];
        let mut arrived = false;
        loop {
            let last = stop.load(Ordering::Relaxed);
            for (place, address) in [&self.giver, &self.taker].into_iter().enumerate() {
                note(&mut seen, place, address.ask(), &mut figures);
            }
            if figures.asks % SELDOM == 0 || last {
                for address in [&self.giver, &self.taker] {
                    self.family.look(address, &mut figures);
                }
            }
            self.places(&mut arrived, &mut figures);
            figures.asks += 1;
            if last {
                return figures;
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// The bytes are at the giver until the taker has said that it has the Original, and then at
    /// least there.
    fn places(&self, arrived: &mut bool, figures: &mut Figures) {
        if figures.fewer_places > 0 {
            return;
        }
        // In this order: what is looked at later was so or came to be so after the giver's bytes
        // were gone.
        let at_giver = files(&self.giver.object()) == *self.files;
        let (told, accepted) = (self.giver.has("given"), self.taker.has("accept"));
        let at_taker = files(&self.taker.object()) == *self.files;
        if *arrived && !at_taker {
            figures.fewer_places("the taker no longer has what it had".to_owned());
        }
        *arrived |= at_taker;
        if at_giver {
            return;
        }
        if self.keep || !told || !accepted || !at_taker {
            figures.fewer_places(format!(
                "the giver has not all bytes; a copy was to stay: {}; it was told: {told}; the taker accepted: {accepted}; the \
                 taker has all: {at_taker}",
                self.keep
            ));
        }
    }
}

/// An Archive that answers Original before and after the other one does: both were at the same
/// time.
fn note(seen: &mut [Seen; 2], place: usize, answer: Answer, figures: &mut Figures) {
    match answer {
        Answer::Down => {}
        Answer::Original => {
            if seen[place].original && seen[place].other_since && figures.two_originals == 0 {
                figures.two_originals("both answer so".to_owned());
            }
            seen[place] = Seen { original: true, other_since: false };
            seen[1 - place].other_since = seen[1 - place].original;
        }
        Answer::Nothing | Answer::Copy | Answer::Deleted => seen[place] = Seen::default(),
    }
}
