-- Subscriptions: accounts at a provider's own plan, handed out by a broker. Kept apart from credentials, so that no
-- call of a model can ever find one.

CREATE TABLE app.subscriptions (
    id              uuid        PRIMARY KEY,
    org_id          uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    provider_slug   text        NOT NULL,
    name            text        NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    broker          jsonb       NOT NULL,
    secret          text,
    masked          text,
    model_allowlist text[]      NOT NULL DEFAULT '{}',
    enabled         boolean     NOT NULL DEFAULT true,
    -- selections so far
    turn            bigint      NOT NULL DEFAULT 0,
    version         bigint      NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT subscriptions_name_key UNIQUE (org_id, name),
    CONSTRAINT subscriptions_secret CHECK ((secret IS NULL) = (masked IS NULL))
);
COMMENT ON TABLE app.subscriptions IS 'Subscriptions of an organization and their brokers. provider_slug names a shipped definition.';
COMMENT ON COLUMN app.subscriptions.secret IS 'What signs in to the broker, encrypted for this row (context subscription:<id>).';

CREATE TABLE app.subscription_accounts (
    subscription_id uuid        NOT NULL REFERENCES app.subscriptions (id) ON DELETE CASCADE,
    org_id          uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- id:<the broker's id> or token:<digest>
    account         text        NOT NULL CHECK (length(account) BETWEEN 1 AND 300),
    -- the selection that took it last; 0 = none
    turn            bigint      NOT NULL DEFAULT 0,
    cooling_until   timestamptz,
    PRIMARY KEY (subscription_id, account)
);
CREATE INDEX subscription_accounts_by_org ON app.subscription_accounts (org_id);
COMMENT ON TABLE app.subscription_accounts IS 'When each account of a broker was selected last, and until when the vendor wants none of its work.';

-- Takes the account that was selected least recently, and among new ones the first. Selections of one subscription
-- happen one after the other, in whatever process. What a thousand selections have not touched is forgotten.
CREATE FUNCTION app.subscription_turn(p_org uuid, p_id uuid, p_accounts text[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_turn    bigint;
    v_account text;
BEGIN
    UPDATE app.subscriptions SET turn = turn + 1 WHERE org_id = p_org AND id = p_id RETURNING turn INTO v_turn;
    IF v_turn IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT c.account INTO v_account
    FROM unnest(p_accounts) WITH ORDINALITY AS c(account, place)
    LEFT JOIN app.subscription_accounts a ON a.subscription_id = p_id AND a.org_id = p_org AND a.account = c.account
    ORDER BY coalesce(a.turn, 0), c.place LIMIT 1;
    IF v_account IS NOT NULL THEN
        INSERT INTO app.subscription_accounts AS n (subscription_id, org_id, account, turn)
        VALUES (p_id, p_org, v_account, v_turn)
        ON CONFLICT (subscription_id, account) DO UPDATE SET turn = excluded.turn;
        DELETE FROM app.subscription_accounts
        WHERE subscription_id = p_id AND org_id = p_org AND turn < v_turn - 1000 AND account <> ALL (p_accounts);
    END IF;
    RETURN v_account;
END;
$$;
COMMENT ON FUNCTION app.subscription_turn IS 'Selects the next account of a subscription in turn; see the migration.';
