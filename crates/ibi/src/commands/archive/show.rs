//! `ibi archive show`.

use crate::cli::archive::Show;
use crate::commands::archive::{open_to_read, shown};
use crate::exit::{Answer, Failure};
use crate::io::Output;

pub(crate) fn run(command: &Show) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let (holding, role) = holdings.find(&command.ibi)?;
    let mut output = Output::new();
    if command.json {
        output.json(&shown::item(&holdings, &holding, role, true)?)?;
    } else {
        shown::write(&holdings, &holding, role, &mut output)?;
    }
    output.flush()?;
    Ok(Answer::Yes)
}
