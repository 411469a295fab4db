//! Permissions of a token beyond its role: items that it owns and labels that it may use
//! (`docs/security.md`, *Roles*; clause 2.1).

use ibi_http::Problem;
use ibi_id::Label;

use crate::archive::{HeldItem, Holdings};
use crate::deposit::has_own_prefix;
use crate::label_prefix::has_prefix;
use crate::links::LinkAuthority;
use crate::ownership::{DepositorIdentity, EarlierIdentity};
use crate::service::{ItemPatch, ServiceRole, ServiceToken};
use crate::web::api::archive_problem;
use crate::web::site::ArchiveSite;

/// The authority behind links stated with a token (clause 2.4, *Consent*).
pub(super) fn authority(token: &ServiceToken) -> LinkAuthority {
    match token.role {
        ServiceRole::Operator => LinkAuthority::Operator,
        _ => LinkAuthority::Depositor(identity(token)),
    }
}

/// The identity of a token in the journal.
fn identity(token: &ServiceToken) -> DepositorIdentity {
    let earlier = token
        .owns_by_name
        .then(|| EarlierIdentity { name: token.name.clone(), since: token.created.clone() });
    DepositorIdentity { id: token.id.clone(), earlier }
}

/// Whether a token may change an item: its depositor and operators may.
pub(super) fn may_change(
    holdings: &Holdings,
    holding: &HeldItem,
    token: &ServiceToken,
) -> Result<(), Problem> {
    let may = token.role == ServiceRole::Operator
        || identity(token).owns(holdings, &holding.path).map_err(archive_problem)?;
    match may {
        true => Ok(()),
        false => Err(Problem::forbidden("only its depositor or an operator may change this item")),
    }
}

/// Whether a token may set what a patch contains (clause 2.1): labels must be minted with the token
/// or have a prefix that an operator granted it.
pub(super) fn may_describe(
    site: &ArchiveSite,
    token: &ServiceToken,
    described: &ItemPatch,
) -> Result<(), Problem> {
    if token.role == ServiceRole::Operator {
        return Ok(());
    }
    if described.original {
        return Err(Problem::forbidden(
            "only an operator may declare the Original of an item from another \
            Archive",
        ));
    }
    let mut brought = described.all_labels().peekable();
    if brought.peek().is_none() {
        return Ok(());
    }
    let minter = ibi_mint::read_state(site.desk.data()).map_err(|error| archive_problem(error.into()))?;
    for text in brought {
        // Invalid labels are rejected when they are used.
        let Ok(label) = Label::parse(text) else { continue };
        let minted_by = match has_own_prefix(&minter.subsystem, &label) {
            true => site.statistics.minted_by(label.instant()).map_err(archive_problem)?,
            false => None,
        };
        let may = match minted_by {
            Some(id) => id == token.id,
            None => has_prefix(text, &token.prefixes),
        };
        if !may {
            return Err(Problem::forbidden(format!(
                "{} was not minted with this token: only an operator, or a token that was granted its \
                 prefix, may use it",
                text.escape_debug()
            )));
        }
    }
    Ok(())
}
