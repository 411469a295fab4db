//! `ibi archive show`.

use ibi_archive::item_view::ItemView;
use ibi_archive::replication::transfer_json;
use serde::Serialize;
use serde_json::Value;

use crate::cli::archive::ShowArgs;
use crate::commands::archive::{item_output, open_to_read};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::StdoutWriter;

/// An item, with its transfer if one is open.
#[derive(Serialize)]
struct ShowOutput<'a> {
    #[serde(flatten)]
    item: ItemView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handover: Option<Value>,
}

pub(crate) fn run(command: &ShowArgs) -> Result<CommandOutcome, CommandError> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let (holding, role) = holdings.find(&command.ibi)?;
    let mut output = StdoutWriter::new();
    if command.json {
        let item = ItemView::of(&holdings, &holding, role)?.with_history(&holdings, &holding)?;
        output.json(&ShowOutput { item, handover: transfer_json(&holdings, &holding.path)? })?;
    } else {
        item_output::write(&holdings, &holding, role, &mut output)?;
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}
