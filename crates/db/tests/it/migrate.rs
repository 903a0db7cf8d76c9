use tale_db::migrate::{self, MigrateError};
use tale_testkit::TestDb;

#[tokio::test]
async fn migrating_again_and_from_two_replicas_at_once_changes_nothing() {
    let db = TestDb::new().await;
    let (one, two, three) =
        tokio::join!(migrate::app(&db.app), migrate::app(&db.app), migrate::knowledge(&db.knowledge));
    one.unwrap();
    two.unwrap();
    three.unwrap();
}

#[tokio::test]
async fn replicas_that_start_at_once_on_an_empty_database_apply_each_migration_once() {
    let db = TestDb::empty().await;
    let replicas = (0..6).map(|_| {
        let pool = db.app.clone();
        tokio::spawn(async move { migrate::app(&pool).await })
    });
    for replica in replicas.collect::<Vec<_>>() {
        replica.await.unwrap().unwrap();
    }
    let applied: i64 = sqlx::query_scalar("SELECT count(*) FROM app.schema_migrations WHERE success")
        .fetch_one(&db.app)
        .await
        .unwrap();
    assert_eq!(usize::try_from(applied).unwrap(), migrate::app_migrator().iter().count());
}

/// What a newer release leaves behind: a migration that this one does not have, and the oldest
/// program that still works.
async fn newer_release(db: &TestDb, oldest: i64) {
    sqlx::query("INSERT INTO app.schema_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'later', true, '', 0)")
        .execute(&db.app)
        .await
        .unwrap();
    sqlx::query("INSERT INTO app.schema_floor (version) VALUES ($1)").bind(oldest).execute(&db.app).await.unwrap();
}

#[tokio::test]
async fn the_previous_release_restarts_beside_a_newer_one() {
    let db = TestDb::new().await;
    newer_release(&db, migrate::app_migrator().iter().map(|migration| migration.version).max().unwrap()).await;
    migrate::app(&db.app).await.unwrap();
}

#[tokio::test]
async fn data_that_needs_a_newer_release_is_refused_with_a_way_out() {
    let db = TestDb::new().await;
    newer_release(&db, 9999).await;
    let error = migrate::app(&db.app).await.unwrap_err();
    assert!(matches!(error, MigrateError::Newer { version: 9999, .. }), "{error}");
    assert!(error.to_string().contains("newer release"));
    // The lock is free again: another try gets the same answer at once.
    assert!(matches!(migrate::app(&db.app).await, Err(MigrateError::Newer { .. })));
}

#[tokio::test]
async fn an_applied_migration_that_was_changed_afterwards_is_refused() {
    let db = TestDb::new().await;
    sqlx::query("UPDATE app.schema_migrations SET checksum = 'x' WHERE version = 2").execute(&db.app).await.unwrap();
    let error = migrate::app(&db.app).await.unwrap_err();
    assert!(matches!(error, MigrateError::Changed { version: 2, .. }), "{error}");
}

#[tokio::test]
async fn a_database_without_pgvector_names_the_statement_to_run() {
    let db = TestDb::new().await;
    sqlx::query("DROP EXTENSION vector CASCADE").execute(&db.knowledge).await.unwrap();
    sqlx::raw_sql(
        "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO pg_monitor', current_database()); END $$",
    )
    .execute(&db.knowledge)
    .await
    .unwrap();
    let options = db.knowledge.connect_options().as_ref().clone().options([("role", "pg_monitor")]);
    let plain = sqlx::postgres::PgPoolOptions::new().connect_lazy_with(options);
    let error = migrate::knowledge(&plain).await.unwrap_err();
    assert!(matches!(error, MigrateError::VectorMissing(_)), "{error}");
    assert!(error.to_string().contains("CREATE EXTENSION vector;"));
}
