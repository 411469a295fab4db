//! The first block of a minter's state: the subsystem that mints (`docs/formats/minter-state.md`).

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::private_files::open_regular_file;
use crate::text_block::{self, ChecksummedBlock, TEXT_BLOCK_BYTES};
use crate::{DistributorEdition, Subsystem};

pub(crate) const STATE_TITLE: &str = "ibi minter state, format 1";

/// The id of the state in a data folder, if it is readable.
pub(crate) fn state_id(folder: &Path) -> Option<String> {
    let file = open_regular_file(&folder.join("minter/state"), OpenOptions::new().read(true)).ok()?;
    let mut block = [0; TEXT_BLOCK_BYTES];
    file.read_exact_at(&mut block, 0).ok()?;
    parse_subsystem(&block).map(|subsystem| subsystem.id)
}

pub(crate) fn subsystem_block(subsystem: &Subsystem) -> Option<Vec<u8>> {
    let mut block = ChecksummedBlock::new(STATE_TITLE);
    block.line("id", &subsystem.id);
    for (name, prefix) in [("rep", &subsystem.rep), ("ibip", &subsystem.ibip)] {
        if let Some(prefix) = prefix {
            block.line(name, prefix);
        }
    }
    block.line("edition", subsystem.edition);
    block.finish(TEXT_BLOCK_BYTES)
}

pub(crate) fn parse_subsystem(block: &[u8]) -> Option<Subsystem> {
    let lines = text_block::parse_block(block, STATE_TITLE)?;
    let value = |name| text_block::single_value(&lines, name).map(str::to_owned);
    let edition: DistributorEdition = text_block::single_value(&lines, "edition")?.parse().ok()?;
    Some(Subsystem { id: value("id")?, rep: value("rep"), ibip: value("ibip"), edition })
}
