//! Deposits from a table: one row an item (`docs/formats/table.md`).

mod columns;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};

use ibi_store::digests::hex;
use ibi_store::ocfl::logical;
use sha2::{Digest as _, Sha256};

use crate::ArchiveError;
use crate::access::Access;
use crate::archive::{Archive, Holdings};
use crate::commit::Prepared;
use crate::deposit::{Draft, Origin, Source, titled, told_dates};
use crate::rules;
use columns::Columns;

/// So many staged bytes are committed at the latest.
const LARGE: u64 = 256 << 20;

/// What became of a row.
#[derive(Debug)]
pub struct Report {
    /// The line of the table where it begins; the heading is line 1.
    pub line: u64,
    /// What it says to deposit.
    pub file: String,
    /// What was done.
    pub outcome: Outcome,
}

/// What was done with a row.
#[derive(Debug)]
pub enum Outcome {
    /// It is an item now: the path of its object.
    Deposited(String),
    /// It was an item already, since an earlier run.
    Already(String),
    /// It would be deposited.
    Right,
    /// It cannot be.
    Refused(ArchiveError),
}

/// Told of each row, in order, when what was done with it is safe; says whether to go on.
pub type Tell<'a> = dyn FnMut(&Holdings, Report) -> bool + 'a;

/// A table to deposit from.
pub struct Table {
    path: PathBuf,
    folder: PathBuf,
    columns: Columns,
    rows: csv::Reader<BufReader<File>>,
    /// How often each row was there already: rows may be equal on purpose.
    seen: HashMap<[u8; 32], u32>,
    length: u64,
    /// What is to be added to the reader's line numbers: it counts the end of a line, where that is CR LF, to the next.
    behind: u64,
}

/// A row that can be deposited.
struct Row {
    file: String,
    key: String,
    values: Vec<String>,
}

impl Row {
    /// What spreadsheets leave at the end.
    fn is_empty(&self) -> bool {
        self.values.iter().all(String::is_empty)
    }
}

impl Table {
    /// Opens a table and reads its heading.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let wrong = |what: String| ArchiveError::Table { path: path.to_owned(), what };
        let failed = || ArchiveError::io("read", path);
        let file = File::open(path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        let mut file = BufReader::new(file);
        let mut heading = Vec::new();
        (&mut file).take(1 << 16).read_until(b'\n', &mut heading).map_err(failed())?;
        let behind = u64::from(heading.ends_with(b"\r\n"));
        file.rewind().map_err(failed())?;
        let mut rows =
            csv::ReaderBuilder::new().delimiter(delimiter(&heading)).flexible(true).from_reader(file);
        let headers = rows.headers().map_err(|error| match error.kind() {
            csv::ErrorKind::Utf8 { .. } => wrong("it is not UTF-8: save it as CSV UTF-8".to_owned()),
            _ => wrong(error.to_string()),
        })?;
        let columns = Columns::of(headers.iter()).map_err(wrong)?;
        let folder = path.canonicalize().map_err(failed())?.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { path: path.to_owned(), folder, columns, rows, seen: HashMap::new(), length, behind })
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next row, with its line.
    fn next(&mut self) -> Option<(u64, Result<Row, ArchiveError>)> {
        let mut record = csv::StringRecord::new();
        match self.rows.read_record(&mut record) {
            Ok(false) => None,
            Ok(true) => {
                let line = record.position().map_or(0, csv::Position::line) + self.behind;
                Some((line, self.row(&record)))
            }
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line) + self.behind;
                let what = match error.kind() {
                    csv::ErrorKind::Utf8 { .. } => {
                        "the row is not UTF-8: save the table as CSV UTF-8".to_owned()
                    }
                    _ => error.to_string(),
                };
                Some((line, Err(ArchiveError::Value(what))))
            }
        }
    }

    /// Whether a row that runs to the end of the table does so because of a quotation mark without its pair.
    fn is_unclosed(&self, record: &csv::StringRecord) -> Result<bool, ArchiveError> {
        if self.rows.position().byte() < self.length {
            return Ok(false);
        }
        let failed = || ArchiveError::io("read", &self.path);
        let mut file = File::open(&self.path).map_err(failed())?;
        let start = record.position().map_or(0, csv::Position::byte);
        file.seek(std::io::SeekFrom::Start(start)).map_err(failed())?;
        let mut odd = false;
        for byte in BufReader::new(file).bytes() {
            odd ^= byte.map_err(failed())? == b'"';
        }
        Ok(odd)
    }

    fn row(&mut self, record: &csv::StringRecord) -> Result<Row, ArchiveError> {
        let values: Vec<String> = record.iter().map(|value| value.trim().to_owned()).collect();
        if values.len() != self.columns.len() {
            let what = format!("it has {} fields, and the heading has {}", values.len(), self.columns.len());
            return Err(ArchiveError::Value(what));
        }
        let file = self.columns.file(&values).to_owned();
        if file.is_empty()
            && !self.columns.has_no_files(&values)
            && values.iter().any(|value| !value.is_empty())
        {
            return Err(ArchiveError::Value(
                "the column file is empty: name a file, a url, or say yes in the column record".to_owned(),
            ));
        }
        if values.iter().any(|value| value.contains('\n')) && self.is_unclosed(record)? {
            let what =
                "a quotation mark that is opened in this row is never closed: it swallows all rows after it";
            return Err(ArchiveError::Value(what.to_owned()));
        }
        let mut hash = Sha256::new();
        let folder = self.folder.as_os_str().as_encoded_bytes();
        // In the order of their names, so that columns may be moved.
        let fields = self.columns.named(&values).into_iter().flat_map(|(name, value)| [name, value]);
        for part in std::iter::once(folder).chain(fields.map(str::as_bytes)) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let before = self.seen.entry(digest).or_insert(0);
        *before += 1;
        let name = hex(&digest[..16]);
        Ok(Row { file, key: format!("table:{name}:{before}"), values })
    }
}

/// Excel writes semicolons where the comma is decimal.
fn delimiter(heading: &[u8]) -> u8 {
    let count = |wanted: u8| heading.iter().filter(|&&byte| byte == wanted).count();
    [b',', b';', b'\t']
        .into_iter()
        .max_by_key(|&candidate| (count(candidate), candidate == b','))
        .unwrap_or(b',')
}

impl Archive {
    /// Deposits the rows of a table. Rows that an earlier, interrupted run deposited are not deposited again. `dry` only
    /// looks whether they could be.
    pub fn deposit_table(
        &mut self,
        table: &mut Table,
        dry: bool,
        by: &str,
        progress: &dyn Fn(u64),
        report: &mut Tell<'_>,
    ) -> Result<(), ArchiveError> {
        let batch = if dry { 1 } else { self.batch()? };
        let mut waiting = Waiting::default();
        while let Some((line, row)) = table.next() {
            let place = table.rows.position().byte();
            let file = row.as_ref().map_or(String::new(), |row| row.file.clone());
            if row.as_ref().is_ok_and(Row::is_empty) {
                continue;
            }
            let outcome = row.and_then(|row| self.take_row(table, &row, dry, by));
            waiting.rows.push((
                line,
                file,
                outcome.unwrap_or_else(|error| Taken::Done(Outcome::Refused(error))),
            ));
            waiting.count();
            let full = waiting.staged >= batch || waiting.bytes >= LARGE || waiting.rows.len() >= 4 * batch;
            if full && !self.finish_rows(&mut waiting, report) {
                return self.not_stopped();
            }
            progress(place);
        }
        self.finish_rows(&mut waiting, report);
        self.not_stopped()
    }

    /// Rows that failed with the disk are no fault of the table.
    fn not_stopped(&self) -> Result<(), ArchiveError> {
        if self.stopped { Err(ArchiveError::Stopped) } else { Ok(()) }
    }

    fn take_row(&mut self, table: &Table, row: &Row, dry: bool, by: &str) -> Result<Taken, ArchiveError> {
        if let Some(path) = self.holdings.records.made_by(&row.key)? {
            return Ok(Taken::Done(Outcome::Already(path)));
        }
        let draft = table.columns.draft(&row.values, row.key.clone(), by).map_err(ArchiveError::Value)?;
        let source = match row.file.as_str() {
            "" => Source::nothing(),
            file => Source::at(&table.folder.join(file))?,
        };
        let draft = with_metadata(draft, &source)?;
        if dry {
            self.check_draft(&source, &draft)?;
            return Ok(Taken::Done(Outcome::Right));
        }
        let staged = self.stage(&source, None, &|_| ())?;
        Ok(Taken::Staged(Box::new(self.prepare_deposit(staged, draft)?), source.size()))
    }

    /// Whether a deposit would be admitted, as far as that can be told without doing it.
    pub fn check_draft(&self, source: &Source, draft: &Draft) -> Result<(), ArchiveError> {
        for file in source.files() {
            logical(file.name()).map_err(|error| ArchiveError::Name {
                name: String::from_utf8_lossy(file.name()).escape_debug().to_string(),
                error,
            })?;
            file.try_it()?;
        }
        let (labels, _) = self.given_labels(draft)?;
        let metadata = self.given_metadata_labels(draft)?;
        told_dates(draft, self.now())?;
        rules::check_draft(&self.holdings, draft, &labels.unwrap_or_default(), &metadata, source)
    }

    /// Commits the rows that wait, and tells of each. Whether to go on.
    fn finish_rows(&mut self, waiting: &mut Waiting, report: &mut Tell<'_>) -> bool {
        let Waiting { rows, .. } = std::mem::take(waiting);
        let mut staged = Vec::new();
        let mut told = Vec::new();
        for (line, file, taken) in rows {
            let outcome = match taken {
                Taken::Done(outcome) => Some(outcome),
                Taken::Staged(change, _) => {
                    staged.push(*change);
                    None
                }
            };
            told.push((line, file, outcome));
        }
        let mut results = self.commit(staged).into_iter();
        told.into_iter().all(|(line, file, outcome)| {
            let outcome = outcome.or_else(|| {
                results.next().map(|result| result.map_or_else(Outcome::Refused, Outcome::Deposited))
            });
            outcome.is_none_or(|outcome| report(&self.holdings, Report { line, file, outcome }))
        }) && !self.stopped
    }
}

/// Rows that were read and not told of yet.
#[derive(Default)]
struct Waiting {
    rows: Vec<(u64, String, Taken)>,
    staged: usize,
    bytes: u64,
}

impl Waiting {
    fn count(&mut self) {
        if let Some((_, _, Taken::Staged(_, bytes))) = self.rows.last() {
            self.staged += 1;
            self.bytes += bytes;
        }
    }
}

enum Taken {
    Done(Outcome),
    Staged(Box<Prepared>, u64),
}

/// What is not said is taken from the bag, if it is one of ours; the title, from the name of the file.
pub fn with_metadata(mut draft: Draft, source: &Source) -> Result<Draft, ArchiveError> {
    if draft.metadata.statements().is_empty() {
        draft.metadata = match source.metadata() {
            Some(metadata) => metadata.clone(),
            // What has no file has no name; a URL is one.
            None if source.origin() == Origin::Nothing => match &draft.url {
                Some(url) => titled(url.as_str())?,
                None => return Err(ArchiveError::EmptyRecord),
            },
            None => source.default_metadata()?,
        };
    }
    if let Some(item) = source.described() {
        draft.language = draft.language.or(item.language);
        draft.target = draft.target.or_else(|| item.target.clone());
        draft.url = draft.url.or_else(|| item.url.clone());
        // What was closed does not become public by being carried about.
        if draft.access == Access::Public {
            draft.access = item.access.clone();
        }
        // Brought in under the label that it had, it is the same item: its metadata keep their
        // label, and its dates stay.
        if draft.labels.iter().any(|label| item.labels.have(label)) && draft.metadata_labels.is_empty() {
            draft.metadata_labels = item.metadata.iter().map(str::to_owned).collect();
            if draft.created.is_none() && draft.updated.is_none() {
                draft.created = Some(item.created.clone()).filter(|date| !date.is_empty());
                let data_updated = item.data_updated.as_ref().unwrap_or(&item.updated);
                draft.updated = Some(data_updated.clone()).filter(|date| !date.is_empty());
                draft.metadata_updated.clone_from(&item.metadata_updated);
            }
        }
    }
    Ok(draft)
}
