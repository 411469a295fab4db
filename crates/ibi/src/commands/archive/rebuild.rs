//! `ibi archive rebuild`.

use ibi_archive::rebuild::{self, Rebuilt};
use serde::Serialize;

use crate::cli::archive::Rebuild;
use crate::commands::archive::{borrowed, counter, who};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

#[derive(Serialize)]
struct Report<'a> {
    items: u64,
    adopted: &'a [String],
    missing: &'a [String],
    damaged: Vec<Damaged<'a>>,
}

#[derive(Serialize)]
struct Damaged<'a> {
    item: &'a str,
    what: &'a str,
}

pub(crate) fn run(command: &Rebuild) -> Result<Answer, Failure> {
    let progress = counter("items");
    let data = command.data.folder()?;
    let _borrowed = borrowed(&data)?;
    let rebuilt = rebuild::rebuild(&data, &who(), &|items| progress.inc(items))?;
    progress.finish_and_clear();
    if command.json {
        let damaged = rebuilt.damaged.iter().map(|(item, what)| Damaged { item, what }).collect();
        let mut output = Output::new();
        let Rebuilt { items, adopted, missing, .. } = &rebuilt;
        output.json(&Report { items: *items, adopted, missing, damaged })?;
        output.flush()?;
    }
    Ok(tell(&rebuilt))
}

/// Says what was found, and whether all is well.
pub(crate) fn tell(rebuilt: &Rebuilt) -> Answer {
    for path in &rebuilt.adopted {
        say(format_args!("found in the tree, and not as the journal tells: {}", printable(path)));
    }
    for path in &rebuilt.missing {
        say(format_args!(
            "missing: {} is in the journal and not in the tree: put it back from a backup",
            printable(path)
        ));
    }
    for (path, what) in &rebuilt.damaged {
        say(format_args!("damaged: {}: {}", printable(path), printable(what)));
    }
    say(format_args!("the index is made anew: {} items", rebuilt.items));
    Answer::from(rebuilt.missing.is_empty() && rebuilt.damaged.is_empty())
}
