//! `ibi backup`, `ibi restore` and `ibi archive confirm`.

use ibi_archive::backup::{self, Copied};
use ibi_archive::holders::handing::Handing;
use serde::Serialize;

use crate::cli::archive::{Backup, Confirm, Restore};
use crate::commands::archive::{borrowed, counter, open_to_read, rebuild, who};
use crate::commands::minter::quoted;
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

#[derive(Serialize)]
struct Report<'a> {
    items: u64,
    files: u64,
    bytes: u64,
    damaged: Vec<&'a str>,
}

pub(super) fn backup(command: &Backup) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let progress = counter("bytes copied");
    let copied = backup::backup(&data, &command.out, &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    tell(&copied, command.json)?;
    if copied.damaged.is_empty() {
        let out = quoted(&command.out.display().to_string());
        say(format_args!("to bring it back: ibi restore --from {out} --data NEW_FOLDER"));
    }
    Ok(Answer::from(copied.damaged.is_empty()))
}

pub(super) fn restore(command: &Restore) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let progress = counter("bytes copied");
    let restoration = backup::restore(&command.from, &data, &who(), &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    tell(&restoration.copied, command.json)?;
    let whole = rebuild::tell(&restoration.rebuilt);
    let data = quoted(&data.display().to_string());
    say(format_args!("this is the Archive as of {}", restoration.made));
    say(format_args!("it mints nothing until: ibi minter recover --data {data}"));
    say(format_args!("its originals answer Copy until: ibi archive confirm --data {data}"));
    Ok(if restoration.copied.damaged.is_empty() { whole } else { Answer::No })
}

pub(super) fn confirm(command: &Confirm) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    Handing::none_open(&open_to_read(&data)?)?;
    let _borrowed = borrowed(&data)?;
    if backup::confirm(&data)? {
        say(format_args!("its originals answer Original again"));
    } else {
        say(format_args!("there was nothing to confirm: this Archive was not restored from a backup"));
    }
    Ok(Answer::Yes)
}

fn tell(copied: &Copied, json: bool) -> Result<(), Failure> {
    if json {
        let damaged = copied.damaged.iter().map(|(item, _)| item.as_str()).collect();
        let mut output = Output::new();
        output.json(&Report { items: copied.items, files: copied.files, bytes: copied.bytes, damaged })?;
        output.flush()?;
    }
    for (item, what) in &copied.damaged {
        say(format_args!("not copied, because it is damaged: {}: {}", printable(item), printable(what)));
    }
    say(format_args!("{} items; {} files copied, {} bytes", copied.items, copied.files, copied.bytes));
    Ok(())
}
