//! All behaviours, by what is wrong with them.

mod bodies;
mod claims;
mod compression;
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
