//! An Archive that is registered with a resolver, comes online as the standard has it (clause 3.3),
//! and then misbehaves in one way. It works against any resolver of the standard.
//!
//!     hostile-archive --list
//!     hostile-archive --behaviour NAME --listen HOST:PORT --service IBI --key KEY \
//!         --resolver HOST:PORT [--resolver-service IBI] [--victim HOST:PORT] \
//!         [--victim-service IBI] [--victim-label IBI] [--labels IBI,IBI…]
//!
//! It prints what the resolver answered to its inclusion, works until its standard input ends, and
//! then prints how often it misbehaved.

mod behaviour;
mod behaviours;
mod feed;
mod identity;
mod question;
mod serve;
mod wire;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use behaviour::{HostileAct, HostileBehaviour};
use identity::HostileIdentity;
use serve::HostileServer;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--list"] {
        for HostileBehaviour { name, effect, clause, does, .. } in behaviours::all() {
            println!("{name}\t{}\t{clause}\t{does}", effect.word());
        }
        return ExitCode::SUCCESS;
    }
    match play(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("hostile-archive: {why}");
            ExitCode::from(2)
        }
    }
}

fn play(arguments: &[String]) -> Result<(), String> {
    let identity = HostileIdentity::read(arguments)?;
    let behaviour = behaviours::all()
        .find(|one| one.name == identity.behaviour)
        .ok_or_else(|| format!("there is no behaviour `{}`: see --list", identity.behaviour))?;
    let listener =
        TcpListener::bind(&identity.address).map_err(|why| format!("{}: {why}", identity.address))?;
    let server = Arc::new(HostileServer::new(identity, behaviour));
    let accepting = Arc::clone(&server);
    std::thread::spawn(move || accepting.accept_all(&listener));
    let said = match &behaviour.act {
        HostileAct::Announces(announce) => {
            server.misbehaved.fetch_add(1, Ordering::SeqCst);
            announce(&server.identity)
        }
        HostileAct::Feeds(..) | HostileAct::FeedDrives(..) => wire::announce_feed(&server.identity),
        _ => wire::announce(&server.identity, "inclusionRequest"),
    };
    // Before it is told: whoever reads it may have the resolver ask at once.
    server.announced.store(true, Ordering::SeqCst);
    println!("{}", said.unwrap_or_else(|why| format!("no answer: {why}")).replace(['\r', '\n'], " "));
    let _ = std::io::stdout().flush();
    if let HostileAct::Repeats(again) = &behaviour.act {
        let server = Arc::clone(&server);
        let again = *again;
        std::thread::spawn(move || {
            for number in 0.. {
                server.misbehaved.fetch_add(1, Ordering::SeqCst);
                again(&server.identity, number);
            }
        });
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    println!("misbehaved {}", server.misbehaved.load(Ordering::SeqCst));
    Ok(())
}
