//! Notifies the Archive of the older item of a link, and reads the link's status there.

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};

use super::{LinkExchange, StatedLink};
use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::links::report::{LinkHint, LinkReport, item_keys};
use crate::links::stated_links::{is_decided_here, local_root, stated_target};
use crate::links::statements::key_of;
use crate::replication::ReplicationError;
use crate::replication::copy::LocalView;
use crate::replication::peer::{PeerArchive, PeerError};
use crate::replication::resolver::{self, OriginalHolders};

/// Maximum number of steps from member to member until the root of a group of translations is
/// found.
const MAX_STEPS_TO_ROOT: usize = 8;

/// Maximum number of Archives asked which of them decides about an item.
const MAX_CLAIMANT_ARCHIVES: usize = 8;

/// A link stated here, and what is known of it.
pub(super) struct OutgoingLink {
    newer: String,
    newer_keys: Vec<String>,
    older: String,
    /// Whether the item still states it; if not, the other Archive is to withdraw it.
    is_stated: bool,
    decided: Option<LinkStatement>,
    /// The Archive that last reported its status.
    decided_by: Option<String>,
}

/// The link report of the Archive that holds the Original of an item, or removed it.
pub(super) struct PeerLinkReport {
    pub(super) peer: PeerArchive,
    /// Its `archive` is the label that the resolver knows, whatever the report says.
    pub(super) report: LinkReport,
    /// The labels of all Archives that answered the resolver.
    answered: Vec<String>,
    /// Whether all other Archives answered.
    pub(super) all_answered: bool,
}

impl PeerLinkReport {
    /// Whether it may replace the previous decider: only if that one answers and no longer claims
    /// the Original. A false claim to an item of an offline Archive changes nothing.
    pub(super) fn may_replace_decider(&self, before: Option<&String>) -> bool {
        let is_same = |a: &str, b: &str| key_of(a).is_some_and(|a| Some(a) == key_of(b));
        before.is_none_or(|before| {
            is_same(before, &self.report.archive) || self.answered.iter().any(|label| is_same(label, before))
        })
    }
}

/// Fetches the link report of the Archive that holds the Original of an item, or removed it; `None`
/// if that is this Archive, or if nobody or more than one claims it.
pub(super) async fn fetch_link_report(
    here: &impl LocalView,
    resolver: &str,
    label: &str,
) -> Result<Option<PeerLinkReport>, ReplicationError> {
    let found = resolver::find_original_holders(here, resolver, label).await?;
    Ok(ask_claimants(found, label).await?.ok())
}

/// Asks those who claim the Original of an item, or removed it, which of them decides about links
/// to it; `Err` with the labels of all that say so, if it is not one.
async fn ask_claimants(
    found: OriginalHolders,
    label: &str,
) -> Result<Result<PeerLinkReport, Vec<String>>, ReplicationError> {
    let mut reports = Vec::new();
    for (peer, archive) in found.claims.into_iter().take(MAX_CLAIMANT_ARCHIVES) {
        let report = peer.links(label).await?;
        // Tombstones of copies decide nothing.
        if report.decides {
            let (report, answered) = (LinkReport { archive, ..report }, found.answered.clone());
            reports.push(PeerLinkReport { peer, report, answered, all_answered: found.all_answered });
        }
    }
    match reports.pop() {
        Some(report) if reports.is_empty() => Ok(Ok(report)),
        last => Ok(Err(reports.into_iter().chain(last).map(|found| found.report.archive).collect())),
    }
}

impl LinkExchange {
    /// Sends a link that a local item states. Returns whether the other Archive has decided or
    /// waits for its operator; also `true` if there is nothing to send.
    pub(super) async fn report_link(
        &self,
        resolver: &str,
        (path, kind): &StatedLink,
    ) -> Result<bool, ReplicationError> {
        let Some(link) = self.outgoing_link(path, *kind)? else { return Ok(true) };
        if link.is_stated && self.state_under_root(path, *kind, None).await? {
            return Ok(true);
        }
        let mut older = link.older.clone();
        for _ in 0..MAX_STEPS_TO_ROOT {
            let holders = resolver::find_original_holders(&*self.desk, resolver, &older).await?;
            let claims: Vec<String> = holders.claims.iter().map(|(_, archive)| archive.clone()).collect();
            let asked = ask_claimants(holders, &older).await;
            if claims.len() > 1 && !matches!(asked, Ok(Ok(_))) {
                self.note_contested((path.clone(), *kind), &link, &claims);
            }
            let Ok(mut found) = asked? else {
                self.return_decision(resolver, &link).await?;
                return Ok(false);
            };
            if !found.may_replace_decider(link.decided_by.as_ref()) {
                return Ok(false);
            }
            let hint = LinkHint {
                kind: *kind,
                older: older.clone(),
                newer: link.newer.clone(),
                decided: link.decided.clone(),
            };
            found.peer.post("/links", &hint).await?;
            let archive = found.report.archive;
            found.report = LinkReport { archive, ..found.peer.links(&older).await? };
            if let Some(root) = root_of(&found.report, *kind, &link.newer_keys) {
                if link.is_stated && self.state_under_root(path, *kind, Some(&root)).await? {
                    return Ok(true);
                }
                older = root;
                continue;
            }
            return self.record_answer(path, *kind, &found.report, &link).await;
        }
        Ok(false)
    }

    /// Says why a link waits: several Archives claim the Original of the older item, and nothing
    /// here tells which of them decides. Once per link and set of claims, since it is tried again
    /// often.
    fn note_contested(&self, stated: StatedLink, link: &OutgoingLink, claims: &[String]) {
        let archives = claims.join(" and ");
        if self.agenda().contested.insert(stated, archives.clone()).as_ref() != Some(&archives) {
            tracing::warn!(
                newer = %link.newer, older = %link.older, %archives,
                "a link waits: several Archives claim the Original of the older item"
            );
        }
    }

    /// Sends the last decision about a link back to the Archive that made it. A restored Archive
    /// does not claim the Original until it is confirmed, so the resolver does not lead to it.
    async fn return_decision(&self, resolver: &str, link: &OutgoingLink) -> Result<(), ReplicationError> {
        let Some((decided, by)) = link.decided.as_ref().zip(link.decided_by.as_ref()) else { return Ok(()) };
        let Some(peer) = resolver::online_archive(&*self.desk, resolver, by).await? else { return Ok(()) };
        let older = decided.older_labels.first().unwrap_or(&decided.older).clone();
        let (kind, newer) = (decided.kind, link.newer.clone());
        peer.post("/links", &LinkHint { kind, older, newer, decided: Some(decided.clone()) }).await?;
        Ok(())
    }

    /// Writes a link under the root of its group, if that is here. Returns whether it is.
    async fn state_under_root(
        &self,
        path: &str,
        kind: LinkKind,
        root: Option<&str>,
    ) -> Result<bool, ReplicationError> {
        if kind == LinkKind::Edition {
            return Ok(false);
        }
        let (path, root) = (path.to_owned(), root.map(str::to_owned));
        let stated = self
            .desk
            .with_archive(move |archive| archive.state_under_root(&path, kind, root.as_deref()))
            .await?;
        Ok(stated)
    }

    pub(super) fn outgoing_link(
        &self,
        path: &str,
        kind: LinkKind,
    ) -> Result<Option<OutgoingLink>, ArchiveError> {
        let holdings = self.desk.read()?;
        // It may be gone meanwhile.
        let Ok(newer) = holdings.item(path) else { return Ok(None) };
        let is_original = matches!(newer.state, State::Original | State::Deleted);
        if !is_original {
            return Ok(None);
        }
        let known = holdings.links_from(kind, &newer.item)?.into_iter().max_by_key(|link| link.counter);
        let is_open = |link: &&LinkStatement| link.status == LinkStatus::Accepted;
        let mut older = match stated_target(&newer.item, kind) {
            Some(older) => older.to_owned(),
            // No longer stated: the other Archive is told so.
            None => match known.as_ref().filter(is_open) {
                Some(link) => link.older_labels.first().unwrap_or(&link.older).clone(),
                None => return Ok(None),
            },
        };
        let key = key_of(&older).unwrap_or_default();
        let held = holdings.held_by_key(&key)?.filter(|older| is_decided_here(&holdings, older));
        if let Some(held) = held {
            let Some(root) = root_elsewhere(&holdings, kind, held)? else { return Ok(None) };
            older = root;
        } else if let Some(root) = local_root(&holdings, kind, &older)? {
            // A member elsewhere of a group whose root is here: the root's list has the link.
            let listed = holdings.links_to(kind, &root.item)?;
            if listed.iter().any(|link| item_keys(&newer).contains(&link.newer)) {
                return Ok(None);
            }
        }
        Ok(Some(OutgoingLink {
            newer: newer.item.labels.primary().to_owned(),
            newer_keys: item_keys(&newer),
            older,
            is_stated: stated_target(&newer.item, kind).is_some(),
            decided_by: known.as_ref().and_then(|link| link.decided_by.clone()),
            decided: known.filter(|link| link.receipt.is_some()),
        }))
    }

    /// Records what the Archive of the older item reports of this link and of its group.
    async fn record_answer(
        &self,
        path: &str,
        kind: LinkKind,
        report: &LinkReport,
        link: &OutgoingLink,
    ) -> Result<bool, ReplicationError> {
        // An Archive decides only about its own items.
        let older = report.keys();
        let own = |known: &&LinkStatement| known.kind == kind && older.contains(&known.older);
        let mine = report.links.iter().filter(own).find(|known| link.newer_keys.contains(&known.newer));
        let accepted = mine.is_some_and(|mine| mine.status == LinkStatus::Accepted);
        let told = report.links.iter().filter(own).filter(|known| {
            link.newer_keys.contains(&known.newer) || (accepted && kind == LinkKind::Translation)
        });
        let mut told: Vec<LinkStatement> = told.cloned().collect();
        {
            // Other local items report for themselves: nobody else makes one of them a member of
            // its group.
            let holdings = self.desk.read()?;
            let is_elsewhere = |known: &LinkStatement| {
                let held = holdings.held_by_key(&known.newer).ok().flatten();
                held.is_none_or(|held| held.state == State::Copy)
            };
            told.retain(|known| link.newer_keys.contains(&known.newer) || is_elsewhere(known));
        }
        told.iter_mut().for_each(|link| link.decided_by = Some(report.archive.clone()));
        let path = path.to_owned();
        let (status, count) = (mine.map(|mine| mine.status.name()), told.len());
        let noted = self.desk.with_archive(move |archive| archive.record_links(&path, &told)).await?;
        if noted {
            tracing::info!(newer = %link.newer, older = %link.older, status, count, "link status received");
        }
        let is_done = match mine {
            Some(mine) => link.is_stated || mine.status != LinkStatus::Accepted,
            None => !link.is_stated,
        };
        Ok(is_done)
    }
}

/// The root of a local item's group of translations, if the root's links are decided elsewhere.
fn root_elsewhere(
    holdings: &Holdings,
    kind: LinkKind,
    mut member: HeldItem,
) -> Result<Option<String>, ArchiveError> {
    for _ in 0..MAX_STEPS_TO_ROOT {
        let up = holdings.links_from(kind, &member.item)?.into_iter();
        let up = up.filter(|link| kind == LinkKind::Translation && link.status == LinkStatus::Accepted);
        let Some(up) = up.max_by_key(|link| link.counter) else { return Ok(None) };
        match holdings.held_by_key(&up.older)?.filter(|root| is_decided_here(holdings, root)) {
            Some(root) => member = root,
            None => return Ok(Some(up.older_labels.first().unwrap_or(&up.older).clone())),
        }
    }
    Ok(None)
}

/// The root of the group, if the report's item is only a member: a link to a member is sent to the
/// root.
fn root_of(report: &LinkReport, kind: LinkKind, newer: &[String]) -> Option<String> {
    let own = report.keys();
    let up = report.links.iter().find(|link| {
        kind == LinkKind::Translation
            && link.kind == kind
            && link.status == LinkStatus::Accepted
            && own.contains(&link.newer)
            && !newer.contains(&link.older)
    });
    up.map(|link| link.older_labels.first().unwrap_or(&link.older).clone())
}

impl PeerArchive {
    /// Fetches the link report of an item.
    pub(crate) async fn links(&self, label: &str) -> Result<LinkReport, PeerError> {
        let report: LinkReport = self.item_json(label, "links").await?;
        report.check().map_err(|what| self.not_an_archive(what))?;
        let asked = key_of(label);
        if !asked.is_some_and(|asked| report.keys().contains(&asked)) {
            return Err(self.not_an_archive(format!("asked for {label}, it tells of another item")));
        }
        Ok(report)
    }
}
