//! The database room: connection pools, migrations, live-update hints over LISTEN/NOTIFY and the
//! private Postgres that `tale dev` runs.
//!
//! There are two databases, which may live on one server or on two: the *application* database
//! (schema `app`) and the *knowledge* database (schema `private_knowledge`, with pgvector). This
//! crate knows how to reach and prepare them and nothing about what the tables mean; statements
//! stand in the store modules of the rooms above.
//!
//! - [`pools`]: [`connect`](pools::connect) opens the bounded pool of one database.
//! - [`migrate`]: brings a database to this release's schema, or says why it cannot.
//! - [`foreign`]: the same for a knowledge database that an organization names for itself.
//! - [`hints`]: one LISTEN connection per process fans changes out to every live-update stream.
//! - [`channels`]: the listener under it, for other rooms that follow a channel.
//! - [`embedded`]: initializes, starts, watches and stops the private Postgres.

pub mod channels;
pub mod embedded;
pub mod foreign;
pub mod hints;
pub mod migrate;
pub mod pools;
mod relay;
