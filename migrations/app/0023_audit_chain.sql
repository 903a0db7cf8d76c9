-- Audit entries are sealed into one chain of hashes per organization, and can be filtered.

ALTER TABLE app.audit_entries
    -- whole milliseconds, which is what the chain covers
    ALTER COLUMN at TYPE timestamptz(3),
    ADD COLUMN status     text NOT NULL DEFAULT 'success' CHECK (status IN ('success', 'failure', 'denied')),
    ADD COLUMN actor_role text,
    -- the writing transaction: the sealer asks for what an earlier snapshot did not see, so an entry of a
    -- transaction that started early and committed late is never passed over
    ADD COLUMN xid        xid8 NOT NULL DEFAULT pg_current_xact_id();
UPDATE app.audit_entries
   SET status = CASE details ->> 'status' WHEN 'failure' THEN 'failure' ELSE 'success' END,
       details = details - 'status',
       category = CASE category
                      WHEN 'account' THEN 'auth'
                      WHEN 'organization' THEN 'admin'
                      WHEN 'members' THEN 'member'
                      WHEN 'api_keys' THEN 'security'
                      WHEN 'models' THEN 'provider'
                      WHEN 'knowledge' THEN 'data'
                      WHEN 'chat' THEN 'data'
                      ELSE category
                  END;
COMMENT ON COLUMN app.audit_entries.actor_email IS
    'The address of the account that acted, as it was then, or the lower-cased address of a failed sign-in; empty when its hash is kept (DCF-111).';
COMMENT ON COLUMN app.audit_entries.actor_role IS 'The role of the account that acted, as it was then.';
CREATE INDEX audit_entries_by_xid ON app.audit_entries (xid, id);
CREATE INDEX audit_entries_by_category ON app.audit_entries (org_id, category, at DESC, id DESC);
CREATE INDEX audit_entries_unsuccessful ON app.audit_entries (org_id, at DESC, id DESC) WHERE status <> 'success';

CREATE TABLE app.audit_seals (
    -- the chain: an organization, or the zero place for entries of the deployment
    org_id             uuid   NOT NULL,
    sequence           bigint NOT NULL CHECK (sequence > 0),
    entry_id           uuid   NOT NULL,
    hash               bytea  NOT NULL CHECK (octet_length(hash) = 32),
    -- each commitment is SHA-256(salt, value): it is computed while there is a salt, and kept in its place
    -- when salt and value are erased
    actor_salt         bytea CHECK (octet_length(actor_salt) = 16),
    actor_commitment   bytea CHECK (octet_length(actor_commitment) = 32),
    subject_salt       bytea CHECK (octet_length(subject_salt) = 16),
    subject_commitment bytea CHECK (octet_length(subject_commitment) = 32),
    PRIMARY KEY (org_id, sequence),
    CHECK ((actor_salt IS NULL) <> (actor_commitment IS NULL)),
    CHECK ((subject_salt IS NULL) <> (subject_commitment IS NULL))
);
COMMENT ON TABLE app.audit_seals IS
    'The place of each sealed audit entry in its chain. No foreign key: a seal whose entry is gone is what shows that it is gone.';
CREATE UNIQUE INDEX audit_seals_by_entry ON app.audit_seals (entry_id);

CREATE TABLE app.audit_chains (
    org_id        uuid   PRIMARY KEY,
    -- the head
    sequence      bigint NOT NULL,
    hash          bytea  NOT NULL CHECK (octet_length(hash) = 32),
    -- what the oldest kept entry continues; zeros at the beginning of the chain
    base_sequence bigint NOT NULL DEFAULT 0,
    base_hash     bytea  NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(base_hash) = 32),
    -- the last check by the platform itself
    checked_at       timestamptz,
    checked_sequence bigint,
    checked_hash     bytea,
    -- what it found, until a later one finds nothing
    incident         jsonb
);
COMMENT ON TABLE app.audit_chains IS 'The two ends of each chain of audit entries, and how far it was checked.';

CREATE TABLE app.audit_sealing (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    -- everything that this snapshot sees is sealed
    seen       pg_snapshot NOT NULL DEFAULT '1:1:',
    -- what is being sealed now becomes that: its snapshot and the last entry that was read
    next       pg_snapshot,
    after_xid  xid8        NOT NULL DEFAULT '0',
    after_id   uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
COMMENT ON TABLE app.audit_sealing IS 'How far audit entries are sealed. Whoever holds its one row seals.';
INSERT INTO app.audit_sealing DEFAULT VALUES;
