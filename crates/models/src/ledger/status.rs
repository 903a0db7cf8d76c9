//! How far the limits of one person are used, for the person (BUD-18).

use chrono::{DateTime, Utc};
use tale_core::ids::{OrgId, UserId};
use tale_core::problem::Problem;
use tale_governance::budgets::caps::{days, moment};
use tale_governance::budgets::{Amounts, Cap, Subject};

use super::{Ledger, store};

/// One limit that binds somebody, and how much of it is used. Running work is not counted here: what
/// it will use is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// The limit.
    pub cap: Cap,
    /// What is used of it.
    pub used: u64,
    /// When it begins anew.
    pub resets_at: DateTime<Utc>,
}

impl LimitState {
    /// Whether nothing is left.
    #[must_use]
    pub fn exceeded(&self) -> bool {
        self.used >= self.cap.limit
    }

    /// What is used and when it begins anew, as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let cap = &self.cap;
        format!(
            "{} is reached (used so far: {}). It resets at {}.",
            cap.words(),
            cap.kind.words(self.used),
            moment(self.resets_at)
        )
    }

    /// Whether the threshold of a warning is passed.
    #[must_use]
    pub fn warns(&self) -> bool {
        self.cap.warns(self.used)
    }
}

impl Ledger {
    /// Every limit that binds a person in an organization: the personal ones, those of the teams and the organization's.
    ///
    /// # Errors
    /// When the rules or the sums cannot be read.
    pub async fn limits_of(&self, org: OrgId, user: UserId, role: &str) -> Result<Vec<LimitState>, Problem> {
        let rules = self.rules(org).await?;
        let teams = self.teams(org, Some(user), &rules).await?;
        let caps = rules.caps(&Subject { user: Some(user), role: Some(role), teams: &teams, ..Subject::default() });
        if caps.is_empty() {
            return Ok(Vec::new());
        }
        let day = self.inner.clock.now().date_naive();
        let mut conn = self.inner.pool.acquire().await?;
        let mut known: Vec<((String, _), Amounts)> = Vec::new();
        let mut limits = Vec::with_capacity(caps.len());
        for cap in caps {
            let place = (cap.holder.key(), cap.period);
            let used = match known.iter().find(|(seen, _)| *seen == place) {
                Some((_, used)) => *used,
                None => {
                    let days = days(cap.period, day);
                    let used = store::used(&mut conn, org, &cap.holder, days).await?;
                    known.push((place, used));
                    used
                }
            };
            let resets_at = cap.period.resets_at(day);
            limits.push(LimitState { used: used.of(cap.kind), resets_at, cap });
        }
        Ok(limits)
    }
}
