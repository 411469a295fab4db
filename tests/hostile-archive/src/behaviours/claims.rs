//! Well formed answers that lie about the item, the Archive or what it holds (4.2, 4.3; R1, R2).

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::question::forms;

pub const CLAIMS: &[HostileBehaviour] = &[
    behaviour(
        "false-originals",
        Original,
        "4.2 4.4 R2",
        "claims the Original of everything",
        Says(|asked| asked.false_original()),
    ),
    behaviour(
        "false-copies",
        Copy,
        "4.2 R1",
        "claims a copy of everything",
        Says(|asked| asked.claim("Copy", &asked.own_url())),
    ),
    behaviour(
        "no-state",
        Copy,
        "3.4",
        "has everything and does not say in which state",
        Says(|asked| without(&asked.false_original(), "state")),
    ),
    behaviour(
        "wrong-item",
        Fails,
        "4.2 R4",
        "answers every question with an item of its own",
        Says(|asked| asked.false_original().replace(&asked.label, &asked.me.own_label(7))),
    ),
    behaviour(
        "wrong-item-of-another",
        Fails,
        "4.2 R4",
        "answers every question with an item of another Archive, in another spelling if it is that",
        Says(|asked| match asked.label == asked.me.victim_label {
            true => asked.false_original().replace(&asked.label, &asked.me.own_label(8)),
            false => asked.false_original().replace(&asked.label, &asked.me.victim_label),
        }),
    ),
    behaviour(
        "alias-of-everything",
        Original,
        "3.4 4.2",
        "an item of its own for which every label is an alias",
        Says(|asked| {
            let own = asked.false_original().replace(&asked.label, &asked.me.own_label(9));
            format!("{own}ibi.alias {{{}}}\r\n", forms(&asked.label))
        }),
    ),
    behaviour(
        "another-alias",
        Fails,
        "3.4 4.2",
        "an item of its own, with an alias that nobody asked for",
        Says(|asked| {
            let own = asked.false_original().replace(&asked.label, &asked.me.own_label(9));
            format!("{own}ibi.alias {{{}}}\r\n", forms(&asked.me.own_label(10)))
        }),
    ),
    behaviour(
        "adds-a-label",
        Original,
        "3.4 ADR 13",
        "adds a label of its own to the item that was asked for",
        Says(|asked| {
            let item = format!("ibi {{{}}}", forms(&asked.label));
            let both = format!("ibi {{{} ibip 8JMKD3MGP8W/34PGRBS}}", forms(&asked.label));
            asked.false_original().replace(&item, &both)
        }),
    ),
    behaviour(
        "wrong-service",
        Fails,
        "4.2 R1",
        "answers in the name of another Archive",
        Says(|asked| asked.false_original().replace(&asked.me.service, &asked.me.victim_service)),
    ),
    behaviour(
        "no-service",
        Fails,
        "4.2 R1",
        "does not say which Archive answers",
        Says(|asked| without(&asked.false_original(), "ibi.archiveservice")),
    ),
    behaviour(
        "no-item",
        Fails,
        "4.2",
        "does not say which item it answers about",
        Says(|asked| without(&asked.false_original(), "ibi ")),
    ),
    behaviour(
        "empty-item",
        Fails,
        "4.2",
        "an item without labels",
        Says(|asked| asked.opening() + "ibi {}\r\nurl {}\r\nstate Original\r\n"),
    ),
    behaviour(
        "removed-everything",
        Deleted,
        "4.2 4.3",
        "says that everything was removed",
        Says(|asked| asked.opening_of_item() + "state Deleted\r\ntimestamp 2020-01-01T00:00:00Z\r\n"),
    ),
    behaviour(
        "removed-without-a-name",
        Deleted,
        "3.4 4.3",
        "says of everything that an item of its own, which it is an alias of, was removed",
        Says(|asked| {
            let own = forms(&asked.me.own_label(11));
            format!("{}ibi {{{own}}}\r\nstate Deleted\r\ntimestamp 2020-01-01T00:00:00Z\r\n", asked.opening())
        }),
    ),
    behaviour(
        "reserved-everything",
        Reserved,
        "3.4 4.3",
        "says that every label is reserved for a draft",
        Says(|asked| asked.opening_of_item() + "state Reserved\r\n"),
    ),
    behaviour(
        "several-of-everything",
        Varies,
        "1.3 4.3",
        "says that every spelling is canonical for several items",
        Says(|asked| {
            let other = other_spelling(&asked.label);
            let both = format!("{{{}}} {{{}}}", forms(&asked.label), forms(&other));
            format!("{}ibi.alternatives {{{both}}}\r\n", asked.opening_of_item())
        }),
    ),
    behaviour(
        "other-spelling",
        Varies,
        "1.3 4.2",
        "claims the Original of everything in another spelling",
        Says(|asked| {
            let item = format!("ibi {{{}}}", forms(&asked.label));
            let other = format!("ibi {{{}}}", forms(&other_spelling(&asked.label)));
            asked.false_original().replacen(&item, &other, 1)
        }),
    ),
    behaviour(
        "contradictory-state",
        Varies,
        "3.4",
        "Original, Copy and Deleted at once",
        Says(|asked| asked.false_original() + "state Copy\r\nstate Deleted\r\n"),
    ),
    behaviour(
        "state-that-is-none",
        Fails,
        "3.4",
        "a state that is none, with markup in it",
        Says(|asked| asked.claim("{<b>Original</b>}", &asked.own_url())),
    ),
    behaviour(
        "content-type-that-is-none",
        Fails,
        "3.4",
        "a content type that is none",
        Says(|asked| {
            asked
                .false_original()
                .replace(" Data\r\n", " Program\r\n")
                .replace(" Metadata\r\n", " Program\r\n")
        }),
    ),
    behaviour(
        "times-out-of-range",
        Original,
        "3.4",
        "false Originals of the year 999999999, of the 99th of a month, and of no time",
        Says(|asked| {
            let times = ["999999999-99-99T99:99:99Z", "-1", "{}", "1970-01-01T00:00:00+99:99"];
            let time = times[asked.number as usize % times.len()];
            asked.false_original().replace("2020-01-01T00:00:00Z", time)
        }),
    ),
    behaviour(
        "markup-in-times",
        Original,
        "3.4 W4",
        "false Originals with markup and line ends for a time",
        Says(|asked| {
            let time = "{<script>alert(1)</script>%0d%0aX-Injected: y}";
            asked.false_original().replace("2020-01-01T00:00:00Z", time)
        }),
    ),
    behaviour(
        "urlkey-that-is-none",
        Copy,
        "3.4 K8",
        "copies with a urlkey of letters, line ends and markup",
        Says(|asked| {
            let key = "{abc%0d%0aX-Injected: y&url=http://elsewhere.test/ <b>}";
            asked.claim("Copy", &asked.own_url()).replace("1234567890-1234567890", key)
        }),
    ),
    behaviour(
        "urlkey-without-end",
        Copy,
        "3.4 K8",
        "copies with a urlkey of 60,000 digits",
        Says(|asked| {
            let key = format!("1234567890-{}", "7".repeat(60_000));
            asked.claim("Copy", &asked.own_url()).replace("1234567890-1234567890", &key)
        }),
    ),
    behaviour(
        "changes-its-mind",
        Varies,
        "4.2 R2",
        "Original, Copy, nothing, removed and silence by turns",
        Says(|asked| match asked.number % 5 {
            0 => asked.false_original(),
            1 => asked.claim("Copy", &asked.own_url()),
            2 => String::new(),
            3 => asked.opening_of_item() + "state Deleted\r\n",
            _ => "{".to_owned(),
        }),
    ),
    behaviour(
        "first-honest-then-lies",
        Varies,
        "4.2 R2",
        "holds nothing ten times, and then the Original of everything",
        Says(|asked| if asked.number < 10 { String::new() } else { asked.false_original() }),
    ),
    behaviour(
        "counts-evidence-out",
        Original,
        "4.2 R6",
        "false Originals, and evidence that does not end",
        Accounts(|_, to| {
            use std::io::Write as _;
            to.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":[")?;
            loop {
                to.write_all(&b"[[[[[[[[".repeat(1024))?;
            }
        }),
    ),
];

/// The answer without the pairs whose names begin so.
fn without(answer: &str, name: &str) -> String {
    answer.split_inclusive("\r\n").filter(|line| !line.starts_with(name)).collect()
}

/// The same label with the usual port after its first part (1.3).
fn other_spelling(label: &str) -> String {
    let parts: Vec<&str> = label.split('/').collect();
    match parts[..] {
        [host, name, year, date] if !name.contains('@') => format!("{host}/{name}@80/{year}/{date}"),
        _ => label.to_ascii_uppercase(),
    }
}
