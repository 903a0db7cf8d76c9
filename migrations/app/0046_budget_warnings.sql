-- Warnings of usage limits that were given.

CREATE TABLE app.budget_warnings (
    org_id    uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- whose use the limit measures: org, user:<id>, key:<id> or team:<id>
    holder    text        NOT NULL,
    -- SHA-256 of the rule: one that says something else warns anew
    rule      bytea       NOT NULL CHECK (octet_length(rule) = 32),
    -- the first day of the period, in UTC
    first_day date        NOT NULL,
    told_at   timestamptz NOT NULL,
    PRIMARY KEY (org_id, holder, rule, first_day)
);
COMMENT ON TABLE app.budget_warnings IS
    'Which rules of the policy budgets warned whom in which period. Its key is what makes it one warning, however many processes look.';
CREATE INDEX budget_warnings_by_age ON app.budget_warnings (first_day);

-- A job looks once a minute for the organizations whose rules have a threshold.
CREATE INDEX policies_with_budgets ON app.policies (org_id) WHERE key = 'budgets';
