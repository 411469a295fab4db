//! What readers ask, and what they may be told.
//!
//! | phase | what a reachable Archive holds | what a silent one holds | what nobody has |
//! | --- | --- | --- | --- |
//! | young: right after the cut | 302 there | 302 there, or 503 | 404 or 503 |
//! | settled, fresh | 302 there | 503 | 503 |
//! | healing: all are reachable again | 302 there, or 503 | | 404 or 503 |
//!
//! Anything else is wrong, and so is an answer after the deadline.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::ask::get;
use crate::network::ArchiveFault;
use crate::report::PartitionReport;
use crate::world::{PartitionWorld, RESOLVER};

/// A resolution's deadline (4.2 step 5), and what a loaded machine adds to it.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10 + 2);
/// Readers at a time.
const READERS: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionPhase {
    Young,
    Settled,
    /// With `Cache-Control: no-cache`, or without an index.
    Fresh,
    Healing,
}

/// One question, and who holds what it is about.
struct PartitionQuestion<'a> {
    label: &'a str,
    /// The host of the holder; nothing for what nobody has.
    holder: Option<&'a str>,
    is_reachable: bool,
}

/// Asks for everything that Archives have, and for what none has.
pub fn ask_everything(
    world: &PartitionWorld,
    faults: &[Option<ArchiveFault>],
    phase: PartitionPhase,
    report: &mut PartitionReport,
    when: &str,
) {
    let mut questions = Vec::new();
    for (archive, fault) in world.archives.iter().zip(faults) {
        let is_reachable = fault.is_none();
        let holder = Some(archive.host.as_str());
        questions.extend(archive.labels.iter().map(|label| PartitionQuestion {
            label,
            holder,
            is_reachable,
        }));
        questions.push(PartitionQuestion { label: &archive.unknown, holder: None, is_reachable });
    }
    let headers = if phase == PartitionPhase::Fresh { "Cache-Control: no-cache\r\n" } else { "" };
    let (next, shared) = (AtomicUsize::new(0), Mutex::new(report));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while let Some(question) = questions.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let (reply, took) = get(RESOLVER, &format!("/{}", question.label), headers);
                    let Ok(mut report) = shared.lock() else { return };
                    let told = reply.map_or((0, String::new()), |reply| (reply.status, reply.location));
                    report.count(told.0, took);
                    if !is_allowed(question, phase, &told) || took > ANSWER_DEADLINE {
                        report.wrong.push(format!(
                            "{when}: {} of {}, {}: {} {} after {} ms",
                            question.label,
                            question.holder.unwrap_or("nobody"),
                            if question.is_reachable { "reachable" } else { "cut off" },
                            told.0,
                            told.1,
                            took.as_millis()
                        ));
                    }
                }
            });
        }
    });
}

fn is_allowed(question: &PartitionQuestion<'_>, phase: PartitionPhase, told: &(u16, String)) -> bool {
    let (status, location) = told;
    let Some(holder) = question.holder else {
        let is_settled = matches!(phase, PartitionPhase::Settled | PartitionPhase::Fresh);
        return *status == 503 || *status == 404 && !is_settled;
    };
    let is_there = *status == 302 && location.starts_with(&format!("http://{holder}:8642/"));
    match (phase, question.is_reachable) {
        (PartitionPhase::Healing, _) | (PartitionPhase::Young, false) => is_there || *status == 503,
        (_, true) => is_there,
        (PartitionPhase::Settled | PartitionPhase::Fresh, false) => *status == 503,
    }
}
