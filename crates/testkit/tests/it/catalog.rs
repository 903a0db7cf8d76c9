//! What holds for every table: it belongs to an organization or is on a short list, its foreign
//! keys are indexed and say what a delete does, and it says what it is for.

use sqlx::PgPool;
use tale_testkit::TestDb;

/// Tables of the deployment as a whole, with the reason.
const WITHOUT_ORGANIZATION: &[&str] = &[
    "app.audit_sealing",                 // how far all of them are sealed
    "app.backup_codes",                  // of a person
    "app.gateway_settings",              // of the deployment
    "app.known_devices",                 // of a person
    "app.job_schedules",                 // recurring jobs of the deployment
    "app.mail_delivery",                 // of the deployment
    "app.login_attempts",                // before anybody is signed in
    "app.organizations",                 // the organization itself
    "app.passkeys",                      // of a person
    "app.pending_sign_ins",              // before anybody is signed in
    "app.schema_floor",                  // bookkeeping
    "app.schema_migrations",             // bookkeeping
    "app.sessions",                      // of a person
    "app.spent_challenges",              // before anybody is signed in
    "app.totp_secrets",                  // of a person
    "app.users",                         // a person belongs to several organizations
    "private_knowledge.corpus_settings", // of the database
    "private_knowledge.schema_floor",
    "private_knowledge.schema_migrations",
];
/// Written by the migration library, not by us.
const BOOKKEEPING: &str = "schema_migrations";

async fn check(pool: &PgPool, statement: &'static str, complaint: &str, allowed: &[&str]) {
    let found: Vec<String> = sqlx::query_scalar(statement).fetch_all(pool).await.unwrap();
    let wrong: Vec<&String> = found
        .iter()
        .filter(|name| !allowed.contains(&name.as_str()) && (!allowed.is_empty() || !name.contains(BOOKKEEPING)))
        .collect();
    assert!(wrong.is_empty(), "{complaint}: {wrong:#?}");
}

const NO_ORGANIZATION: &str = "
    SELECT t.schemaname || '.' || t.tablename
      FROM pg_tables t
     WHERE t.schemaname IN ('app', 'private_knowledge')
       AND NOT EXISTS (
           SELECT FROM information_schema.columns c
            WHERE c.table_schema = t.schemaname AND c.table_name = t.tablename AND c.column_name = 'org_id')
     ORDER BY 1";

const NO_INDEX: &str = "
    SELECT k.conrelid::regclass::text || '.' || k.conname
      FROM pg_constraint k
     WHERE k.contype = 'f'
       AND NOT EXISTS (
           SELECT FROM pg_index i
            WHERE i.indrelid = k.conrelid
              AND (SELECT array_agg(column_number ORDER BY column_number)
                     FROM unnest((i.indkey::int2[])[0:cardinality(k.conkey) - 1]) AS head (column_number))
                = (SELECT array_agg(column_number ORDER BY column_number) FROM unnest(k.conkey) AS own (column_number)))
     ORDER BY 1";

const NO_DELETE_RULE: &str = "
    SELECT k.conrelid::regclass::text || '.' || k.conname
      FROM pg_constraint k
     WHERE k.contype = 'f' AND k.confdeltype = 'a'
     ORDER BY 1";

const NO_COMMENT: &str = "
    SELECT c.oid::regclass::text
      FROM pg_class c
     WHERE c.relkind IN ('r', 'p')
       AND c.relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('app', 'private_knowledge'))
       AND obj_description(c.oid, 'pg_class') IS NULL
     ORDER BY 1";

#[tokio::test]
async fn every_table_belongs_to_an_organization_or_is_listed() {
    let db = TestDb::new().await;
    for pool in [&db.app, &db.knowledge] {
        check(pool, NO_ORGANIZATION, "these tables have no org_id", WITHOUT_ORGANIZATION).await;
    }
}

#[tokio::test]
async fn every_foreign_key_is_indexed_and_decides_what_a_delete_does() {
    let db = TestDb::new().await;
    for pool in [&db.app, &db.knowledge] {
        check(pool, NO_INDEX, "these foreign keys have no index that starts with their columns", &[]).await;
        check(pool, NO_DELETE_RULE, "these foreign keys have no ON DELETE (RESTRICT is a decision too)", &[]).await;
    }
}

#[tokio::test]
async fn every_table_says_what_it_is_for() {
    let db = TestDb::new().await;
    for pool in [&db.app, &db.knowledge] {
        check(pool, NO_COMMENT, "these tables have no COMMENT", &[]).await;
    }
}
