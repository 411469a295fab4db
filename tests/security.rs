//! Attacks by a hostile client, another user of the machine, a disk or a clock (docs/security.md),
//! against the built binary.

mod bare;
mod clock;
mod connections;
mod content;
mod disk;
mod hand_overs;
mod identity;
mod journal;
mod logs;
mod memory;
mod neighbours;
mod outgoing;
mod rates;
mod reload;
mod resolver_role_matrix;
mod role_matrix;
mod tokens;
