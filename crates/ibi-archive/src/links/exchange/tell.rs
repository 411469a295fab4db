//! Telling a link to the Archive of the older item, and reading there how it stands.

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};

use super::{LinkExchange, StatedLink};
use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::holders::HolderError;
use crate::holders::copy::Here;
use crate::holders::peer::{Peer, PeerError};
use crate::holders::resolver;
use crate::links::known::key_of;
use crate::links::report::{LinkHint, LinkReport, item_keys};
use crate::links::stated::{is_decided_here, stated};

/// From member to member of a group of translations, until its root is found.
const MAX_STEPS_TO_ROOT: usize = 8;

/// Archives that are asked which of them decides about an item.
const MAX_CLAIMS: usize = 8;

/// A link as it is stated here, and what is known of it.
pub(super) struct ToTell {
    newer: String,
    newer_keys: Vec<String>,
    older: String,
    /// Whether the item states it still; if not, the other Archive is to withdraw it.
    is_stated: bool,
    decided: Option<LinkStatement>,
    /// Who said last how it stands.
    decided_by: Option<String>,
}

/// What the Archive that holds the Original of an item, or removed it, tells of its links.
pub(super) struct FoundReport {
    pub(super) peer: Peer,
    /// Its `archive` is the label that the resolver knows it by, whatever it says itself.
    pub(super) report: LinkReport,
    /// The labels of all Archives that answered the resolver.
    answered: Vec<String>,
}

impl FoundReport {
    /// Whether it may speak in the place of the Archive that spoke before: that one answers, and no longer
    /// claims the Original. A stranger that claims what an offline Archive holds changes nothing.
    pub(super) fn may_follow(&self, before: Option<&String>) -> bool {
        let is_same = |a: &str, b: &str| key_of(a).is_some_and(|a| Some(a) == key_of(b));
        before.is_none_or(|before| {
            is_same(before, &self.report.archive) || self.answered.iter().any(|label| is_same(label, before))
        })
    }
}

/// What the Archive that holds the Original of an item, or removed it, tells of its links; nothing if it is
/// this one, or if nobody or more than one claims it.
pub(super) async fn report_of(
    here: &impl Here,
    resolver: &str,
    label: &str,
) -> Result<Option<FoundReport>, HolderError> {
    let found = resolver::originals(here, resolver, label).await?;
    let mut reports = Vec::new();
    for (peer, archive) in found.claims.into_iter().take(MAX_CLAIMS) {
        let report = peer.links(label).await?;
        // Of tombstones, those of copies decide nothing.
        if report.decides {
            let (report, answered) = (LinkReport { archive, ..report }, found.answered.clone());
            reports.push(FoundReport { peer, report, answered });
        }
    }
    Ok(reports.pop().filter(|_| reports.is_empty()))
}

impl LinkExchange {
    /// Tells a link that an item here states. Whether the other Archive has decided, or waits for its operator;
    /// also if there is nothing to tell.
    pub(super) async fn tell(&self, resolver: &str, (path, kind): &StatedLink) -> Result<bool, HolderError> {
        let Some(link) = self.to_tell(path, *kind)? else { return Ok(true) };
        let mut older = link.older.clone();
        for _ in 0..MAX_STEPS_TO_ROOT {
            let Some(mut found) = report_of(&*self.desk, resolver, &older).await? else { return Ok(false) };
            if !found.may_follow(link.decided_by.as_ref()) {
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
                older = root;
                continue;
            }
            return self.note(path, *kind, &found.report, &link).await;
        }
        Ok(false)
    }

    pub(super) fn to_tell(&self, path: &str, kind: LinkKind) -> Result<Option<ToTell>, ArchiveError> {
        let holdings = self.desk.read()?;
        // It may have gone meanwhile.
        let Ok(newer) = holdings.item(path) else { return Ok(None) };
        let is_original = matches!(newer.state, State::Original | State::Deleted);
        if !is_original {
            return Ok(None);
        }
        let known = holdings.links_from(kind, &newer.item)?.into_iter().max_by_key(|link| link.counter);
        let is_open = |link: &&LinkStatement| link.status == LinkStatus::Accepted;
        let mut older = match stated(&newer.item, kind) {
            Some(older) => older.to_owned(),
            // Stated no longer: the other Archive is told so.
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
        }
        Ok(Some(ToTell {
            newer: newer.item.labels.primary().to_owned(),
            newer_keys: item_keys(&newer),
            older,
            is_stated: stated(&newer.item, kind).is_some(),
            decided_by: known.as_ref().and_then(|link| link.decided_by.clone()),
            decided: known.filter(|link| link.receipt.is_some()),
        }))
    }

    /// Notes what the Archive of the older item says: of this link, and of the group that it makes.
    async fn note(
        &self,
        path: &str,
        kind: LinkKind,
        report: &LinkReport,
        link: &ToTell,
    ) -> Result<bool, HolderError> {
        // Only of its own items does anybody decide.
        let older = report.keys();
        let own = |known: &&LinkStatement| known.kind == kind && older.contains(&known.older);
        let mine = report.links.iter().filter(own).find(|known| link.newer_keys.contains(&known.newer));
        let accepted = mine.is_some_and(|mine| mine.status == LinkStatus::Accepted);
        let told = report.links.iter().filter(own).filter(|known| {
            link.newer_keys.contains(&known.newer) || (accepted && kind == LinkKind::Translation)
        });
        let mut told: Vec<LinkStatement> = told.cloned().collect();
        {
            // Of other items here each tells for itself: nobody else makes one of them a member of its group.
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
        let noted = self.desk.work(move |archive| archive.note_links(&path, &told)).await?;
        if noted {
            tracing::info!(newer = %link.newer, older = %link.older, status, count, "the other Archive told how a link stands");
        }
        let is_done = match mine {
            Some(mine) => link.is_stated || mine.status != LinkStatus::Accepted,
            None => !link.is_stated,
        };
        Ok(is_done)
    }
}

/// The root of the group of translations that an item here is a member of, if the root's links are decided elsewhere.
fn root_elsewhere(
    holdings: &Holdings,
    kind: LinkKind,
    mut member: Holding,
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

/// The root of the group, if the item of a report is only a member: a link to a member is told there.
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

impl Peer {
    /// What it tells of the links of an item.
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
