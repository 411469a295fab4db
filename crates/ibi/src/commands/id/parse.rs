//! `ibi id parse`.

use crate::cli::Parse;
use crate::commands::id::record::Record;
use crate::exit::{Answer, Failure};
use crate::io::{Lines, Output, say};

pub(in crate::commands) fn run(command: Parse) -> Result<Answer, Failure> {
    let mut report =
        Report { json: command.json, verbose: command.verbose, output: Output::new(), read: 0, invalid: 0 };
    if command.labels.is_empty() {
        let mut lines = Lines::stdin("labels");
        while let Some(line) = lines.next(&mut report.output)? {
            report.tell(&line)?;
        }
    } else {
        for label in &command.labels {
            report.tell(&label.to_string_lossy())?;
        }
    }
    report.end()
}

struct Report {
    json: bool,
    verbose: bool,
    output: Output,
    read: u64,
    invalid: u64,
}

impl Report {
    fn tell(&mut self, label: &str) -> Result<(), Failure> {
        let record = Record::of(label);
        self.read += 1;
        self.invalid += u64::from(!record.is_valid());
        if self.json {
            record.write_json(self.verbose, &mut self.output)
        } else {
            record.write_text(self.verbose, &mut self.output)
        }
    }

    fn end(mut self) -> Result<Answer, Failure> {
        self.output.flush()?;
        if self.invalid > 0 && self.read > 1 {
            say(format_args!("{} of {} labels are not valid", self.invalid, self.read));
        }
        Ok(Answer::from(self.invalid == 0))
    }
}
