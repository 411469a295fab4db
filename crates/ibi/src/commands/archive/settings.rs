//! `ibi archive settings`.

use ibi_archive::archive::ArchiveSettingsChange;
use serde::Serialize;

use crate::cli::continuity::SettingsArgs;
use crate::commands::archive::{open, open_to_read};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::StdoutWriter;

#[derive(Serialize)]
struct SettingsOutput {
    service: Vec<String>,
    service_metadata: Vec<String>,
    registered_label: String,
    platform_software: Option<String>,
    operator_name: String,
}

pub(crate) fn run(command: &SettingsArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let change = ArchiveSettingsChange {
        registered_label: command.registered_label.clone(),
        platform_software: command.platform_software.clone(),
        operator_name: command.operator_name.clone(),
    };
    let settings = if change == ArchiveSettingsChange::default() {
        open_to_read(&data)?.settings().clone()
    } else {
        let mut archive = open(&data)?;
        if let Some(name) = &change.operator_name {
            ibi_archive::service::check_operator_name(&data, name)?;
        }
        archive.change_settings(change)?.clone()
    };
    let texts = |labels: &ibi_archive::item::ItemLabels| labels.iter().map(str::to_owned).collect();
    let shown = SettingsOutput {
        service: texts(&settings.service),
        service_metadata: texts(&settings.service_metadata),
        registered_label: settings.announced_label().to_owned(),
        platform_software: settings.platform_software.clone(),
        operator_name: settings.operator().to_owned(),
    };
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&shown)?;
    } else {
        let software = shown.platform_software.as_deref().unwrap_or("-");
        let lines = [
            ("service", shown.service.join("\t")),
            ("service metadata", shown.service_metadata.join("\t")),
            ("registered label", shown.registered_label),
            ("platform software", software.to_owned()),
            ("operator name", shown.operator_name),
        ];
        for (name, value) in lines {
            output.text(format_args!("{name:<18} {value}\n"))?;
        }
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}
