//! `ibi archive import`.

use ibi_archive::ArchiveError;
use ibi_archive::archive::ArchiveSettings;
use ibi_archive::import::{ImportOptions, ImportOutcome, ImportReport, SurveyNote, survey};
use ibi_archive::replication::original_claim::OriginalClaim;
use ibi_archive::replication::peer::PeerArchive;
use serde::Serialize;

use crate::cli::continuity::ImportArgs;
use crate::commands::archive::{open, open_to_read, operator_of, pluralize, progress_counter};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Repositories imported per lease of the Archive; a running server works in between.
const IMPORT_BATCH_SIZE: usize = 512;

/// The result of a repository, or of another entry of the tree.
#[derive(Serialize)]
struct ImportLineOutput<'a> {
    status: &'static str,
    place: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left_out: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Default)]
struct ImportCounts {
    imported: u64,
    described: u64,
    declared: u64,
    already: u64,
    possible: u64,
    refused: u64,
    skipped: u64,
}

pub(crate) fn run(command: &ImportArgs) -> Result<CommandOutcome, CommandError> {
    command.outgoing.apply()?;
    let data = command.data.folder()?;
    let settings = open_to_read(&data)?.settings().clone();
    let claims = ResolverClaimCheck::new(command.resolver.as_deref(), settings)?;
    let survey_progress = progress_counter("repositories found");
    let survey = survey(&command.tree, &|| survey_progress.inc(1))?;
    survey_progress.finish_and_clear();
    let options = ImportOptions { dry: command.dry_run, original: command.original, by: operator_of(&data) };
    let mut report =
        ImportReporter { json: command.json, output: StdoutWriter::new(), counts: ImportCounts::default() };
    for note in &survey.notes {
        report.note(note)?;
    }
    let progress = progress_counter("bytes read");
    let mut left = &survey.repositories[..];
    while !left.is_empty() {
        let batch = &left[..left.len().min(IMPORT_BATCH_SIZE)];
        let mut archive = open(&data)?;
        let done =
            archive.import(batch, &options, &mut |label| claims.ask(label), &|bytes| progress.inc(bytes))?;
        drop(archive);
        for (repository, done) in batch.iter().zip(&done) {
            report.repository(&repository.label, &repository.left_out, done)?;
        }
        report.output.flush()?;
        left = &left[done.len().max(1).min(left.len())..];
    }
    for batch in survey.late.chunks(IMPORT_BATCH_SIZE) {
        let mut archive = open(&data)?;
        for late in batch {
            let done = archive.import_late_metadata(late, &options)?;
            report.repository(&late.metadata.label, &[], &done)?;
        }
        report.output.flush()?;
    }
    progress.finish_and_clear();
    report.output.flush()?;
    if survey.stray_files > 0 {
        say(format_args!("left out {} outside of repositories", pluralize(survey.stray_files, "file")));
    }
    if survey.more_notes > 0 {
        say(format_args!("{} more entries that are not repositories are not listed", survey.more_notes));
    }
    let is_empty = survey.repositories.is_empty() && survey.late.is_empty();
    let answer = report.print_summary();
    if let Some(place) = survey.begins_at.filter(|_| is_empty) {
        let (here, place) = (command.tree.display().to_string(), place.display().to_string());
        say(format_args!(
            "{} is inside a tree: nothing was imported. Start with the folder that contains the hosts: {}",
            printable(&here),
            printable(&place)
        ));
        return Ok(CommandOutcome::No);
    }
    Ok(answer)
}

/// Prints and counts the results.
struct ImportReporter {
    json: bool,
    output: StdoutWriter,
    counts: ImportCounts,
}

impl ImportReporter {
    fn note(&mut self, note: &SurveyNote) -> Result<(), CommandError> {
        let status = if note.refused { "refused" } else { "skipped" };
        let count = if note.refused { &mut self.counts.refused } else { &mut self.counts.skipped };
        *count += 1;
        self.line(&ImportLineOutput {
            status,
            place: &note.place,
            metadata: None,
            path: None,
            files: None,
            bytes: None,
            left_out: &[],
            reason: Some(note.reason.clone()),
        })
    }

    fn repository(
        &mut self,
        place: &str,
        left_out: &[String],
        report: &ImportReport,
    ) -> Result<(), CommandError> {
        let counts = &mut self.counts;
        let (status, path, error, count) = match &report.outcome {
            ImportOutcome::Imported { path } => ("imported", Some(path), None, &mut counts.imported),
            ImportOutcome::Described { path } => ("described", Some(path), None, &mut counts.described),
            ImportOutcome::Declared { path } => ("declared", Some(path), None, &mut counts.declared),
            ImportOutcome::Already { path } => ("already", Some(path), None, &mut counts.already),
            ImportOutcome::Possible => ("possible", None, None, &mut counts.possible),
            ImportOutcome::Refused(error) => ("refused", None, Some(error.to_string()), &mut counts.refused),
        };
        *count += 1;
        let counted = matches!(report.outcome, ImportOutcome::Imported { .. } | ImportOutcome::Possible);
        let details = &report.details;
        self.line(&ImportLineOutput {
            status,
            place,
            metadata: details.metadata.as_deref(),
            path: path.map(String::as_str),
            files: counted.then_some(details.files),
            bytes: counted.then_some(details.bytes),
            left_out,
            reason: error.or_else(|| details.note.clone()),
        })
    }

    fn line(&mut self, line: &ImportLineOutput<'_>) -> Result<(), CommandError> {
        if self.json {
            return self.output.json(line);
        }
        let what = match &line.reason {
            Some(reason) => reason.clone(),
            None => line.metadata.unwrap_or("-").to_owned(),
        };
        self.output.text(format_args!("{}\t{}\t{}\n", line.status, printable(line.place), printable(&what)))
    }

    fn print_summary(self) -> CommandOutcome {
        let ImportCounts { imported, described, declared, already, possible, refused, skipped } = self.counts;
        if possible > 0 {
            let possible = pluralize(possible, "repository").replace("repositorys", "repositories");
            say(format_args!(
                "{possible} can be imported, {already} already here, {refused} refused, {skipped} skipped"
            ));
        } else {
            say(format_args!(
                "{imported} imported, {already} already here, {refused} refused, {skipped} skipped"
            ));
        }
        if described + declared > 0 {
            say(format_args!(
                "of the items already here, {described} got metadata that arrived later, {declared} were declared Originals"
            ));
        }
        if refused > 0 {
            say(format_args!("fix what was refused and rerun the command; nothing is imported twice"));
        }
        CommandOutcome::from(refused == 0)
    }
}

/// Asks the resolver before an item is declared the Original (clause 2.1).
pub(super) struct ResolverClaimCheck {
    asked: Option<(PeerArchive, tokio::runtime::Runtime)>,
    own: ArchiveSettings,
}

impl ResolverClaimCheck {
    pub(super) fn new(resolver: Option<&str>, own: ArchiveSettings) -> Result<Self, CommandError> {
        let asked = match resolver {
            Some(url) => {
                let peer =
                    PeerArchive::new(url, None).map_err(|error| CommandError::Usage(error.to_string()))?;
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                Some((peer, runtime.map_err(CommandError::Serve)?))
            }
            None => None,
        };
        Ok(Self { asked, own })
    }

    pub(super) fn ask(&self, label: &str) -> Result<(), ArchiveError> {
        let refused = |what: String| Err(ArchiveError::Value(what));
        let Some((resolver, runtime)) = &self.asked else { return Ok(()) };
        match runtime.block_on(OriginalClaim::ask(resolver, &self.own, label)) {
            Ok(OriginalClaim::Nobody | OriginalClaim::Here) => Ok(()),
            Ok(OriginalClaim::Elsewhere(archives)) => {
                refused(format!("{} claims the Original", archives.join(" and ")))
            }
            Ok(OriginalClaim::Removed) => refused("another Archive reports that it was removed".to_owned()),
            Ok(OriginalClaim::Unsure(silent)) => refused(format!(
                "cannot tell whether another Archive has the Original: {} did not answer",
                silent.join(" and ")
            )),
            Err(error) => refused(format!("cannot ask the resolver: {error}")),
        }
    }
}
