//! Editions and translations of the item that is handed over (clause 2.4): whoever has it names
//! them at any time, and in the end the taker decides about them.

use super::address::Address;
use super::figures::Figures;
use crate::archive::links::list;
use crate::machine::Machine;

/// Items of the giver that links lead to and from.
#[derive(Debug, Clone, Default)]
pub struct Family {
    /// Of which the item that is handed over is the next edition.
    earlier: String,
    item: String,
    /// Its next edition, and one that was proposed beside that.
    edition: String,
    rival: String,
    /// Its translation into Portuguese.
    translation: String,
}

impl Family {
    /// Deposits all of them, with what runs a command and gives what it prints.
    pub fn deposit(run: impl Fn(&[&str]) -> String, source: &str) -> Self {
        let deposit = |title: &str, more: &[&str]| {
            let title = format!("title={title}");
            let arguments = [&["archive", "deposit", source, "--dc", &title], more].concat();
            run(&arguments).split(['\t', '\n']).next().unwrap_or_default().to_owned()
        };
        let english = ["--language", "en", "--next-edition-of"];
        let edition_of = |title: &str, older: &str| deposit(title, &[&english[..], &[older]].concat());
        let earlier = deposit("Earlier", &["--language", "en"]);
        let item = edition_of("Handed over", &earlier);
        let edition = edition_of("Later", &item);
        let rival = edition_of("Later, says somebody", &item);
        let translation = deposit("Traduzido", &["--language", "pt", "--translation-of", &item]);
        Self { earlier, item, edition, rival, translation }
    }

    /// The item that is handed over.
    pub fn item(&self) -> &str {
        &self.item
    }

    /// Who has an item says what its last edition and its translation are.
    pub fn look(&self, address: &Address, figures: &mut Figures) {
        let questions = [
            (&self.item, "GetLastEdition", "ibi.nextedition ", &self.edition),
            (&self.item, "GetTranslation(pt)", "ibi.translation(pt) ", &self.translation),
            (&self.earlier, "GetLastEdition", "ibi.nextedition ", &self.item),
        ];
        for (label, verbs, name, right) in questions {
            // Nobody answers, or it has nothing of it.
            let Some(answer) = address.ask_for(label, verbs).filter(|answer| !answer.is_empty()) else {
                continue;
            };
            let is_right =
                |line: &str| line.strip_prefix(name).is_some_and(|led| led.contains(right.as_str()));
            if answer.lines().any(is_right) {
                figures.leads += 1;
            } else if figures.misled == 0 {
                let answer = answer.lines().collect::<Vec<_>>().join(" | ");
                figures.misled(format!("{verbs} of {label} is not {right}: {answer}"));
            }
        }
    }

    /// The taker has all links of the item, what nobody decided among them; the giver has left
    /// those behind that lead to what it gave. Neither is online.
    pub fn check(&self, machine: &Machine, giver: &Address, taker: &Address, figures: &mut Figures) {
        let expected = [
            ("edition", &self.earlier, &self.item, "accepted"),
            ("edition", &self.item, &self.edition, "accepted"),
            ("edition", &self.item, &self.rival, "proposed"),
            ("translation", &self.item, &self.translation, "accepted"),
        ];
        for (name, address) in [("giver", giver), ("taker", taker)] {
            let listed = match list(machine, &address.data) {
                Ok(listed) => listed,
                Err(said) => return figures.misled(format!("the {name} does not list links: {said}")),
            };
            for (kind, older, newer, status) in expected {
                // Without a resolver, nobody confirms what the earlier item's Archive decided.
                let is_hearsay = name == "taker" && *older == self.earlier;
                let status = if is_hearsay { "unconfirmed" } else { status };
                let found = listed.get(&(kind.to_owned(), older.clone(), newer.clone()));
                if found.is_none_or(|found| found != status) {
                    figures.misled(format!(
                        "at the end: at the {name} the {kind} {newer} of {older} is {found:?}, not {status}"
                    ));
                }
            }
        }
    }
}
