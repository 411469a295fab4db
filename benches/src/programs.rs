//! What is measured of programs and services, by the words of the command line.

use std::process::ExitCode;

use crate::{archive, json, mint, online, resolve};

/// Measures what is named; nothing if nothing has that name.
pub(crate) fn compare(arguments: &[&str]) -> Option<ExitCode> {
    Some(match *arguments {
        ["archive", folder, ibi] => archive::compare(folder, ibi, None),
        ["archive", folder, ibi, name] => archive::compare(folder, ibi, Some(name)),
        ["online", folder, ibi] => online::compare(folder, ibi, None),
        ["online", folder, ibi, name] => online::compare(folder, ibi, Some(name)),
        ["resolve", folder] => resolve::compare(folder),
        ["archives", number, hung] => resolve::serve(number.parse().unwrap_or(1), hung.parse().unwrap_or(0)),
        ["feeds", resolver] => online::serve_feeds(resolver),
        ["redirects"] => online::serve_redirects(),
        ["bare", database] => online::serve_bare(database),
        ["json", ibi] => json::compare(ibi),
        ["mint", folder] => mint::compare(folder),
        _ => return None,
    })
}
