//! What the operator says of links: clause 2.4, *Consent* and *One successor*.

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};
use serde::Serialize;

use super::known::{key_of, keys_of};
use super::stated::is_decided_here;
use crate::ArchiveError;
use crate::archive::{Archive, Holding, Holdings};
use crate::item::Item;

/// Statements that are read at a time.
const PAGE: usize = 1000;

/// A longer chain of editions is taken for a cycle.
const MAX_CHAIN: usize = 100_000;

/// What is to become of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkDecision {
    /// Readers are led along it.
    Accept,
    /// They are not, and it is not asked again.
    Refuse,
    /// They are no longer.
    Withdraw,
}

impl LinkDecision {
    const fn status(self) -> LinkStatus {
        match self {
            LinkDecision::Accept => LinkStatus::Accepted,
            LinkDecision::Refuse => LinkStatus::Refused,
            LinkDecision::Withdraw => LinkStatus::Withdrawn,
        }
    }

    /// Whether it can be said of a link that stands so.
    fn fits(self, status: LinkStatus) -> bool {
        match self {
            LinkDecision::Accept => status != LinkStatus::Accepted,
            LinkDecision::Refuse => status == LinkStatus::Proposed,
            LinkDecision::Withdraw => status == LinkStatus::Accepted,
        }
    }
}

/// A link, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkView {
    /// `edition` or `translation`.
    pub kind: &'static str,
    /// The older item.
    pub older: String,
    /// The newer one.
    pub newer: String,
    /// How it stands.
    pub status: &'static str,
    /// The number of the statement among those about the older item.
    pub counter: u64,
    /// Whether it is decided here.
    pub decided_here: bool,
    /// The Archive of the newer item, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The language of the newer item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

fn view(link: &LinkStatement, decided_here: bool) -> LinkView {
    let first = |labels: &[String], key: &str| labels.first().map_or_else(|| key.to_owned(), String::clone);
    LinkView {
        kind: link.kind.name(),
        older: first(&link.older_labels, &link.older),
        newer: first(&link.newer_labels, &link.newer),
        status: link.status.name(),
        counter: link.counter,
        decided_here,
        archive: link.archive.clone(),
        language: link.newer_language.clone(),
    }
}

impl Holdings {
    /// All links that something is known of, in order of their last statements; of a status, if one is named.
    pub fn all_links(&self, status: Option<LinkStatus>) -> Result<Vec<LinkView>, ArchiveError> {
        let mut views = Vec::new();
        let mut after = (0, 0);
        loop {
            let page = self.records.link_statements(status, after, PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(views) };
            after = *last;
            for (_, link) in page {
                if !self.counts(&link)? {
                    continue;
                }
                let older = self.held_by_key(&link.older)?;
                views.push(view(&link, older.is_some_and(|older| is_decided_here(self, &older))));
            }
        }
    }

    /// How the link stands that an item states; nothing if its Archive has not heard of it yet.
    pub fn link_standing(&self, newer: &Item, kind: LinkKind) -> Result<Option<LinkStatus>, ArchiveError> {
        // Of a link that was moved, the one before is withdrawn; one to a member was taken to the root.
        let is_left = |link: &LinkStatement| link.status == LinkStatus::Withdrawn && link.unstated;
        let known = self.links_from(kind, newer)?.into_iter();
        let known = known.max_by_key(|link| (!is_left(link), link.counter));
        Ok(known.map(|link| link.status))
    }

    /// Whether a statement is the one that counts of its link.
    fn counts(&self, link: &LinkStatement) -> Result<bool, ArchiveError> {
        let known = self.records.links_to_older(link.kind, &link.older)?;
        let known = known.into_iter().filter(|known| known.is_about_same(link));
        // Of equal ones the last.
        Ok(known.max_by_key(|known| known.counter).as_ref() == Some(link))
    }

    /// How many links are proposed and not decided, in all and by one Archive.
    pub(crate) fn count_proposals(&self, archive: Option<&str>) -> Result<(usize, usize), ArchiveError> {
        let open = self.all_links(Some(LinkStatus::Proposed))?;
        let open: Vec<_> = open.into_iter().filter(|link| link.decided_here).collect();
        let theirs = open.iter().filter(|link| link.archive.as_deref() == archive).count();
        Ok((open.len(), theirs))
    }
}

impl Archive {
    /// Decides about the link that a newer item states; to which older one, if that is in doubt. Tells what
    /// was decided.
    pub fn decide_link(
        &mut self,
        newer: &str,
        older: Option<&str>,
        decision: LinkDecision,
        by: &str,
    ) -> Result<LinkView, ArchiveError> {
        if self.holdings.restored {
            return Err(ArchiveError::Restored);
        }
        let (older, link) = self.link_in_question(newer, older, decision)?;
        let mut statements = Vec::new();
        let mut counter = self.holdings.next_link_counter(&older.item)?;
        if decision == LinkDecision::Accept {
            self.check_cycle(&older, &link)?;
            let others = self.holdings.links_to(link.kind, &older.item)?.into_iter();
            let others = others.filter(|other| {
                other.kind == LinkKind::Edition
                    && other.status == LinkStatus::Accepted
                    && other.newer != link.newer
            });
            // One successor: accepting a second one withdraws the first.
            for other in others {
                let status = LinkStatus::Withdrawn;
                let other = LinkStatement { status, counter, receipt: None, ..other };
                statements.push((older.path.clone(), other));
                counter += 1;
            }
        }
        let status = decision.status();
        let link = LinkStatement { status, counter, receipt: None, unstated: false, ..link };
        statements.push((older.path.clone(), link.clone()));
        self.say_links(statements, by)?;
        Ok(view(&link, true))
    }

    fn link_in_question(
        &self,
        newer: &str,
        older: Option<&str>,
        decision: LinkDecision,
    ) -> Result<(Holding, LinkStatement), ArchiveError> {
        let holdings = &self.holdings;
        let key = |label: &str| {
            let parsed = crate::item::Spelling::parse(label);
            parsed.map_err(|error| ArchiveError::Label { label: label.escape_debug().to_string(), error })
        };
        let newer_key = key(newer)?.canonical;
        let newer_keys = match holdings.held_by_key(&newer_key)? {
            Some(holding) => keys_of(&holding.item),
            None => vec![newer_key],
        };
        let older_keys = match older {
            None => None,
            Some(label) => {
                let older = key(label)?.canonical;
                let held = holdings.held_by_key(&older)?;
                Some(held.map_or_else(|| vec![older], |held| keys_of(&held.item)))
            }
        };
        let mut found: Vec<(Holding, LinkStatement)> = Vec::new();
        for kind in [LinkKind::Edition, LinkKind::Translation] {
            for newer in &newer_keys {
                for link in holdings.records.links_from_newer(kind, newer)? {
                    if older_keys.as_ref().is_some_and(|keys| !keys.contains(&link.older)) {
                        continue;
                    }
                    let Some(older) = holdings.held_by_key(&link.older)? else { continue };
                    let known = holdings.links_to(kind, &older.item)?;
                    let Some(link) = known.into_iter().find(|known| known.newer == *newer) else { continue };
                    let seen = found.iter().any(|(_, seen)| seen.is_about_same(&link));
                    if is_decided_here(holdings, &older) && !seen {
                        found.push((older, link));
                    }
                }
            }
        }
        let fitting: Vec<usize> = (0..found.len()).filter(|at| decision.fits(found[*at].1.status)).collect();
        match fitting[..] {
            [at] => Ok(found.swap_remove(at)),
            [] => Err(ArchiveError::NoSuchLink {
                newer: newer.to_owned(),
                stands: found.first().map(|(_, link)| link.status.name()),
            }),
            _ => Err(ArchiveError::SeveralLinks {
                newer: newer.to_owned(),
                older: found.into_iter().map(|(older, _)| older.item.labels.primary().to_owned()).collect(),
            }),
        }
    }

    /// A link that is seen to close a cycle is refused: from the newer item no way leads to the older one.
    pub(crate) fn check_cycle(&self, older: &Holding, link: &LinkStatement) -> Result<(), ArchiveError> {
        let cycle = || ArchiveError::Cycle {
            item: link.newer_labels.first().unwrap_or(&link.newer).clone(),
            link: match link.kind {
                LinkKind::Edition => "the next edition of",
                LinkKind::Translation => "a translation of",
            },
            to: older.item.labels.primary().to_owned(),
        };
        let goal = keys_of(&older.item);
        let mut at = vec![link.newer.clone()];
        for _ in 0..MAX_CHAIN {
            if at.iter().any(|key| goal.contains(key)) {
                return Err(cycle());
            }
            let mut next = None;
            for key in &at {
                let links = self.holdings.records.links_to_older(link.kind, key)?;
                let accepted = links.into_iter().filter(|link| link.status == LinkStatus::Accepted);
                next = accepted.max_by_key(|link| link.counter).map(|link| link.newer).or(next);
            }
            let Some(next) = next else { return Ok(()) };
            at = match self.holdings.held_by_key(&next)? {
                Some(holding) => keys_of(&holding.item),
                None => vec![next],
            };
        }
        Err(cycle())
    }

    /// Takes what another Archive was found to state: a link from an item whose Original it has. Tells
    /// how the link stands now, and whether that is new.
    pub(crate) fn take_proposal(
        &mut self,
        older: &str,
        proposal: LinkStatement,
        accept: bool,
    ) -> Result<(LinkStatus, bool), ArchiveError> {
        const MAX_PROPOSALS: usize = 10_000;
        const MAX_PROPOSALS_PER_ARCHIVE: usize = 1000;
        const MAX_PROPOSALS_PER_ITEM: usize = 100;
        let holding = self.holdings.find(older)?.0;
        if holding.state == State::Copy || !is_decided_here(&self.holdings, &holding) {
            return Err(ArchiveError::IsCopy { label: older.to_owned() });
        }
        let links = self.holdings.links_to(proposal.kind, &holding.item)?;
        let known = links.iter().find(|link| link.newer == proposal.newer);
        let taken = proposal.kind == LinkKind::Edition
            && links.iter().any(|link| link.status == LinkStatus::Accepted && link.newer != proposal.newer);
        // What the operator decided stays decided, however often it is proposed.
        let status = match known {
            Some(known) if known.status != LinkStatus::Proposed && !known.unstated => known.status,
            _ if accept && !taken => LinkStatus::Accepted,
            _ => LinkStatus::Proposed,
        };
        let counter = self.holdings.next_link_counter(&holding.item)?;
        let link = LinkStatement {
            status,
            counter,
            older: key_of(holding.item.labels.primary()).unwrap_or_default(),
            older_labels: holding.item.labels.iter().map(str::to_owned).collect(),
            older_language: holding.item.language.map(|language| language.to_string()),
            ..proposal
        };
        let receipt = known.and_then(|known| known.receipt.clone());
        if known
            == Some(&LinkStatement {
                counter: known.map_or(0, |known| known.counter),
                receipt,
                ..link.clone()
            })
        {
            return Ok((status, false));
        }
        if known.is_none_or(|known| known.status != status) {
            self.check_cycle(&holding, &link)?;
        }
        if status == LinkStatus::Proposed && known.is_none_or(|known| known.status != status) {
            let (all, theirs) = self.holdings.count_proposals(link.archive.as_deref())?;
            if all >= MAX_PROPOSALS || theirs >= MAX_PROPOSALS_PER_ARCHIVE {
                return Err(ArchiveError::TooManyProposals);
            }
        }
        let is_new = known.is_none_or(|known| known.status != status);
        let of_item = links.iter().filter(|link| link.status == LinkStatus::Proposed).count();
        if is_new && status == LinkStatus::Proposed && of_item >= MAX_PROPOSALS_PER_ITEM {
            return Err(ArchiveError::TooManyProposals);
        }
        self.check_restated(&link)?;
        self.say_links(vec![(holding.path, link)], "ibi")?;
        Ok((status, is_new))
    }

    /// A link that would close a cycle over several Archives is refused.
    pub(crate) fn refuse_cycle(
        &mut self,
        older: &str,
        proposal: LinkStatement,
    ) -> Result<(LinkStatus, bool), ArchiveError> {
        let (status, is_new) = self.take_proposal(older, proposal.clone(), false)?;
        if status != LinkStatus::Proposed {
            return Ok((status, is_new));
        }
        let newer = proposal.newer_labels.first().unwrap_or(&proposal.newer);
        self.decide_link(newer, Some(older), LinkDecision::Refuse, "ibi")?;
        Ok((LinkStatus::Refused, is_new))
    }

    /// An Archive that states and unstates a link without end makes no journal grow.
    pub(crate) fn check_restated(&self, link: &LinkStatement) -> Result<(), ArchiveError> {
        const MAX_STATEMENTS_PER_LINK: usize = 100;
        let known = self.holdings.records.links_to_older(link.kind, &link.older)?.into_iter();
        match known.filter(|known| known.newer == link.newer).count() {
            count if count >= MAX_STATEMENTS_PER_LINK => Err(ArchiveError::TooManyProposals),
            _ => Ok(()),
        }
    }

    /// Notes what the Archive of an older item says of the links of an item that is here.
    pub(crate) fn note_links(&mut self, path: &str, told: &[LinkStatement]) -> Result<bool, ArchiveError> {
        let news = self.holdings.link_news(told)?;
        let is_news = !news.is_empty();
        self.say_links(news.into_iter().map(|link| (path.to_owned(), link)).collect(), "ibi")?;
        Ok(is_news)
    }
}
