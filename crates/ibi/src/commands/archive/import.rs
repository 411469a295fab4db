//! `ibi archive import`.

use ibi_archive::ArchiveError;
use ibi_archive::archive::Settings;
use ibi_archive::holders::original_claim::OriginalClaim;
use ibi_archive::holders::peer::Peer;
use ibi_archive::import::{ImportOptions, ImportOutcome, ImportReport, SurveyNote, survey};
use serde::Serialize;

use crate::cli::continuity::ImportArgs;
use crate::commands::archive::{count, counter, open, open_to_read, who};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// Repositories that are handed to the Archive at a time: a server of the folder goes on in
/// between.
const REPOSITORIES_AT_A_TIME: usize = 512;

/// What became of a repository, or of something else in the tree.
#[derive(Serialize)]
struct ImportLine<'a> {
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

pub(crate) fn run(command: &ImportArgs) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let settings = open_to_read(&data)?.settings().clone();
    let claims = ClaimCheck::new(command, settings)?;
    let looked = counter("repositories found");
    let survey = survey(&command.tree, &|| looked.inc(1))?;
    looked.finish_and_clear();
    let options = ImportOptions { dry: command.dry_run, original: command.original, by: who() };
    let mut report =
        ImportTold { json: command.json, output: Output::new(), counts: ImportCounts::default() };
    for note in &survey.notes {
        report.note(note)?;
    }
    let progress = counter("bytes read");
    let mut left = &survey.repositories[..];
    while !left.is_empty() {
        let some = &left[..left.len().min(REPOSITORIES_AT_A_TIME)];
        let mut archive = open(&data)?;
        let done =
            archive.import(some, &options, &mut |label| claims.ask(label), &|bytes| progress.inc(bytes))?;
        drop(archive);
        for (repository, done) in some.iter().zip(&done) {
            report.repository(&repository.label, &repository.left_out, done)?;
        }
        report.output.flush()?;
        left = &left[done.len().max(1).min(left.len())..];
    }
    for some in survey.late.chunks(REPOSITORIES_AT_A_TIME) {
        let mut archive = open(&data)?;
        for late in some {
            let done = archive.import_late_metadata(late, &options)?;
            report.repository(&late.metadata.label, &[], &done)?;
        }
        report.output.flush()?;
    }
    progress.finish_and_clear();
    report.output.flush()?;
    if survey.stray_files > 0 {
        say(format_args!("{} outside of repositories left out", count(survey.stray_files, "file")));
    }
    if survey.more_notes > 0 {
        say(format_args!("{} more that is no repository is not listed", survey.more_notes));
    }
    let is_empty = survey.repositories.is_empty() && survey.late.is_empty();
    let answer = report.end();
    if let Some(place) = survey.begins_at.filter(|_| is_empty) {
        let (here, place) = (command.tree.display().to_string(), place.display().to_string());
        say(format_args!(
            "{} lies within a tree: nothing was brought in. Begin higher, with the folder that holds the hosts: {}",
            printable(&here),
            printable(&place)
        ));
        return Ok(Answer::No);
    }
    Ok(answer)
}

/// Prints what became of each, and counts.
struct ImportTold {
    json: bool,
    output: Output,
    counts: ImportCounts,
}

impl ImportTold {
    fn note(&mut self, note: &SurveyNote) -> Result<(), Failure> {
        let status = if note.refused { "refused" } else { "skipped" };
        let count = if note.refused { &mut self.counts.refused } else { &mut self.counts.skipped };
        *count += 1;
        self.line(&ImportLine {
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

    fn repository(&mut self, place: &str, left_out: &[String], report: &ImportReport) -> Result<(), Failure> {
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
        self.line(&ImportLine {
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

    fn line(&mut self, line: &ImportLine<'_>) -> Result<(), Failure> {
        if self.json {
            return self.output.json(line);
        }
        let what = match &line.reason {
            Some(reason) => reason.clone(),
            None => line.metadata.unwrap_or("-").to_owned(),
        };
        self.output.text(format_args!("{}\t{}\t{}\n", line.status, printable(line.place), printable(&what)))
    }

    fn end(self) -> Answer {
        let ImportCounts { imported, described, declared, already, possible, refused, skipped } = self.counts;
        if possible > 0 {
            let possible = count(possible, "repository").replace("repositorys", "repositories");
            say(format_args!(
                "{possible} could be brought in, {already} are here already, {refused} cannot be, {skipped} skipped"
            ));
        } else {
            say(format_args!(
                "{imported} brought in, {already} were here already, {refused} refused, {skipped} skipped"
            ));
        }
        if described + declared > 0 {
            say(format_args!(
                "of what was here, {described} got the metadata that came later, {declared} declared the Original"
            ));
        }
        if refused > 0 {
            say(format_args!(
                "rerun the command when what was refused is mended: nothing is brought in twice"
            ));
        }
        Answer::from(refused == 0)
    }
}

/// Asks the resolver before an item is declared the Original (clause 2.1).
struct ClaimCheck {
    asked: Option<(Peer, tokio::runtime::Runtime)>,
    own: Settings,
}

impl ClaimCheck {
    fn new(command: &ImportArgs, own: Settings) -> Result<Self, Failure> {
        let asked = match &command.resolver {
            Some(url) => {
                let peer = Peer::new(url, None).map_err(|error| Failure::Usage(error.to_string()))?;
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                Some((peer, runtime.map_err(Failure::Serve)?))
            }
            None => None,
        };
        Ok(Self { asked, own })
    }

    fn ask(&self, label: &str) -> Result<(), ArchiveError> {
        let refused = |what: String| Err(ArchiveError::Value(what));
        let Some((resolver, runtime)) = &self.asked else { return Ok(()) };
        match runtime.block_on(OriginalClaim::ask(resolver, &self.own, label)) {
            Ok(OriginalClaim::Nobody | OriginalClaim::Here) => Ok(()),
            Ok(OriginalClaim::Elsewhere(archives)) => {
                refused(format!("{} says that it has the Original", archives.join(" and ")))
            }
            Ok(OriginalClaim::Removed) => refused("another Archive says that it was removed".to_owned()),
            Ok(OriginalClaim::Unsure(silent)) => refused(format!(
                "whether another Archive has the Original is not known: {} did not answer",
                silent.join(" and ")
            )),
            Err(error) => refused(format!("the resolver could not be asked: {error}")),
        }
    }
}
