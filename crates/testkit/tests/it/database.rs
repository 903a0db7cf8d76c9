use tale_testkit::TestDb;

#[tokio::test]
async fn a_test_database_is_migrated_and_its_own() {
    let (one, two) = tokio::join!(TestDb::new(), TestDb::new());
    sqlx::query("CREATE TABLE app.mine (id int)").execute(&one.app).await.unwrap();
    assert!(sqlx::query("SELECT FROM app.mine").execute(&two.app).await.is_err());
    sqlx::query("SELECT FROM app.jobs").execute(&two.app).await.unwrap();
    sqlx::query("SELECT '[1,2]'::vector").execute(&one.knowledge).await.unwrap();
}

#[tokio::test]
async fn a_test_database_is_dropped_with_its_value() {
    let db = TestDb::new().await;
    let name: String = sqlx::query_scalar("SELECT current_database()::text").fetch_one(&db.app).await.unwrap();
    drop(db);
    let other = TestDb::new().await;
    let left: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(name)
        .fetch_one(&other.app)
        .await
        .unwrap();
    assert!(!left);
}
