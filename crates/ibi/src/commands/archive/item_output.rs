//! Prints items; the JSON format is described in `docs/formats/archive-json.md`.

use ibi_archive::dublin_core::Element;
use ibi_archive::item_view::ItemView;
use ibi_archive::replication::outgoing_transfer::OutgoingTransfer;
use ibi_archive::store::{LabelRole, State};
use ibi_archive::{HeldItem, Holdings};

use crate::commands::archive::pluralize;
use crate::exit::CommandError;
use crate::io::{StdoutWriter, printable};

/// Prints a changed item: its labels, or all of it as JSON.
pub(super) fn print(holdings: &Holdings, holding: &HeldItem, json: bool) -> Result<(), CommandError> {
    let mut output = StdoutWriter::new();
    if json {
        output.json(&ItemView::of(holdings, holding, LabelRole::Item)?.with_history(holdings, holding)?)?;
    } else {
        output.text(format_args!("{}\n", labels(holding)))?;
    }
    output.flush()
}

/// The labels of an item on one line, in the format of `ibi mint`.
pub(super) fn labels(holding: &HeldItem) -> String {
    holding.item.labels.iter().collect::<Vec<_>>().join("\t")
}

/// The first title.
pub(super) fn title(holding: &HeldItem) -> &str {
    holding.metadata.of(Element::Title).next().map_or("", |title| title.value())
}

/// Prints an item as readable text.
pub(super) fn write(
    holdings: &Holdings,
    holding: &HeldItem,
    role: LabelRole,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    let shown = ItemView::of(holdings, holding, role)?.with_history(holdings, holding)?;
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
        let behind_text = format!("version {} at {}, seen {}", behind.latest, behind.holder, behind.seen);
        line("behind", &behind_text)?;
    }
    if let Some(transfer) = OutgoingTransfer::for_item(holdings.data(), &holding.path)? {
        let said = transfer.said.map(|said| format!("; {said}")).unwrap_or_default();
        let failed = if transfer.failed { ", failed" } else { "" };
        line("hand-over", &format!("to {}, since {}{failed}{said}", transfer.to, transfer.begun))?;
    } else if let Some((_, to)) = holdings.open_grant(&holding.path)? {
        line("hand-over", &format!("to {to}, granted but stalled: run `ibi archive transfer` again"))?;
    }
    line("version", &shown.version.to_string())?;
    if let Some(epoch) = shown.epoch.filter(|epoch| *epoch > 1) {
        line("epoch", &epoch.to_string())?;
    }
    line("created", shown.created)?;
    line("updated", shown.updated)?;
    // Shown only where they differ (D32).
    let clocks = [
        ("  data", shown.data_updated),
        ("  metadata", shown.metadata_updated),
        ("  metadata created", shown.metadata_created),
    ];
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
        line("", &format!("{}  {}  {}", file.path, pluralize(file.size, "byte"), file.media))?;
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
