//! `ibi archive show`.

use ibi_archive::told::Told;

use crate::cli::archive::Show;
use crate::commands::archive::{open_to_read, shown};
use crate::exit::{Answer, Failure};
use crate::io::Output;

pub(crate) fn run(command: &Show) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let (holding, role) = holdings.find(&command.ibi)?;
    let mut output = Output::new();
    if command.json {
        output.json(&Told::of(&holdings, &holding, role)?.with_history(&holdings)?)?;
    } else {
        shown::write(&holdings, &holding, role, &mut output)?;
    }
    output.flush()?;
    Ok(Answer::Yes)
}
