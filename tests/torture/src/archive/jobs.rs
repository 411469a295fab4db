//! What is done to an Archive: commands, and the changes that each makes or does not make.

use std::fs;
use std::path::{Path, PathBuf};

use super::links::LinkChange;
use crate::machine::Chance;

/// What an item is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub title: String,
    /// A folder with its files; nothing if it was removed.
    pub files: Option<PathBuf>,
}

/// A change of an item, or a new one.
#[derive(Debug, Clone)]
pub struct Change {
    /// The path of its object, which is its label; nothing if it is new.
    pub path: Option<String>,
    pub to: Version,
    /// In a table, what its row deposits; in a tree, the label of the repository.
    pub row: Option<String>,
    /// What it makes of links: all of it, or nothing if the change is not made.
    pub links: Vec<LinkChange>,
}

impl Change {
    fn new(path: Option<&str>, to: Version) -> Self {
        Self { path: path.map(str::to_owned), to, row: None, links: Vec::new() }
    }
}

/// A row of a table; empty is what it does not say.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub title: String,
    pub language: &'static str,
    pub edition_of: String,
    pub translation_of: String,
}

impl Row {
    pub fn new(title: String) -> Self {
        Self { title, ..Self::default() }
    }
}

/// A command.
#[derive(Debug, Clone)]
pub struct Job {
    pub arguments: Vec<String>,
    pub changes: Vec<Change>,
}

impl Job {
    pub fn deposit(source: Version) -> Self {
        let folder = source.files.as_deref().map(text).unwrap_or_default();
        let title = format!("title={}", source.title);
        let arguments = words(&["archive", "deposit", &folder, "--dc", &title, "--dc", "creator=Torquemada"]);
        Self { arguments, changes: vec![Change::new(None, source)] }
    }

    pub fn update(path: &str, to: Version) -> Self {
        let folder = to.files.as_deref().map(text).unwrap_or_default();
        let title = format!("title={}", to.title);
        let arguments = words(&["archive", "update", path, &folder, "--dc", &title]);
        Self { arguments, changes: vec![Change::new(Some(path), to)] }
    }

    pub fn remove(path: &str, title: &str, purge: bool) -> Self {
        let mut arguments = words(&["archive", "remove", path, "--reason", "torture", "--yes"]);
        arguments.extend(purge.then(|| "--purge".to_owned()));
        let to = Version { title: title.to_owned(), files: None };
        Self { arguments, changes: vec![Change::new(Some(path), to)] }
    }

    /// The same command, which states a link from its item, too: `option` is `--next-edition-of` or
    /// `--translation-of`.
    pub fn stating(mut self, option: &str, older: &str, links: Vec<LinkChange>) -> Self {
        self.arguments.extend(words(&[option, older]));
        self.changes[0].links.extend(links);
        self
    }

    /// Accepts, refuses or withdraws the link that an item states to another one.
    pub fn decide(decision: &str, (older, newer): (&str, &str), to: Version, links: Vec<LinkChange>) -> Self {
        let arguments = words(&["archive", "links", decision, newer, "--of", older]);
        Self { arguments, changes: vec![Change { links, ..Change::new(Some(newer), to) }] }
    }

    /// A table of so many rows, written into a new folder.
    pub fn table(folder: &Path, name: &str, rows: u64, chance: &mut Chance) -> Self {
        let rows: Vec<Row> = (0..rows).map(|row| Row::new(format!("{name} {row}"))).collect();
        Self::table_of(folder, &rows, chance)
    }

    /// The same of these rows.
    pub fn table_of(folder: &Path, rows: &[Row], chance: &mut Chance) -> Self {
        fs::create_dir_all(folder).expect("room");
        let mut table = "file,dc.title,language,next-edition-of,translation-of\n".to_owned();
        let mut changes = Vec::new();
        for (row, Row { title, language, edition_of, translation_of }) in rows.iter().enumerate() {
            let file = format!("row {row}");
            let source = Version { title: title.clone(), files: Some(folder.join(&file)) };
            fs::create_dir(folder.join(&file)).expect("a new folder");
            let length = 1 + chance.below(5000);
            write(&folder.join(&file).join("text.txt"), length, chance);
            table.push_str(&format!("{file},{title},{language},{edition_of},{translation_of}\n"));
            let links = [("edition", edition_of), ("translation", translation_of)];
            let links = links.into_iter().filter(|(_, older)| !older.is_empty());
            let links = links.map(|(kind, older)| LinkChange::of_new(kind, older, "accepted")).collect();
            changes.push(Change { row: Some(file), links, ..Change::new(None, source) });
        }
        let path = folder.join("table.csv");
        fs::write(&path, table).expect("room");
        Self { arguments: words(&["archive", "deposit", "--table", &text(&path)]), changes }
    }

    /// A tree of so many uniform repositories, written into a new folder.
    pub fn import(folder: &Path, repositories: u64, chance: &mut Chance) -> Self {
        let mut changes = Vec::new();
        for number in 0..repositories {
            let label = format!("tree.example/old/1998/08.02.08.{number:02}");
            let doc = folder.join(&label).join("doc");
            fs::create_dir_all(&doc).expect("room");
            let length = 1 + chance.below(5000);
            write(&doc.join("text.txt"), length, chance);
            // Without metadata beside it, its title is its label.
            let to = Version { title: label.clone(), files: Some(doc) };
            changes.push(Change { path: None, to, row: Some(label), links: Vec::new() });
        }
        Self { arguments: words(&["archive", "import", &text(folder)]), changes }
    }

    /// Whether running it again brings what is missing, and nothing twice.
    pub fn can_resume(&self) -> bool {
        self.arguments.get(1).is_some_and(|command| command == "import")
    }

    pub fn rebuild() -> Self {
        Self { arguments: words(&["archive", "rebuild"]), changes: Vec::new() }
    }

    /// Finishes or undoes what was cut off.
    pub fn opening() -> Self {
        Self { arguments: words(&["archive", "list"]), changes: Vec::new() }
    }

    pub fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// The path of the object that each change was acknowledged with, as printed; a last line that
    /// was cut off says nothing.
    pub fn acknowledged(&self, printed: &str) -> Vec<Option<String>> {
        let whole = printed.rfind('\n').map_or("", |end| &printed[..=end]);
        let lines: Vec<Vec<&str>> = whole.lines().map(|line| line.split('\t').collect()).collect();
        let of = |change: &Change| match &change.row {
            // Who decides a link is told the link.
            None => lines.first().map(|labels| change.path.clone().unwrap_or_else(|| labels[0].to_owned())),
            Some(row) => lines.iter().find_map(|fields| match fields[..] {
                [_, "deposited" | "already", file, path, ..] if file == row => Some(path.to_owned()),
                ["imported" | "already", label, ..] if label == row => Some(label.to_owned()),
                _ => None,
            }),
        };
        self.changes.iter().map(of).collect()
    }
}

/// Files that no other item has, under names that some would trip over.
pub fn source(folder: &Path, title: &str, chance: &mut Chance) -> Version {
    fs::create_dir_all(folder.join("sub/números")).expect("room");
    write(&folder.join("index.html"), 200, chance);
    write(&folder.join("sub/two words.txt"), 3000, chance);
    write(&folder.join("sub/números/ação.bin"), 40_000, chance);
    fs::write(folder.join("empty"), "").expect("room");
    Version { title: title.to_owned(), files: Some(folder.to_owned()) }
}

pub fn write(path: &Path, length: u64, chance: &mut Chance) {
    let bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| chance.next().to_le_bytes()).collect();
    fs::write(path, &bytes[..length as usize]).expect("room");
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

pub fn text(path: &Path) -> String {
    path.to_str().expect("our own name").to_owned()
}
