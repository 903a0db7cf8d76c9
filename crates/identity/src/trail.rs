//! The audit entries and hints of this room, written inside the transaction of the change.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Problem};
use tale_db::hints::{Hint, Topic};

use crate::service::Pseudonym;
use crate::store;

/// What is written about a change, without the organization, the author and the time.
