//! The database room on a real Postgres.

mod hints;
mod migrate;
