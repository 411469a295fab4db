//! Which servers a command may contact, and which certificate issuers it trusts.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

use crate::exit::CommandError;

/// Which servers a command may contact.
#[derive(Args)]
pub(crate) struct OutgoingArgs {
    /// Also contact servers on private and loopback addresses
    #[arg(long, env = "IBI_ALLOW_PRIVATE", hide_env_values = true, value_parser = FalseyValueParser::new())]
    allow_private: bool,
    #[command(flatten)]
    trust: TrustArgs,
}

/// Whose certificates are taken.
#[derive(Args)]
pub(crate) struct TrustArgs {
    /// Issuers whose TLS certificates are accepted beside those that the system trusts, PEM
    #[arg(long, value_name = "FILE", env = "IBI_CA_FILE", hide_env_values = true)]
    ca_file: Option<PathBuf>,
}

impl OutgoingArgs {
    /// Applies the options to every outgoing connection of this process.
    pub(crate) fn apply(&self) -> Result<(), CommandError> {
        if self.allow_private {
            ibi_http::outgoing::allow_private();
        }
        self.trust.apply()
    }
}

impl TrustArgs {
    /// Lets all that leaves this process trust these issuers.
    pub(crate) fn apply(&self) -> Result<(), CommandError> {
        let read = self.ca_file.as_deref().map(ibi_http::trust_ca_file).transpose();
        read.map(|_| ()).map_err(|error| CommandError::Usage(format!("--ca-file: {error}")))
    }
}
