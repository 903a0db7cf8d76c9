//! Calendar periods in UTC. Amounts are kept by day, so that every period is a run of whole days.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};

/// How long a limit lasts before it begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    /// From midnight.
    Daily,
    /// From Monday.
    Weekly,
    /// From the first of the month.
    Monthly,
}

impl Period {
    /// The word on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
        }
    }

    /// The first day of the period that `day` lies in.
    #[must_use]
    pub fn first_day(self, day: NaiveDate) -> NaiveDate {
        match self {
            Self::Daily => Some(day),
            Self::Weekly => day.checked_sub_days(Days::new(day.weekday().num_days_from_monday().into())),
            Self::Monthly => day.with_day(1),
        }
        .unwrap_or(day)
    }

    /// The first day of the period after the one that `day` lies in.
    #[must_use]
    pub fn next_first_day(self, day: NaiveDate) -> NaiveDate {
        let first = self.first_day(day);
        match self {
            Self::Daily => first.checked_add_days(Days::new(1)),
            Self::Weekly => first.checked_add_days(Days::new(7)),
            Self::Monthly => first.checked_add_months(Months::new(1)),
        }
        .unwrap_or(NaiveDate::MAX)
    }

    /// When the period that `day` lies in is over and its limits are whole again.
    #[must_use]
    pub fn resets_at(self, day: NaiveDate) -> DateTime<Utc> {
        self.next_first_day(day).and_time(NaiveTime::MIN).and_utc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_follow_the_calendar() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let about = |period: Period, at: &str| (period.first_day(day(at)), period.next_first_day(day(at)));
        assert_eq!(about(Period::Daily, "2026-12-31"), (day("2026-12-31"), day("2027-01-01")));
        // A Sunday belongs to the week of the Monday before it, also across the new year.
        assert_eq!(about(Period::Weekly, "2027-01-03"), (day("2026-12-28"), day("2027-01-04")));
        assert_eq!(about(Period::Weekly, "2026-12-28"), (day("2026-12-28"), day("2027-01-04")));
        assert_eq!(about(Period::Monthly, "2028-02-29"), (day("2028-02-01"), day("2028-03-01")));
        assert_eq!(Period::Monthly.resets_at(day("2026-12-05")).to_rfc3339(), "2027-01-01T00:00:00+00:00");
    }
}
