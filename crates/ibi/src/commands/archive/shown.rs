//! An item as commands print it: `docs/formats/archive-json.md`.

use ibi_archive::dublin_core::Element;
use ibi_archive::holders::handing::Handing;
use ibi_archive::keep::{Role, State};
use ibi_archive::told::Told;
use ibi_archive::{Holding, Holdings};

use crate::exit::Failure;
use crate::io::{Output, printable};

/// Prints an item that was changed: its labels, or all of it as JSON.
pub(super) fn print(holdings: &Holdings, holding: &Holding, json: bool) -> Result<(), Failure> {
    let mut output = Output::new();
    if json {
        output.json(&Told::of(holdings, holding, Role::Item)?.with_history(holdings, holding)?)?;
    } else {
        output.text(format_args!("{}\n", labels(holding)))?;
    }
    output.flush()
}

/// The labels of an item on a line, as `ibi mint` prints them.
pub(super) fn labels(holding: &Holding) -> String {
    holding.item.labels.iter().collect::<Vec<_>>().join("\t")
}

/// The first title.
pub(super) fn title(holding: &Holding) -> &str {
    holding.metadata.of(Element::Title).next().map_or("", |title| title.value())
}

/// An item for people.
pub(super) fn write(
    holdings: &Holdings,
    holding: &Holding,
    role: Role,
    output: &mut Output,
) -> Result<(), Failure> {
    let shown = Told::of(holdings, holding, role)?.with_history(holdings, holding)?;
    let mut line = |name: &str, value: &str| output.text(format_args!("{name:<16} {}\n", printable(value)));
    for (name, label) in
        [("rep", &shown.labels.rep), ("ibip", &shown.labels.ibip), ("legacy", &shown.labels.legacy)]
    {
        if let Some(label) = label {
            line(name, label)?;
        }
    }
    shown.aliases.iter().try_for_each(|alias| line("alias", alias))?;
    line("content type", shown.contenttype)?;
    if let Some(described) = shown.describes {
        line("describes", described)?;
    }
    let transferable =
        if holding.state == State::Original && !shown.transferable { ", not transferable" } else { "" };
    line("state", &format!("{}{transferable}", shown.state))?;
    if let Some(source) = &shown.source {
        line("copied from", source)?;
    }
    if let Some(behind) = &shown.behind {
        let told = format!("version {} at {}, seen {}", behind.latest, behind.holder, behind.seen);
        line("behind", &told)?;
    }
    if let Some(handing) = Handing::of(holdings.data(), &holding.path)? {
        let said = handing.said.map(|said| format!("; {said}")).unwrap_or_default();
        let failed = if handing.failed { ", given up" } else { "" };
        line("hand-over", &format!("to {}, since {}{failed}{said}", handing.to, handing.begun))?;
    } else if let Some((_, to)) = holdings.granted(&holding.path)? {
        line(
            "hand-over",
            &format!("to {to}, granted; nobody goes on with it: say `ibi archive transfer` again"),
        )?;
    }
    line("version", &shown.version.to_string())?;
    if let Some(epoch) = shown.epoch.filter(|epoch| *epoch > 1) {
        line("epoch", &epoch.to_string())?;
    }
    line("created", shown.created)?;
    line("updated", shown.updated)?;
    // Told apart where they differ (D32).
    let clocks = [("  data", shown.data_updated), ("  metadata", shown.metadata_updated)];
    for (name, time) in clocks {
        time.map_or(Ok(()), |time| line(name, time))?;
    }
    let optional = [
        ("language", shown.language.as_deref()),
        ("translation of", shown.translation_of),
        ("next edition of", shown.next_edition_of),
        ("target", shown.target),
        ("url", shown.url),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            line(name, value)?;
        }
    }
    line("access", &shown.access)?;
    if let Some(removed) = shown.removed {
        let bytes = if removed.purged { "; its bytes were destroyed" } else { "" };
        line("removed", &format!("{} by {}: {}{bytes}", removed.at, removed.by, removed.reason))?;
    }
    line("metadata", &shown.metadata.labels.iter().collect::<Vec<_>>().join("  "))?;
    for statement in shown.metadata.dc.statements() {
        let language = statement.language().map(|tag| format!("@{}", tag.as_str())).unwrap_or_default();
        line(&format!("  {}{language}", statement.element().name()), statement.value())?;
    }
    line("files", &shown.files.len().to_string())?;
    for file in &shown.files {
        line("", &format!("{}  {} bytes  {}", file.path, file.size, file.media))?;
    }
    line("history", "")?;
    for event in shown.history.iter().flatten() {
        let part = |before: &str, text: &Option<String>| {
            text.as_deref().map(|text| format!("{before}{text}")).unwrap_or_default()
        };
        let others = part(" from ", &event.source) + &part(" to ", &event.to) + &part(" at ", &event.at);
        let note = part(": ", &event.note);
        line(
            "",
            &format!("{} {} v{} by {}{others}{note}", event.time, event.event, event.version, event.by),
        )?;
    }
    Ok(())
}
