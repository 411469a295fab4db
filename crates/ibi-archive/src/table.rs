//! Deposits from a table, one item per row (`docs/formats/table.md`).

mod columns;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};

use ibi_store::digests::hex;
use ibi_store::ocfl::logical_path;
use sha2::{Digest as _, Sha256};

use crate::ArchiveError;
use crate::access::AccessRule;
use crate::archive::{Archive, Holdings};
use crate::change_rules;
use crate::deposit::{DepositRequest, DepositSource, SourceKind, title_only_metadata, told_dates};
use crate::prepared_change::PreparedChange;
use columns::TableHeading;

/// Commit the batch once this many bytes are staged.
const MAX_STAGED_BYTES: u64 = 256 << 20;

/// The result for a row.
#[derive(Debug)]
pub struct TableRowReport {
    /// Its first line in the table; the heading is line 1.
    pub line: u64,
    /// The file or folder that it names.
    pub file: String,
    /// The outcome.
    pub outcome: TableRowOutcome,
}

/// The outcome for a row.
#[derive(Debug)]
pub enum TableRowOutcome {
    /// Deposited as a new item: the path of its object.
    Deposited(String),
    /// Already deposited by an earlier run.
    Already(String),
    /// Dry run: it would be deposited.
    Right,
    /// It cannot be deposited.
    Refused(ArchiveError),
}

/// Called for each row, in order, once its outcome is durable. Returns whether to continue.
pub type TableRowCallback<'a> = dyn FnMut(&Holdings, TableRowReport) -> bool + 'a;

/// A table to deposit from.
pub struct DepositTable {
    path: PathBuf,
    folder: PathBuf,
    columns: TableHeading,
    rows: csv::Reader<BufReader<File>>,
    /// How often each row occurred so far: equal rows may be intended.
    seen: HashMap<[u8; 32], u32>,
    length: u64,
    /// Correction of the reader's line numbers: it counts the end of a CR LF line to the next line.
    behind: u64,
}

/// A row that can be deposited.
struct TableRow {
    file: String,
    key: String,
    values: Vec<String>,
}

impl TableRow {
    /// Spreadsheets leave such rows at the end.
    fn is_empty(&self) -> bool {
        self.values.iter().all(String::is_empty)
    }
}

impl DepositTable {
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
        let columns = TableHeading::of(headers.iter()).map_err(wrong)?;
        let folder = path.canonicalize().map_err(failed())?.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { path: path.to_owned(), folder, columns, rows, seen: HashMap::new(), length, behind })
    }

    /// Its size in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next row, with its line number.
    fn next_row(&mut self) -> Option<(u64, Result<TableRow, ArchiveError>)> {
        let mut record = csv::StringRecord::new();
        match self.rows.read_record(&mut record) {
            Ok(false) => None,
            Ok(true) => {
                let line = record.position().map_or(0, csv::Position::line) + self.behind;
                Some((line, self.parse_row(&record)))
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

    /// Whether a row extends to the end of the table because a quotation mark is not closed.
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

    fn parse_row(&mut self, record: &csv::StringRecord) -> Result<TableRow, ArchiveError> {
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
        // In the order of the column names, so that columns can be reordered.
        let fields = self.columns.named_values(&values).into_iter().flat_map(|(name, value)| [name, value]);
        for part in std::iter::once(folder).chain(fields.map(str::as_bytes)) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let before = self.seen.entry(digest).or_insert(0);
        *before += 1;
        let name = hex(&digest[..16]);
        Ok(TableRow { file, key: format!("table:{name}:{before}"), values })
    }
}

/// Excel writes semicolons in locales with a decimal comma.
fn delimiter(heading: &[u8]) -> u8 {
    let count = |wanted: u8| heading.iter().filter(|&&byte| byte == wanted).count();
    [b',', b';', b'\t']
        .into_iter()
        .max_by_key(|&candidate| (count(candidate), candidate == b','))
        .unwrap_or(b',')
}

impl Archive {
    /// Deposits the rows of a table. Resumes an interrupted run: rows that were already deposited
    /// are skipped. `dry` only checks whether they could be deposited.
    pub fn deposit_table(
        &mut self,
        table: &mut DepositTable,
        dry: bool,
        by: &str,
        progress: &dyn Fn(u64),
        report: &mut TableRowCallback<'_>,
    ) -> Result<(), ArchiveError> {
        let batch = if dry { 1 } else { self.batch_size()? };
        let mut waiting = PendingRows::default();
        while let Some((line, row)) = table.next_row() {
            let place = table.rows.position().byte();
            let file = row.as_ref().map_or(String::new(), |row| row.file.clone());
            if row.as_ref().is_ok_and(TableRow::is_empty) {
                continue;
            }
            let outcome = row.and_then(|row| self.stage_row(table, &row, dry, by));
            waiting.rows.push((
                line,
                file,
                outcome.unwrap_or_else(|error| TableRowStep::Done(TableRowOutcome::Refused(error))),
            ));
            waiting.count_last_row();
            let full = waiting.staged >= batch
                || waiting.bytes >= MAX_STAGED_BYTES
                || waiting.rows.len() >= 4 * batch;
            if full && !self.commit_rows(&mut waiting, report) {
                return self.check_not_stopped();
            }
            progress(place);
        }
        self.commit_rows(&mut waiting, report);
        self.check_not_stopped()
    }

    /// Rows that failed because of the disk are not faults of the table.
    fn check_not_stopped(&self) -> Result<(), ArchiveError> {
        if self.stopped { Err(ArchiveError::Stopped) } else { Ok(()) }
    }

    fn stage_row(
        &mut self,
        table: &DepositTable,
        row: &TableRow,
        dry: bool,
        by: &str,
    ) -> Result<TableRowStep, ArchiveError> {
        if let Some(path) = self.holdings.records.by_request(&row.key)? {
            return Ok(TableRowStep::Done(TableRowOutcome::Already(path)));
        }
        let draft = table.columns.draft(&row.values, row.key.clone(), by).map_err(ArchiveError::Value)?;
        let source = match row.file.as_str() {
            "" => DepositSource::empty(),
            file => DepositSource::at(&table.folder.join(file))?,
        };
        let draft = fill_from_source(draft, &source)?;
        if dry {
            self.check_draft(&source, &draft)?;
            return Ok(TableRowStep::Done(TableRowOutcome::Right));
        }
        let staged = self.stage(&source, None, &|_| ())?;
        Ok(TableRowStep::Staged(Box::new(self.prepare_deposit(staged, draft)?), source.size()))
    }

    /// Whether a deposit would be accepted, as far as can be known without doing it.
    pub fn check_draft(&self, source: &DepositSource, draft: &DepositRequest) -> Result<(), ArchiveError> {
        for file in source.files() {
            logical_path(file.name()).map_err(|error| ArchiveError::Name {
                name: String::from_utf8_lossy(file.name()).escape_debug().to_string(),
                error,
            })?;
            file.verify_readable()?;
        }
        let (labels, _) = self.given_labels(draft)?;
        let metadata = self.given_metadata_labels(draft)?;
        told_dates(draft, self.now())?;
        change_rules::check_draft(&self.holdings, draft, &labels.unwrap_or_default(), &metadata, source)
    }

    /// Commits the pending rows and reports each. Returns whether to continue.
    fn commit_rows(&mut self, waiting: &mut PendingRows, report: &mut TableRowCallback<'_>) -> bool {
        let PendingRows { rows, .. } = std::mem::take(waiting);
        let mut staged = Vec::new();
        let mut told = Vec::new();
        for (line, file, taken) in rows {
            let outcome = match taken {
                TableRowStep::Done(outcome) => Some(outcome),
                TableRowStep::Staged(change, _) => {
                    staged.push(*change);
                    None
                }
            };
            told.push((line, file, outcome));
        }
        let mut results = self.commit(staged).into_iter();
        told.into_iter().all(|(line, file, outcome)| {
            let outcome = outcome.or_else(|| {
                results
                    .next()
                    .map(|result| result.map_or_else(TableRowOutcome::Refused, TableRowOutcome::Deposited))
            });
            outcome.is_none_or(|outcome| report(&self.holdings, TableRowReport { line, file, outcome }))
        }) && !self.stopped
    }
}

/// Rows that were read but not reported yet.
#[derive(Default)]
struct PendingRows {
    rows: Vec<(u64, String, TableRowStep)>,
    staged: usize,
    bytes: u64,
}

impl PendingRows {
    fn count_last_row(&mut self) {
        if let Some((_, _, TableRowStep::Staged(_, bytes))) = self.rows.last() {
            self.staged += 1;
            self.bytes += bytes;
        }
    }
}

enum TableRowStep {
    Done(TableRowOutcome),
    Staged(Box<PreparedChange>, u64),
}

/// Fills unset fields from the source, if it is a bag of ours; the title defaults to the name of
/// the file.
pub fn fill_from_source(
    mut draft: DepositRequest,
    source: &DepositSource,
) -> Result<DepositRequest, ArchiveError> {
    if draft.metadata.statements().is_empty() {
        draft.metadata = match source.metadata() {
            Some(metadata) => metadata.clone(),
            // Without a file there is no name; the URL serves as the title.
            None if source.origin() == SourceKind::Nothing => match &draft.url {
                Some(url) => title_only_metadata(url.as_str())?,
                None => return Err(ArchiveError::EmptyRecord),
            },
            None => source.default_metadata()?,
        };
    }
    if let Some(item) = source.bag_description() {
        draft.language = draft.language.or(item.language);
        draft.target = draft.target.or_else(|| item.target.clone());
        draft.url = draft.url.or_else(|| item.url.clone());
        // A restricted item must not become public by export and deposit.
        if draft.access == AccessRule::Public {
            draft.access = item.access.clone();
        }
        // Deposited under its own label, it is the same item: its metadata keeps its label, and the
        // dates stay.
        if draft.labels.iter().any(|label| item.labels.has_label(label)) && draft.metadata_labels.is_empty() {
            draft.metadata_labels = item.metadata.iter().map(str::to_owned).collect();
            if draft.created.is_none() && draft.updated.is_none() {
                draft.created = Some(item.created.clone()).filter(|date| !date.is_empty());
                let data_updated = item.data_updated.as_ref().unwrap_or(&item.updated);
                draft.updated = Some(data_updated.clone()).filter(|date| !date.is_empty());
                draft.metadata_created.clone_from(&item.metadata_created);
                draft.metadata_updated.clone_from(&item.metadata_updated);
            }
        }
    }
    Ok(draft)
}
