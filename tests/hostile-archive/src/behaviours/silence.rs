//! Connections that lead to nothing (R7, R15).

use std::io::Read as _;
use std::time::Duration;

use super::behaviour;
use super::framing::wait;
use crate::behaviour::{BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::wire::good;

pub const SILENCE: &[HostileBehaviour] = &[
    behaviour("accepts-nothing", Fails, "4.3 R7", "accepts no connection", AcceptsNothing),
    behaviour("closes-at-once", Fails, "4.3 R7", "closes every connection at once", Greets(|_, _| Ok(()))),
    behaviour(
        "closes-after-the-question",
        Fails,
        "4.3 R16",
        "reads the question and closes the connection",
        Drives(|_, _| Ok(())),
    ),
    behaviour(
        "resets",
        Fails,
        "4.3 R7",
        "resets the connection while the question is unread",
        Greets(|_, from| {
            // A socket that is closed with something unread in it is reset.
            let _ = from.read(&mut [0; 4])?;
            Ok(())
        }),
    ),
    behaviour("silence", Fails, "4.3 R7", "reads the question and says nothing", Drives(|_, _| wait())),
    behaviour(
        "reads-nothing",
        Fails,
        "4.3 R7",
        "accepts, and neither reads nor says anything",
        Greets(|_, _| wait()),
    ),
    behaviour(
        "reads-slowly",
        Fails,
        "4.3 R7",
        "reads a byte of the question every 100 ms",
        Greets(|_, from| {
            for _ in 0..120 {
                let _ = from.read(&mut [0])?;
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        }),
    ),
    behaviour(
        "late-originals",
        Fails,
        "4.2 R2",
        "false Originals after 2.5 s, when nobody waits any more",
        Says(|asked| {
            std::thread::sleep(Duration::from_millis(2500));
            asked.false_original()
        }),
    ),
    behaviour(
        "originals-after-the-grace",
        Original,
        "4.2 R2",
        "false Originals after 400 ms",
        Says(|asked| {
            std::thread::sleep(Duration::from_millis(400));
            asked.false_original()
        }),
    ),
    behaviour(
        "closes-kept-connections",
        Nothing,
        "4.3",
        "holds nothing, says that it keeps the connection, and closes it",
        Sends(|_| {
            let answer = String::from_utf8_lossy(&good("")).into_owned();
            answer
                .replacen("\r\n", "\r\nConnection: keep-alive\r\nKeep-Alive: timeout=600\r\n", 1)
                .into_bytes()
        }),
    ),
];
