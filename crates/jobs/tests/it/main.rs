//! The job queue on a real Postgres.

mod draining;
mod kit;
mod leases;
mod ordering;
mod outcomes;
