//! All behaviours, by what is wrong with them.

mod bodies;
mod claims;
mod compression;
mod feed_bodies;
mod feed_claims;
mod feed_paths;
mod feed_sequences;
mod feed_wire;
mod framing;
mod heads;
mod inclusion;
mod links;
mod silence;
mod urls;

use crate::behaviour::{BehaviourEffect, HostileAct, HostileBehaviour};

pub fn all() -> impl Iterator<Item = &'static HostileBehaviour> {
    [
        bodies::BODIES,
        claims::CLAIMS,
        links::LINKS,
        urls::URLS,
        framing::FRAMING,
        heads::HEADS,
        compression::COMPRESSION,
        silence::SILENCE,
        inclusion::INCLUSION,
        feed_sequences::FEED_SEQUENCES,
        feed_bodies::FEED_BODIES,
        feed_claims::FEED_CLAIMS,
        feed_paths::FEED_PATHS,
        feed_wire::FEED_WIRE,
    ]
    .into_iter()
    .flatten()
}

const fn behaviour(
    name: &'static str,
    effect: BehaviourEffect,
    clause: &'static str,
    does: &'static str,
    act: HostileAct,
) -> HostileBehaviour {
    HostileBehaviour { name, effect, clause, does, act }
}
