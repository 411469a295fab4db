//! `ibi id parse`.

use crate::cli::IdParseArgs;
use crate::commands::id::record::ParsedLabelRecord;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{LineReader, StdoutWriter, say};

pub(in crate::commands) fn run(command: IdParseArgs) -> Result<CommandOutcome, CommandError> {
    let mut report = ParseReporter {
        json: command.json,
        verbose: command.verbose,
        output: StdoutWriter::new(),
        read: 0,
        invalid: 0,
    };
    if command.labels.is_empty() {
        let mut lines = LineReader::stdin("labels");
        while let Some(line) = lines.next(&mut report.output)? {
            report.print_label(&line)?;
        }
    } else {
        for label in &command.labels {
            report.print_label(&label.to_string_lossy())?;
        }
    }
    report.end()
}

struct ParseReporter {
    json: bool,
    verbose: bool,
    output: StdoutWriter,
    read: u64,
    invalid: u64,
}

impl ParseReporter {
    fn print_label(&mut self, label: &str) -> Result<(), CommandError> {
        let record = ParsedLabelRecord::of(label);
        self.read += 1;
        self.invalid += u64::from(!record.is_valid());
        if self.json {
            record.write_json(self.verbose, &mut self.output)
        } else {
            record.write_text(self.verbose, &mut self.output)
        }
    }

    fn end(mut self) -> Result<CommandOutcome, CommandError> {
        self.output.flush()?;
        if self.invalid > 0 && self.read > 1 {
            say(format_args!(
                "{} of {} labels {} not valid",
                self.invalid,
                self.read,
                if self.invalid == 1 { "is" } else { "are" }
            ));
        }
        Ok(CommandOutcome::from(self.invalid == 0))
    }
}
