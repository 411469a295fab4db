//! `ibi archive transfer` and `drop`.

use std::sync::Mutex;
use std::time::Duration;

use ibi_archive::holders::handing::{Handing, Wish};
use ibi_archive::holders::stand_of;
use ibi_archive::mint::clock::{Clock as _, SystemClock};
use ibi_archive::service::borrow;

use crate::cli::holders::{Drop, Keep, Transfer};
use crate::commands::archive::{holders, open, open_to_read, who};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// Between two looks at how it goes.
const OFTEN: Duration = Duration::from_millis(100);

pub(crate) fn transfer(command: &Transfer) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let Some(to) = &command.to else { return word(command) };
    // Before anything is asked for.
    let here = Mutex::new(open_to_read(&data)?);
    if !borrow::is_on_line(&data) {
        return Err(Failure::NotSure(format!(
            "this Archive is not on line, and the taker fetches the item from it: start `ibi archive serve --data {}`, then \
             try again",
            data.display()
        )));
    }
    let now = SystemClock::new().read().wall;
    let now = ibi_id::Instant::new(now.seconds(), 0).unwrap_or(now).to_string();
    let token = holders::token(&command.theirs)?;
    let keep = command.keep == Keep::Copy;
    let wish = Wish { item: command.ibi.clone(), to: to.clone(), token, keep, by: who() };
    holders::waiting(async { Ok(Handing::may_move(&here, &wish).await?) })?;
    drop(here);
    // Borrowed for a moment: a server of this folder goes on meanwhile.
    let handing = Handing::begin(open(&data)?.holdings(), wish, now)?;
    say(format_args!("handing over to {}; if you stop this command, it goes on by itself", handing.to));
    let mut said = None;
    loop {
        match Handing::of(&data, &handing.path)? {
            Some(now) if now.handover == handing.handover => {
                if now.failed {
                    now.end(&data)?;
                    let why = now.said.unwrap_or_default();
                    return Err(Failure::NotSure(format!("nothing was handed over: {why}")));
                }
                if now.said != said {
                    said = now.said;
                    said.iter().for_each(|said| say(format_args!("{}", printable(said))));
                }
            }
            _ => break,
        }
        std::thread::sleep(OFTEN);
    }
    let holdings = open_to_read(&data)?;
    if !handing.is_done(&holdings)? {
        return Err(Failure::NotSure(
            "it was given up, or another hand-over took its place, meanwhile".to_owned(),
        ));
    }
    told(command, "handed over")
}

/// The operator's word, which needs no network.
fn word(command: &Transfer) -> Result<Answer, Failure> {
    let archive = &mut open(&command.data.folder()?)?;
    if command.cancel {
        Handing::cancel(archive.holdings(), &command.ibi)?;
        return told(command, "given up: nothing was handed over");
    }
    archive.taker_destroyed(&command.ibi, &who())?;
    Handing::forget(archive.holdings(), &command.ibi)?;
    told(
        command,
        "the Original is here again. Should the taker come back, make sure that it is not the Original there",
    )
}

fn told(command: &Transfer, what: &str) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = Output::new();
    let stand = stand_of(&holdings, &command.ibi)?;
    if command.json {
        output.json(&stand)?;
    } else {
        output.text(format_args!("{}\t{}\n", stand["state"].as_str().unwrap_or("nothing"), command.ibi))?;
    }
    output.flush()?;
    say(format_args!("{what}"));
    Ok(Answer::Yes)
}

pub(crate) fn drop_copy(command: &Drop) -> Result<Answer, Failure> {
    let mut archive = open(&command.data.folder()?)?;
    if !command.yes {
        archive.holdings().find(&command.ibi)?;
        return Err(Failure::NotSure(format!(
            "this would take the copy of {} out of this Archive. If that is meant, say --yes",
            command.ibi
        )));
    }
    archive.drop_copy(&command.ibi, &who(), None)?;
    let mut output = Output::new();
    if command.json {
        output.json(&serde_json::json!({ "item": command.ibi, "dropped": true }))?;
    } else {
        output.text(format_args!("{}\n", command.ibi))?;
    }
    output.flush()?;
    say(format_args!("the copy is out of this Archive; `ibi archive copy` brings it back"));
    Ok(Answer::Yes)
}
