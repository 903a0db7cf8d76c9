//! The database room on a real Postgres.

mod embedded;
mod hints;
mod migrate;
