//! `ibi archive init`.

use ibi_archive::archive::ArchiveSettingsChange;
use ibi_archive::opening::{self, ExistingService};
use ibi_archive::ownership::LOCAL_OPERATOR;
use ibi_id::Host;

use crate::cli::archive::ArchiveInitArgs;
use crate::commands::archive::item_output;
use crate::commands::minter::{propose_host, shell_quoted, warn_of_host};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::say;

/// Number of items of a large Archive.
const LARGE_ARCHIVE_ITEMS: u64 = 100_000_000;

pub(crate) fn run(command: &ArchiveInitArgs) -> Result<CommandOutcome, CommandError> {
    let folder = command.data.folder()?;
    let host = command.host.as_deref().ok_or_else(|| CommandError::Usage(propose_host()))?;
    let host = Host::parse(host).map_err(CommandError::Build)?;
    let config = ibi_mint::MinterConfig {
        host: Some((host, command.port)),
        ip: command.ip.map(|ip| (ip, command.ip_port)),
        edition: ibi_mint::DistributorEdition::Rtc2015,
        allow_private: command.allow_private,
    };
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(CommandError::Random)?;
    let existing =
        ExistingService { labels: command.service.clone(), metadata: command.service_metadata.clone() };
    let operator = command.operator_name.as_deref().unwrap_or_default();
    // Validated before anything is created.
    ibi_archive::service::check_operator_name(&folder, operator)?;
    let by = if operator.is_empty() { LOCAL_OPERATOR } else { operator };
    let (mut archive, _) = opening::init_with_service(&folder, &config, &existing, random, by)?;
    if !operator.is_empty() {
        let operator_name = Some(operator.to_owned());
        archive
            .change_settings(ArchiveSettingsChange { operator_name, ..ArchiveSettingsChange::default() })?;
    }
    warn_of_host(&folder);
    let holdings = archive.holdings();
    let (service, _) = holdings.find(holdings.settings().service.primary())?;
    if let Some(items) = holdings.items_that_fit()?.filter(|items| *items < LARGE_ARCHIVE_ITEMS) {
        say(format_args!(
            "this filesystem has inodes for about {items} items; for more, see docs/operations/capacity.md"
        ));
    }
    item_output::print(holdings, &service, command.json)?;
    say(format_args!("created the Archive; the label above is its Archive service, the first item"));
    say(format_args!(
        "next: ibi archive deposit FILE --data {}",
        shell_quoted(&folder.display().to_string())
    ));
    Ok(CommandOutcome::Yes)
}
