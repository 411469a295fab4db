//! The operator's decisions about links: clause 2.4, *Consent* and *One successor*.

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};
use serde::Serialize;

use super::stated_links::{is_decided_here, stated_target};
use super::statements::{LinkSource, key_of, keys_of, statement_rank};
use crate::ArchiveError;
use crate::archive::{Archive, HeldItem, Holdings};
use crate::item::ItemDescription;

const LINK_STATEMENTS_PER_PAGE: usize = 1000;

/// A longer chain of editions is treated as a cycle.
const MAX_EDITION_CHAIN: usize = 100_000;

/// The status shown for a link that the decider has not confirmed.
const UNCONFIRMED_STATUS: &str = "unconfirmed";

/// The status shown for a stated link that the decider has not answered yet.
const WAITING_STATUS: &str = "waiting";

/// A decision about a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkDecision {
    /// Readers are led along it.
    Accept,
    /// Readers are not led along it, and it is not asked again.
    Refuse,
    /// Readers are no longer led along it.
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

    /// Whether the decision applies to a link of this status.
    fn is_allowed_for(self, status: LinkStatus) -> bool {
        match self {
            LinkDecision::Accept => status != LinkStatus::Accepted,
            LinkDecision::Refuse => status == LinkStatus::Proposed,
            LinkDecision::Withdraw => status == LinkStatus::Accepted,
        }
    }
}

/// A link as listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkView {
    /// `edition` or `translation`.
    pub kind: &'static str,
    /// The older item.
    pub older: String,
    /// The newer one.
    pub newer: String,
    /// Its status.
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

fn link_view(link: &LinkStatement, decided_here: bool) -> LinkView {
    let first = |labels: &[String], key: &str| labels.first().map_or_else(|| key.to_owned(), String::clone);
    LinkView {
        kind: link.kind.name(),
        older: first(&link.older_labels, &link.older),
        newer: first(&link.newer_labels, &link.newer),
        status: if link.told_with.is_some() { UNCONFIRMED_STATUS } else { link.status.name() },
        counter: link.counter,
        decided_here,
        archive: link.archive.clone(),
        language: link.newer_language.clone(),
    }
}

impl Holdings {
    /// All known links in order of their last statements, optionally of one status.
    pub fn all_links(&self, status: Option<LinkStatus>) -> Result<Vec<LinkView>, ArchiveError> {
        let mut views = Vec::new();
        let mut after = (0, 0);
        loop {
            let page = self.records.link_statements(status, after, LINK_STATEMENTS_PER_PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(views) };
            after = *last;
            for (_, link) in page {
                if !self.is_effective(&link)? {
                    continue;
                }
                let older = self.held_by_key(&link.older)?;
                views.push(link_view(&link, older.is_some_and(|older| is_decided_here(self, &older))));
            }
        }
    }

    /// The links of local Originals about which nothing is known from the Archive that decides.
    pub fn waiting_links(&self) -> Result<Vec<LinkView>, ArchiveError> {
        let mut views = Vec::new();
        let mut after = String::new();
        loop {
            let paths = self.records.items_with_links(&after, LINK_STATEMENTS_PER_PAGE)?;
            let Some(last) = paths.last() else { return Ok(views) };
            after.clone_from(last);
            for path in paths {
                let newer = self.item_bare(&path)?;
                for link in self.records.links(&path)? {
                    let is_open = newer.state == State::Original;
                    if !is_open || self.link_status(&newer.item, link.kind)?.is_some() {
                        continue;
                    }
                    let older = stated_target(&newer.item, link.kind).unwrap_or(&link.to);
                    views.push(LinkView {
                        kind: link.kind.name(),
                        older: older.to_owned(),
                        newer: newer.item.labels.primary().to_owned(),
                        status: WAITING_STATUS,
                        counter: 0,
                        decided_here: false,
                        archive: None,
                        language: newer.item.language.map(|language| language.to_string()),
                    });
                }
            }
        }
    }

    /// The status of the link that an item states; `None` if its Archive has not heard of it yet.
    pub fn link_status(
        &self,
        newer: &ItemDescription,
        kind: LinkKind,
    ) -> Result<Option<LinkStatus>, ArchiveError> {
        // After a link was moved, the previous one is withdrawn; a link to a member was moved to
        // the root.
        let is_left = |link: &LinkStatement| link.status == LinkStatus::Withdrawn && link.unstated;
        let known = self.links_from(kind, newer)?.into_iter();
        let known = known.max_by_key(|link| (!is_left(link), link.counter));
        Ok(known.map(|link| link.status))
    }

    /// Whether a statement is the effective one of its link.
    fn is_effective(&self, link: &LinkStatement) -> Result<bool, ArchiveError> {
        let known = self.records.links_to_older(link.kind, &link.older)?;
        let known = known.into_iter().filter(|known| known.is_about_same(link));
        // Of equal ones, the last.
        Ok(known.max_by_key(statement_rank).as_ref() == Some(link))
    }

    /// The number of undecided proposals: in all, and from one Archive.
    pub(crate) fn count_proposals(&self, archive: Option<&str>) -> Result<(usize, usize), ArchiveError> {
        let open = self.all_links(Some(LinkStatus::Proposed))?;
        let open: Vec<_> = open.into_iter().filter(|link| link.decided_here).collect();
        let theirs = open.iter().filter(|link| link.archive.as_deref() == archive).count();
        Ok((open.len(), theirs))
    }
}

impl Archive {
    /// Decides about the link that a newer item states; `older` resolves an ambiguity. Returns the
    /// decision.
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
        self.write_link_statements(statements, by)?;
        Ok(link_view(&link, true))
    }

    fn link_in_question(
        &self,
        newer: &str,
        older: Option<&str>,
        decision: LinkDecision,
    ) -> Result<(HeldItem, LinkStatement), ArchiveError> {
        let holdings = &self.holdings;
        let key = |label: &str| {
            let parsed = crate::item::LabelKey::parse(label);
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
        let mut found: Vec<(HeldItem, LinkStatement)> = Vec::new();
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
        let fitting: Vec<usize> =
            (0..found.len()).filter(|at| decision.is_allowed_for(found[*at].1.status)).collect();
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

    /// Rejects a link that would visibly close a cycle, where the newer item leads to the older
    /// one.
    pub(crate) fn check_cycle(&self, older: &HeldItem, link: &LinkStatement) -> Result<(), ArchiveError> {
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
        for _ in 0..MAX_EDITION_CHAIN {
            if at.iter().any(|key| goal.contains(key)) {
                return Err(cycle());
            }
            let mut next = None;
            for key in &at {
                let links = self.holdings.records.links_to_older(link.kind, key)?;
                let decided = links.into_iter().filter(|link| link.told_with.is_none());
                let accepted = decided.filter(|link| link.status == LinkStatus::Accepted);
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

    /// Records a verified statement of another Archive: a link from an item whose Original it has.
    /// Returns the link's status, and whether that is new.
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
        // A decision of the operator stays, however often the link is proposed.
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
        self.check_statement_limit(&link)?;
        self.write_link_statements(vec![(holding.path, link)], "ibi")?;
        Ok((status, is_new))
    }

    /// Refuses a link that would close a cycle over several Archives.
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

    /// Withdraws a link to a local item that the newer item's Archive no longer states.
    pub(crate) fn withdraw_unstated(
        &mut self,
        path: &str,
        kind: LinkKind,
        newer: &[String],
    ) -> Result<(), ArchiveError> {
        let older = self.holdings.item(path)?;
        let links = self.holdings.links_to(kind, &older.item)?;
        let open = [LinkStatus::Accepted, LinkStatus::Proposed];
        let link = links.into_iter().find(|link| newer.contains(&link.newer) && open.contains(&link.status));
        let Some(link) = link else { return Ok(()) };
        self.check_statement_limit(&link)?;
        let counter = self.holdings.next_link_counter(&older.item)?;
        let link = LinkStatement { status: LinkStatus::Withdrawn, counter, unstated: true, ..link };
        self.write_link_statements(vec![(path.to_owned(), link)], "ibi")
    }

    /// Limits journal growth when an Archive keeps stating and unstating a link.
    pub(crate) fn check_statement_limit(&self, link: &LinkStatement) -> Result<(), ArchiveError> {
        const MAX_STATEMENTS_PER_LINK: usize = 100;
        let known = self.holdings.records.links_to_older(link.kind, &link.older)?.into_iter();
        let known = known.filter(|known| known.told_with.is_none() && known.newer == link.newer);
        match known.count() {
            count if count >= MAX_STATEMENTS_PER_LINK => Err(ArchiveError::TooManyProposals),
            _ => Ok(()),
        }
    }

    /// Records what the Archive of an older item reports of the links of a local item.
    pub(crate) fn record_links(&mut self, path: &str, told: &[LinkStatement]) -> Result<bool, ArchiveError> {
        let news = self.holdings.unseen_link_statements((path, &[]), told, LinkSource::Decider)?;
        self.write_link_news(path, news)
    }

    /// Writes new statements about the links of a local item.
    pub(crate) fn write_link_news(
        &mut self,
        path: &str,
        news: Vec<LinkStatement>,
    ) -> Result<bool, ArchiveError> {
        let is_news = !news.is_empty();
        self.write_link_statements(news.into_iter().map(|link| (path.to_owned(), link)).collect(), "ibi")?;
        Ok(is_news)
    }
}
