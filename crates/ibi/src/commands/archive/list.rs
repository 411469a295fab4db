//! `ibi archive list`.

use ibi_archive::keep::Role;
use ibi_archive::told::Told;

use crate::cli::archive::List;
use crate::commands::archive::{open_to_read, shown};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable};

/// Items that are read at a time.
const PAGE: usize = 1000;

pub(crate) fn run(command: &List) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = Output::new();
    let mut after = String::new();
    loop {
        let page = holdings.list(&after, PAGE)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.path);
        for holding in &page {
            if command.json {
                output.json(&Told::of(&holdings, holding, Role::Item)?)?;
            } else {
                let (label, state) = (holding.item.labels.primary(), holding.state.name());
                output.text(format_args!("{label}\t{state}\t{}\n", printable(shown::title(holding))))?;
            }
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}
