//! `ibi archive init`.

use ibi_archive::archive::{self, ExistingService};
use ibi_archive::mint;
use ibi_id::Host;

use crate::cli::archive::Init;
use crate::commands::archive::{shown, who};
use crate::commands::minter::{propose_host, quoted, warn_of_host};
use crate::exit::{Answer, Failure};
use crate::io::say;

/// Items that a large Archive has.
const MANY: u64 = 100_000_000;

pub(crate) fn run(command: &Init) -> Result<Answer, Failure> {
    let folder = command.data.folder()?;
    let host = command.host.as_deref().ok_or_else(|| Failure::Usage(propose_host()))?;
    let host = Host::parse(host).map_err(Failure::Build)?;
    let from = mint::From {
        host: Some((host, command.port)),
        ip: command.ip.map(|ip| (ip, command.ip_port)),
        edition: mint::Edition::Rtc2015,
        allow_private: command.allow_private,
    };
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(Failure::Random)?;
    let existing =
        ExistingService { labels: command.service.clone(), metadata: command.service_metadata.clone() };
    let (archive, _) = archive::init_with_service(&folder, &from, &existing, random, &who())?;
    warn_of_host(&folder);
    let holdings = archive.holdings();
    let (service, _) = holdings.find(holdings.settings().service.primary())?;
    if let Some(items) = holdings.items_that_fit()?.filter(|items| *items < MANY) {
        say(format_args!(
            "this filesystem has room for the inodes of some {items} items; for more, see docs/operations/capacity.md"
        ));
    }
    shown::print(holdings, &service, command.json)?;
    say(format_args!("the Archive service is the item above, the first of this Archive"));
    say(format_args!("next: ibi archive deposit FILE --data {}", quoted(&folder.display().to_string())));
    Ok(Answer::Yes)
}
