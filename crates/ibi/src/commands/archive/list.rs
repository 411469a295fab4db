//! `ibi archive list`.

use ibi_archive::keep::Role;

use crate::cli::archive::List;
use crate::commands::archive::{open_to_read, shown};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable};

pub(crate) fn run(command: &List) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = Output::new();
    let mut after = String::new();
    loop {
        let page = holdings.list(&after, shown::PAGE)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.path);
        for holding in &page {
            if command.json {
                output.json(&shown::item(&holdings, holding, Role::Item, false)?)?;
            } else {
                let (label, state) = (holding.item.labels.primary(), holding.state.name());
                output.text(format_args!("{label}\t{state}\t{}\n", printable(shown::title(holding))))?;
            }
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}
