//! What can happen, and what the world is then. Here the Archives ask the rules of the hand-over.

use ibi_archive::replication::giver_trust::GiverTrust;
use ibi_archive::transfer_protocol::{self, TakerAction, TransferTerms, may_drop, may_grant, may_offer};
use ibi_store::journal::State;

use crate::model::{Archive, Bounds, Fault, Giver, Message, Number, Offered, Rules, Source, World, bit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Offer(u8),
    Arrive(Message, Number),
    /// The same, while nobody answers who is asked about the giver.
    ArriveUnconfirmed(Message, Number),
    /// Somebody who has a token hands an item of its own making over to this one; whether the
    /// source and the resolver answer.
    Impostor(u8, bool, bool),
    Say(u8),
    Write(u8),
    Repeat(u8),
    Crash(u8),
    Update(u8),
    Remove(u8),
    Drop(u8),
    /// From the other one.
    Fetch(u8),
    /// Somebody who has a token, and no part in it, says to the other one that this one grants.
    Forge(u8),
    TakeBack(u8),
    Forget(u8),
    Backup(u8),
    Restore,
}

const MESSAGES: [Message; 5] =
    [Message::Offer, Message::Ready, Message::Grant, Message::Accepted, Message::Refused];

impl World {
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let (said, begun) = (self.said, self.begun);
        let arrive = MESSAGES.into_iter().flat_map(move |message| {
            let arrived = (1..=begun).filter(move |n| said & bit(message, *n) != 0);
            arrived.flat_map(move |n| [Step::Arrive(message, n), Step::ArriveUnconfirmed(message, n)])
        });
        let answers = [(false, false), (false, true), (true, false), (true, true)];
        let impostor = [0, 1].into_iter().flat_map(move |x| answers.map(|(a, b)| Step::Impostor(x, a, b)));
        let own = [
            Step::Offer,
            Step::Say,
            Step::Write,
            Step::Repeat,
            Step::Crash,
            Step::Update,
            Step::Remove,
            Step::Drop,
            Step::Fetch,
            Step::Forge,
            Step::TakeBack,
            Step::Forget,
            Step::Backup,
        ];
        let own = own.into_iter().flat_map(|step| [step(0), step(1)]);
        arrive.chain(own).chain(impostor).chain([Step::Restore])
    }

    /// The world after a step, or nothing if it cannot be made.
    pub(crate) fn after(mut self, step: Step, rules: &Rules, bounds: &Bounds) -> Option<Self> {
        match step {
            Step::Arrive(message, number) => self.arrive(message, number, true, (rules, bounds))?,
            Step::ArriveUnconfirmed(message, number) => {
                self.arrive(message, number, false, (rules, bounds))?;
            }
            Step::Impostor(x, source, resolver) => self.impostor(x, (source, resolver), (rules, bounds))?,
            Step::Restore => {
                let (x, archive) = self.backup.filter(|(x, _)| !self.archives[usize::from(*x)].restored)?;
                self.archives[usize::from(x)] = Archive { restored: true, ..archive };
            }
            Step::Offer(x) => {
                let archive = self.archives[usize::from(x)];
                may_offer(&archive.stand(bounds)).ok().filter(|()| self.begun < bounds.handovers)?;
                self.begun += 1;
                self.offered[usize::from(self.begun)] =
                    Offered { giver: x, epoch: archive.epoch + 1, version: archive.version };
                self.said |= bit(Message::Offer, self.begun);
            }
            Step::Write(x) if self.archives[usize::from(x)].unwritten > 0 => {
                let number = self.archives[usize::from(x)].unwritten;
                self.write_grant(number, rules, bounds);
            }
            Step::Repeat(x) if self.archives[usize::from(x)].granted > 0 => {
                self.said |= bit(Message::Grant, self.archives[usize::from(x)].granted);
            }
            Step::Say(x) => {
                let (message, number) = self.archives[usize::from(x)].unsaid.take()?;
                self.said |= bit(message, number);
            }
            Step::Drop(x) if self.drops < bounds.drops => {
                let archive = &mut self.archives[usize::from(x)];
                may_drop(&archive.stand(bounds)).ok()?;
                archive.drop_bytes();
                self.fault = self.fault.or(archive.restored.then_some(Fault::RestoredActed));
                self.drops += 1;
            }
            Step::Backup(x) if bounds.restore && self.backup.is_none() => {
                let mut archive = self.archives[usize::from(x)];
                archive.crash();
                self.backup = Some((x, archive));
            }
            Step::Fetch(x) => self.fetch(x)?,
            Step::Forge(x) => self.forge(x, rules, bounds)?,
            Step::Crash(x) => self.archives[usize::from(x)].crash(),
            Step::Update(x) | Step::Remove(x) | Step::TakeBack(x) | Step::Forget(x) => {
                let archive = &mut self.archives[usize::from(x)];
                match step {
                    Step::Update(_) if archive.answers_original() && self.newest <= bounds.updates => {
                        self.newest += 1;
                        archive.version = self.newest;
                        archive.bytes |= 1 << self.newest;
                    }
                    Step::Remove(_) if archive.answers_original() && bounds.removal => {
                        // The bytes stay for a while.
                        archive.state = Some(State::Deleted);
                    }
                    Step::TakeBack(_) if rules.taken_back_after_a_while && archive.granted > 0 => {
                        (archive.state, archive.granted) = (Some(State::Original), 0);
                    }
                    Step::Forget(_) if bounds.forgets => archive.accepted = 0,
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(self)
    }

    /// A message comes to the one that it was for.
    fn arrive(
        &mut self,
        message: Message,
        number: Number,
        confirmed: bool,
        (rules, bounds): (&Rules, &Bounds),
    ) -> Option<()> {
        if self.said & bit(message, number) == 0 {
            return None;
        }
        let Offered { giver, epoch, version } = self.offered[usize::from(number)];
        let terms = TransferTerms {
            handover: number.to_string(),
            epoch: epoch.into(),
            inventory: version.to_string(),
        };
        let to = match message {
            Message::Offer | Message::Grant => 1 - giver,
            Message::Ready | Message::Accepted | Message::Refused => giver,
        };
        let (trust, is_named) =
            self.trusts(to, (Giver::Other, number), (confirmed, confirmed), (rules, bounds));
        let giver_answers_original = self.archives[usize::from(giver)].answers_original();
        let archive = &mut self.archives[usize::from(to)];
        let stand = archive.stand(bounds);
        match message {
            Message::Offer | Message::Grant
                if trust != GiverTrust::Believed && archive.accepted & (1 << number) == 0 =>
            {
                return None;
            }
            Message::Offer | Message::Grant => {
                // The operator's word names nobody.
                let is_named = is_named || !bounds.word;
                if message == Message::Offer
                    && is_named
                    && archive.source != Source::Other
                    && archive.granted == 0
                {
                    archive.named |= 1 << number;
                }
                let accepted = archive.accepted & (1 << number) != 0;
                archive.unsaid = match ((rules.take)(&stand, accepted, &terms), message) {
                    // Fetching is a step of its own. Then what was said may arrive once more.
                    (Ok(TakerAction::Fetch), _) => return Some(()),
                    (Ok(TakerAction::Accept), Message::Offer) => {
                        // It has compared its Copy with what the giver has, and recorded what that
                        // one said.
                        if giver_answers_original && is_named {
                            (archive.source, archive.copy_holder) = (Source::Other, Source::Nobody);
                        }
                        Some((Message::Ready, number))
                    }
                    (Ok(TakerAction::Accept), _) => {
                        (archive.state, archive.epoch) = (Some(State::Original), epoch);
                        archive.accepted |= 1 << number;
                        archive.named &= !(1 << number);
                        self.fault = match () {
                            () if archive.restored => Some(Fault::RestoredActed),
                            () if self.taken & (1 << number) != 0 => Some(Fault::AcceptedTwice),
                            () if epoch <= self.reign => Some(Fault::EpochWentBack),
                            () => self.fault,
                        };
                        self.taken |= 1 << number;
                        self.reign = self.reign.max(epoch);
                        Some((Message::Accepted, number))
                    }
                    (Ok(TakerAction::Accepted), _) => Some((Message::Accepted, number)),
                    // A refusal changes nothing at a giver that keeps the rules: only others are
                    // told.
                    (Err(_), _) if rules.taken_back_when_refused => Some((Message::Refused, number)),
                    (Err(_), _) => return None,
                };
            }
            // Also if it is an old one, and the giver has long forgotten that it asked.
            Message::Ready => {
                may_grant(&stand, &terms).ok()?;
                if rules.granted_before_written {
                    archive.unwritten = number;
                    self.said |= bit(Message::Grant, number);
                } else {
                    archive.unsaid = Some((Message::Grant, number));
                    self.write_grant(number, rules, bounds);
                }
            }
            Message::Accepted if archive.granted == number || rules.any_answer_counts => {
                (archive.granted, archive.source) = (0, Source::Other);
                archive.copy_holder = Source::Nobody;
            }
            Message::Refused if archive.granted == number => {
                (archive.state, archive.granted) = (Some(State::Original), 0);
            }
            Message::Accepted | Message::Refused => return None,
        }
        Some(())
    }

    /// A grant comes that nobody made. All that is in it is public, but for the name.
    fn forge(&mut self, x: u8, rules: &Rules, bounds: &Bounds) -> Option<()> {
        let told = self.archives[usize::from(x)];
        let terms = TransferTerms {
            handover: "forged".to_owned(),
            epoch: u64::from(told.epoch) + 1,
            inventory: told.version.to_string(),
        };
        let archive = &mut self.archives[usize::from(1 - x)];
        if !(rules.is_given)(true, &terms, transfer_protocol::TransferStep::None, None)
            || (rules.take)(&archive.stand(bounds), false, &terms) != Ok(TakerAction::Accept)
        {
            return None;
        }
        (archive.state, archive.epoch) = (Some(State::Original), told.epoch + 1);
        Some(())
    }

    /// It is durable that the giver is a Copy, and what it granted.
    fn write_grant(&mut self, number: Number, rules: &Rules, bounds: &Bounds) {
        let Offered { giver, epoch, .. } = self.offered[usize::from(number)];
        let archive = &mut self.archives[usize::from(giver)];
        self.fault = match () {
            () if archive.restored => Some(Fault::RestoredActed),
            () if !bounds.transferable => Some(Fault::NonTransferableLeft),
            () if archive.state == Some(State::Deleted) => Some(Fault::RemovedLeft),
            () => self.fault,
        };
        (archive.state, archive.epoch) = (Some(State::Copy), epoch);
        (archive.granted, archive.unwritten) = (number, 0);
        if rules.dropped_when_granted {
            archive.drop_bytes();
        }
    }

    /// A Copy is made, or brought up to date: never from one that is behind.
    fn fetch(&mut self, x: u8) -> Option<()> {
        let source = self.archives[usize::from(1 - x)];
        let archive = &mut self.archives[usize::from(x)];
        let free = matches!(archive.state, None | Some(State::Copy));
        if !free || source.state == Some(State::Deleted) || source.version <= archive.version {
            return None;
        }
        (archive.state, archive.version, archive.bytes) = (Some(State::Copy), source.version, source.bytes);
        if source.answers_original() {
            // From now on its own record names the other one: who was named before makes no
            // difference.
            (archive.source, archive.copy_holder, archive.named) = (Source::Other, Source::Nobody, 0);
        } else if archive.source != Source::Other {
            archive.copy_holder = Source::Other;
        }
        Some(())
    }

    /// A grant of a third Archive comes, which confirms it itself; it has what is here, or
    /// something new.
    fn impostor(&mut self, x: u8, answers: (bool, bool), (rules, bounds): (&Rules, &Bounds)) -> Option<()> {
        let (trust, _) = self.trusts(x, (Giver::Impostor, 0), answers, (rules, bounds));
        let other = self.archives[usize::from(1 - x)];
        let archive = &mut self.archives[usize::from(x)];
        let epoch = archive.epoch.max(other.epoch) + 1;
        let version = if archive.version > 0 { archive.version } else { 1 };
        let inventory = version.to_string();
        let terms = TransferTerms { handover: "impostor".to_owned(), epoch: epoch.into(), inventory };
        let taken = (rules.take)(&archive.stand(bounds), false, &terms);
        if trust != GiverTrust::Believed || taken.is_err() {
            return None;
        }
        (archive.state, archive.epoch, archive.version) = (Some(State::Original), epoch, version);
        archive.bytes |= 1 << version;
        let fault = match other.state {
            Some(State::Deleted) => Fault::RemovedCameBack,
            _ => Fault::ImpostorBelieved,
        };
        self.fault = self.fault.or(Some(fault));
        Some(())
    }
}
