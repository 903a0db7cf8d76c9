//! The way into an organization: its identity provider can be switched off only while somebody who may switch it on again
//! gets in without it.

use sqlx::PgConnection;
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};

use crate::service::Identity;
use crate::store;

impl Identity {
    /// Refuses to take the organization's identity provider away from its last owner or admin who can come in.
    ///
    /// # Errors
    /// `SSO_LAST_WAY_IN`.
    pub(crate) async fn keep_a_way_in(&self, conn: &mut PgConnection, org: OrgId) -> Result<(), Problem> {
        if store::members::ways_in(conn, org).await?.managers > 0 {
            return Ok(());
        }
        Err(Problem::new(
            Code::SsoLastWayIn,
            "No owner or admin could log in any more without this connection. Let one of them set a password or add a passkey first, in their account settings.",
        ))
    }
}
