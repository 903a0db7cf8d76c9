//! A connection that stays with whoever writes for as long as there is something to write.
//!
//! The pool hands its connections out in turn, so that statements which come by the thousand would be prepared by
//! all of them and each would find its session cold; and it asks a connection that comes back whether it lives, which
//! is one more round trip.

use std::pin::pin;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

/// How long a connection is kept with nothing to write: what comes more seldom gains nothing by it.
const KEPT: Duration = Duration::from_millis(25);

/// See the module.
pub(super) struct Line {
    pool: PgPool,
    connection: Option<PoolConnection<Postgres>>,
}

impl Line {
    pub(super) fn new(pool: PgPool) -> Self {
        Self { pool, connection: None }
    }

    pub(super) async fn get(&mut self) -> sqlx::Result<&mut PgConnection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.pool.acquire().await?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Gives the connection back, for instance because it may be broken.
    pub(super) fn hang_up(&mut self) {
        self.connection = None;
    }

    /// Waits for `work`, and gives the connection back when that takes long, when the pool closes, or at once when
    /// nobody else would get one.
    pub(super) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let room = self.pool.num_idle() > 0 || self.pool.size() < self.pool.options().get_max_connections();
        if self.connection.is_some() && room {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.pool.close_event() => {}
                () = tokio::time::sleep(KEPT) => {}
            }
        }
        self.hang_up();
        work.await
    }
}
