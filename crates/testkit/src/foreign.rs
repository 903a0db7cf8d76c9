//! A database that belongs to somebody else: a role and a password of its own, and no superuser.

use sqlx::{Connection, PgConnection, PgPool};

use crate::db::{connect, name, pool, run};

/// A database with a role that owns it, both dropped with this value.
#[derive(Debug)]
pub struct ForeignDb {
    /// Where the server is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The database's name.
    pub database: String,
    /// The role that owns it.
    pub user: String,
    /// The role's password.
    pub password: String,
    /// The database, for the superuser: to look at rows.
    pub rows: PgPool,
    server: sqlx::postgres::PgConnectOptions,
}

impl ForeignDb {
    /// An empty database with the extension `vector`.
    ///
    /// # Panics
    /// As [`crate::TestDb::new`].
    pub async fn new() -> Self {
        let db = Self::without_vector().await;
        db.create_vector().await;
        db
    }

    /// An empty database without any extension.
    ///
    /// # Panics
    /// As [`crate::TestDb::new`].
    pub async fn without_vector() -> Self {
        let (mut admin, server, _) = connect().await;
        let stem = name();
        let (database, user, password) = (format!("{stem}_own"), format!("{stem}_role"), "its own".to_owned());
        run(&mut admin, format!("CREATE ROLE {user} LOGIN PASSWORD '{password}'")).await;
        run(&mut admin, format!("CREATE DATABASE {database} OWNER {user} TEMPLATE template1")).await;
        let _ = admin.close().await;
        let (host, port) = (server.get_host().to_owned(), server.get_port());
        Self { host, port, rows: pool(&server, &database), database, user, password, server }
    }

    /// Does what an operator does who is asked for the extension.
    ///
    /// # Panics
    /// When the server lacks it.
    pub async fn create_vector(&self) {
        self.run("CREATE EXTENSION vector").await;
    }

    /// Gives the role another password.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn change_password(&self, password: &str) {
        self.run(&format!("ALTER ROLE {} PASSWORD '{password}'", self.user)).await;
    }

    /// Ends every connection to the database.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn cut(&self) {
        self.run(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' AND usename = '{}'",
            self.database, self.user
        ))
        .await;
    }

    async fn run(&self, statement: &str) {
        let mut conn = self.rows.acquire().await.expect("the test server");
        run(&mut conn, statement.to_owned()).await;
    }
}

impl Drop for ForeignDb {
    fn drop(&mut self) {
        let (server, database, user) = (self.server.clone(), self.database.clone(), self.user.clone());
        // A thread with a runtime of its own: the test's runtime cannot block here.
        let dropped = std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let Ok(mut admin) = PgConnection::connect_with(&server).await else { return };
                for statement in
                    [format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"), format!("DROP ROLE IF EXISTS {user}")]
                {
                    let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut admin).await;
                }
            });
        });
        let _ = dropped.join();
    }
}
