//! `ibi archive list`.

use ibi_archive::item_view::ItemView;
use ibi_archive::store::LabelRole;

use crate::cli::archive::ListArgs;
use crate::commands::archive::{item_output, open_to_read};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable};

/// Items read per page.
const LIST_PAGE_SIZE: usize = 1000;

pub(crate) fn run(command: &ListArgs) -> Result<CommandOutcome, CommandError> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = StdoutWriter::new();
    let mut after = String::new();
    loop {
        let page = holdings.list(&after, LIST_PAGE_SIZE)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.path);
        for holding in &page {
            if command.json {
                output.json(&ItemView::of(&holdings, holding, LabelRole::Item)?)?;
            } else {
                let (label, state) = (holding.item.labels.primary(), holding.state.name());
                output
                    .text(format_args!("{label}\t{state}\t{}\n", printable(item_output::title(holding))))?;
            }
        }
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}
