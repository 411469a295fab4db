//! `ibi archive show`.

use ibi_archive::holders::handover_of;
use ibi_archive::told::Told;
use serde::Serialize;
use serde_json::Value;

use crate::cli::archive::Show;
use crate::commands::archive::{open_to_read, shown};
use crate::exit::{Answer, Failure};
use crate::io::Output;

/// An item, and its hand-over if one is not over.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    told: Told<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handover: Option<Value>,
}

pub(crate) fn run(command: &Show) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let (holding, role) = holdings.find(&command.ibi)?;
    let mut output = Output::new();
    if command.json {
        let told = Told::of(&holdings, &holding, role)?.with_history(&holdings, &holding)?;
        output.json(&Shown { told, handover: handover_of(&holdings, &holding.path)? })?;
    } else {
        shown::write(&holdings, &holding, role, &mut output)?;
    }
    output.flush()?;
    Ok(Answer::Yes)
}
