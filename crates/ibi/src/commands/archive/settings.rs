//! `ibi archive settings`.

use ibi_archive::archive::SettingsChange;
use serde::Serialize;

use crate::cli::continuity::SettingsArgs;
use crate::commands::archive::{open, open_to_read};
use crate::exit::{Answer, Failure};
use crate::io::Output;

#[derive(Serialize)]
struct SettingsShown {
    service: Vec<String>,
    service_metadata: Vec<String>,
    registered_label: String,
    platform_software: Option<String>,
}

pub(crate) fn run(command: &SettingsArgs) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let change = SettingsChange {
        registered_label: command.registered_label.clone(),
        platform_software: command.platform_software.clone(),
    };
    let settings = if change == SettingsChange::default() {
        open_to_read(&data)?.settings().clone()
    } else {
        open(&data)?.change_settings(change)?.clone()
    };
    let texts = |labels: &ibi_archive::item::Labels| labels.iter().map(str::to_owned).collect();
    let shown = SettingsShown {
        service: texts(&settings.service),
        service_metadata: texts(&settings.service_metadata),
        registered_label: settings.announced().to_owned(),
        platform_software: settings.platform_software.clone(),
    };
    let mut output = Output::new();
    if command.json {
        output.json(&shown)?;
    } else {
        let software = shown.platform_software.as_deref().unwrap_or("-");
        let lines = [
            ("service", shown.service.join("\t")),
            ("service metadata", shown.service_metadata.join("\t")),
            ("registered label", shown.registered_label),
            ("platform software", software.to_owned()),
        ];
        for (name, value) in lines {
            output.text(format_args!("{name:<18} {value}\n"))?;
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}
