-- Leases: a process holds a part of an allowance and pays calls from it, without asking the database before each.
--
-- What a lease has is held of its allowance like what calls hold, so all processes together never take more than there is.
-- A call's hold, when it lasts long enough to have one, comes out of the lease; what it does not use goes back there.

CREATE TABLE app.usage_leases (
    id             uuid   PRIMARY KEY,
    org_id         uuid   NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    allowance_id   uuid   NOT NULL REFERENCES app.usage_allowances (id) ON DELETE CASCADE,
    -- the process that pays calls from it
    owner          uuid   NOT NULL,
    -- counts up while the owner lives; whoever sees it stand still for five minutes ends the lease
    beat           bigint NOT NULL DEFAULT 0,
    -- what is left; of a kind that the allowance does not limit it may be below zero
    tokens         bigint NOT NULL,
    cost_micro_usd bigint NOT NULL,
    requests       bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX usage_leases_by_org ON app.usage_leases (org_id);
CREATE INDEX usage_leases_by_allowance ON app.usage_leases (allowance_id);
CREATE INDEX usage_leases_by_owner ON app.usage_leases (owner);
COMMENT ON TABLE app.usage_leases IS 'Parts of allowances that processes pay calls from by themselves. Held of the allowance, not spent.';

ALTER TABLE app.usage_allowances ADD COLUMN leases bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN app.usage_allowances.leases IS 'Leases of it; what they have is a part of what is held.';
ALTER TABLE app.usage_holds ADD COLUMN lease_id uuid;
COMMENT ON COLUMN app.usage_holds.lease_id IS 'Where what the work does not use goes back to, while that is there.';

-- Leases a part of an allowance (p_lease is new), or adds to a lease (it is not). Wanted and least are [tokens, cost, requests].
-- At most a quarter of what is free is given, and nothing when that is less than the least of a kind.
-- Answers no row when no call may begin, else what was given (null = not leased), and what limits the allowance.
CREATE FUNCTION app.usage_lease(p_owner uuid, p_now timestamptz, p_org uuid, p_allowance uuid, p_lease uuid, p_new boolean,
    p_wanted bigint[], p_least bigint[])
RETURNS TABLE (granted bigint[], limited boolean[], expires_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    v_one  app.usage_allowances%ROWTYPE;
    v_free bigint[];
    v_give bigint[] := '{0,0,0}';
BEGIN
    SELECT * INTO v_one FROM app.usage_allowances k WHERE k.org_id = p_org AND k.id = p_allowance FOR UPDATE;
    IF NOT FOUND OR v_one.ended_at IS NOT NULL OR v_one.expires_at <= p_now THEN
        RETURN;
    END IF;
    limited := ARRAY[v_one.tokens IS NOT NULL, true, v_one.requests IS NOT NULL];
    expires_at := v_one.expires_at;
    v_free := ARRAY[v_one.tokens - v_one.spent_tokens - v_one.held_tokens,
                    v_one.cost_micro_usd - v_one.spent_cost - v_one.held_cost,
                    v_one.requests - v_one.spent_requests - v_one.held_requests];
    FOR i IN 1 .. 3 LOOP
        IF limited[i] THEN
            v_give[i] := least(p_wanted[i], v_free[i] / 4);
            IF v_give[i] < p_least[i] THEN
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;
    END LOOP;
    IF p_new THEN
        INSERT INTO app.usage_leases (id, org_id, allowance_id, owner, tokens, cost_micro_usd, requests)
        VALUES (p_lease, p_org, p_allowance, p_owner, v_give[1], v_give[2], v_give[3]);
    ELSE
        UPDATE app.usage_leases l SET tokens = l.tokens + v_give[1], cost_micro_usd = l.cost_micro_usd + v_give[2],
            requests = l.requests + v_give[3]
        WHERE l.id = p_lease AND l.owner = p_owner AND l.allowance_id = p_allowance;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    UPDATE app.usage_allowances k SET held_tokens = k.held_tokens + v_give[1], held_cost = k.held_cost + v_give[2],
        held_requests = k.held_requests + v_give[3], leases = k.leases + p_new::integer
    WHERE k.id = p_allowance;
    granted := v_give;
    RETURN NEXT;
END;
$$;
COMMENT ON FUNCTION app.usage_lease IS 'Gives a process a part of an allowance; see the migration.';

-- Gives back what leases have left. Those whose beat is given end only if it still stands there. Answers how many ended.
CREATE FUNCTION app.usage_lease_end(p_now timestamptz, p_leases uuid[], p_beats bigint[]) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    v_ended bigint;
BEGIN
    PERFORM FROM app.usage_allowances a
    WHERE a.id = ANY (ARRAY(SELECT l.allowance_id FROM app.usage_leases l WHERE l.id = ANY (p_leases)))
    ORDER BY a.id FOR UPDATE;
    WITH gone AS (
        DELETE FROM app.usage_leases l
        USING unnest(p_leases, p_beats) AS x(id, beat)
        WHERE l.id = x.id AND l.id = ANY (p_leases) AND (x.beat IS NULL OR l.beat = x.beat)
        RETURNING l.*
    ),
    sums AS MATERIALIZED (
        SELECT allowance_id AS id, count(*) AS n, sum(tokens) AS t, sum(cost_micro_usd) AS c, sum(requests) AS r
        FROM gone GROUP BY allowance_id
    ),
    back AS (
        UPDATE app.usage_allowances a SET leases = a.leases - s.n, held_tokens = a.held_tokens - s.t,
            held_cost = a.held_cost - s.c, held_requests = a.held_requests - s.r,
            settled_at = CASE WHEN a.ended_at IS NOT NULL AND a.calls = 0 AND a.leases = s.n THEN p_now END
        FROM sums s WHERE a.id = s.id AND a.id = ANY (ARRAY(SELECT id FROM sums))
        RETURNING a.*
    ),
    counted AS (
        INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
            held_tokens, held_cost_micro_usd, held_requests)
        SELECT org_id, holder, day, stripe, 0, 0, 0, -sum(greatest(tokens - spent_tokens, 0)),
               -sum(greatest(cost_micro_usd - spent_cost, 0)), -sum(greatest(requests - spent_requests, 0))
        FROM back CROSS JOIN LATERAL (VALUES ('org'), ('user:' || user_id), ('key:' || api_key_id)) AS holders (holder)
        WHERE settled_at IS NOT NULL AND holder IS NOT NULL
        GROUP BY org_id, holder, day, stripe ORDER BY org_id, holder, day, stripe
        ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
            held_tokens = n.held_tokens + excluded.held_tokens,
            held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
            held_requests = n.held_requests + excluded.held_requests
    )
    SELECT coalesce(sum(n), 0) INTO v_ended FROM sums;
    RETURN v_ended;
END;
$$;
COMMENT ON FUNCTION app.usage_lease_end IS 'Gives back what leases have left; see the migration.';

-- Writes down calls that leases pay for: those that run get their hold, those that have ended are booked and never had one.
-- Written again it changes nothing. What a lease had no more, because it ended meanwhile, is booked all the same.
--
-- p_leases and p_payers are the leases and their allowances. Each call is a place in the other arrays: its lease (from 1), how
-- it ended (null = it runs), what it may use, and what it used or is booked for at least.
-- Answers the leases from which more calls may be paid.
CREATE FUNCTION app.usage_journal(p_owner uuid, p_stripe smallint, p_now timestamptz, p_leases uuid[], p_payers uuid[],
    p_ids uuid[], p_of integer[], p_providers text[], p_models text[], p_outcomes text[],
    p_tokens bigint[], p_costs bigint[], p_requests bigint[],
    p_input bigint[], p_output bigint[], p_cached bigint[], p_units bigint[], p_used bigint[])
RETURNS SETOF uuid
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM app.usage_allowances a WHERE a.id = ANY (p_payers) ORDER BY a.id FOR UPDATE;

    IF array_position(p_outcomes, NULL) IS NOT NULL THEN
        WITH held AS (
            INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at,
                day, kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units,
                floor_cost, allowance_id, lease_id)
            SELECT x.id, a.org_id, p_owner, a.user_id, a.api_key_id, a.source, x.provider, x.model, a.admitted_at, a.day, p_now,
                   p_stripe, CASE WHEN l.id IS NULL THEN 0 ELSE x.tokens END, CASE WHEN l.id IS NULL THEN 0 ELSE x.cost END,
                   CASE WHEN l.id IS NULL THEN 0 ELSE x.requests END, x.input, x.output, x.cached, x.units, x.used,
                   CASE WHEN a.settled_at IS NULL THEN a.id END, l.id
            FROM unnest(p_ids, p_of, p_providers, p_models, p_outcomes, p_tokens, p_costs, p_requests, p_input, p_output,
                p_cached, p_units, p_used) AS x(id, of, provider, model, outcome, tokens, cost, requests, input, output, cached,
                units, used)
            JOIN app.usage_allowances a ON a.id = p_payers[x.of] AND a.id = ANY (p_payers)
            LEFT JOIN app.usage_leases l ON l.id = p_leases[x.of] AND l.id = ANY (p_leases)
            WHERE x.outcome IS NULL ORDER BY x.id
            ON CONFLICT (id) DO NOTHING
            RETURNING allowance_id, lease_id, tokens, cost_micro_usd, requests
        ),
        moved AS (
            UPDATE app.usage_leases l SET tokens = l.tokens - s.t, cost_micro_usd = l.cost_micro_usd - s.c,
                requests = l.requests - s.r
            FROM (SELECT lease_id, sum(tokens) AS t, sum(cost_micro_usd) AS c, sum(requests) AS r FROM held GROUP BY lease_id) AS s
            WHERE l.id = s.lease_id AND l.id = ANY (p_leases)
        )
        UPDATE app.usage_allowances a SET calls = a.calls + s.n
        FROM (SELECT allowance_id AS id, count(*) AS n FROM held GROUP BY allowance_id) AS s
        WHERE a.id = s.id AND a.id = ANY (p_payers);
    END IF;

    WITH ended AS MATERIALIZED (
        SELECT x.*, a.org_id, a.user_id, a.api_key_id, a.source, a.admitted_at, a.day, a.id AS allowance, l.id AS lease
        FROM unnest(p_ids, p_of, p_providers, p_models, p_outcomes, p_tokens, p_costs, p_requests, p_input, p_output, p_cached,
            p_units, p_used) AS x(id, of, provider, model, outcome, tokens, cost, requests, input, output, cached, units, used)
        JOIN app.usage_allowances a ON a.id = p_payers[x.of] AND a.id = ANY (p_payers)
        LEFT JOIN app.usage_leases l ON l.id = p_leases[x.of] AND l.id = ANY (p_leases)
        WHERE x.outcome IS NOT NULL
    ),
    booked AS (
        INSERT INTO app.usage_bookings (reservation_id, org_id, admitted_at, booked_at, user_id, api_key_id, source,
            provider_slug, model, requests, input_tokens, output_tokens, cached_tokens, units, cost_micro_usd, outcome)
        SELECT id, org_id, admitted_at, p_now, user_id, api_key_id, source, provider, model, requests, input, output, cached,
               units, used, outcome
        FROM ended ORDER BY id
        ON CONFLICT (reservation_id) DO NOTHING
        RETURNING reservation_id
    ),
    sums AS MATERIALIZED (
        SELECT org_id, day, user_id, api_key_id, source, provider, model, allowance, lease, sum(requests) AS r, sum(input) AS i,
               sum(output) AS o, sum(cached) AS k, sum(units) AS u, sum(used) AS c,
               CASE WHEN lease IS NULL THEN 0 ELSE sum(least(tokens, input + output)) END AS left_t,
               CASE WHEN lease IS NULL THEN 0 ELSE sum(least(cost, used)) END AS left_c,
               CASE WHEN lease IS NULL THEN 0 ELSE sum(requests) END AS left_r
        FROM ended JOIN booked ON reservation_id = id
        GROUP BY org_id, day, user_id, api_key_id, source, provider, model, allowance, lease
    ),
    summed AS (
        INSERT INTO app.usage_days AS n (org_id, day, user_id, api_key_id, source, provider_slug, model, stripe, requests,
            input_tokens, output_tokens, cached_tokens, units, cost_micro_usd)
        SELECT org_id, day, user_id, api_key_id, source, provider, model, p_stripe, sum(r), sum(i), sum(o), sum(k), sum(u), sum(c)
        FROM sums
        GROUP BY org_id, day, user_id, api_key_id, source, provider, model
        ORDER BY org_id, day, user_id, api_key_id, source, provider, model
        ON CONFLICT ON CONSTRAINT usage_days_key DO UPDATE SET
            requests = n.requests + excluded.requests,
            input_tokens = n.input_tokens + excluded.input_tokens,
            output_tokens = n.output_tokens + excluded.output_tokens,
            cached_tokens = n.cached_tokens + excluded.cached_tokens,
            units = n.units + excluded.units,
            cost_micro_usd = n.cost_micro_usd + excluded.cost_micro_usd
    ),
    taken AS (
        UPDATE app.usage_leases l SET tokens = l.tokens - s.t, cost_micro_usd = l.cost_micro_usd - s.c,
            requests = l.requests - s.r
        FROM (SELECT lease, sum(left_t) AS t, sum(left_c) AS c, sum(left_r) AS r FROM sums GROUP BY lease) AS s
        WHERE l.id = s.lease AND l.id = ANY (p_leases)
    ),
    paid AS (
        UPDATE app.usage_allowances a SET held_tokens = a.held_tokens - s.left_t, held_cost = a.held_cost - s.left_c,
            held_requests = a.held_requests - s.left_r, spent_tokens = a.spent_tokens + s.t, spent_cost = a.spent_cost + s.c,
            spent_requests = a.spent_requests + s.r
        FROM (
            SELECT allowance, sum(i + o) AS t, sum(c) AS c, sum(r) AS r, sum(left_t) AS left_t, sum(left_c) AS left_c,
                   sum(left_r) AS left_r
            FROM sums GROUP BY allowance
        ) AS s
        WHERE a.id = s.allowance AND a.id = ANY (p_payers)
        RETURNING a.org_id, a.user_id, a.api_key_id, a.day, a.stripe, s.t, s.c, s.r,
            CASE WHEN a.settled_at IS NULL
                THEN greatest(a.tokens - a.spent_tokens + s.t, 0) - greatest(a.tokens - a.spent_tokens, 0) ELSE 0 END AS freed_t,
            CASE WHEN a.settled_at IS NULL
                THEN greatest(a.cost_micro_usd - a.spent_cost + s.c, 0) - greatest(a.cost_micro_usd - a.spent_cost, 0) ELSE 0
                END AS freed_c,
            CASE WHEN a.settled_at IS NULL
                THEN greatest(a.requests - a.spent_requests + s.r, 0) - greatest(a.requests - a.spent_requests, 0) ELSE 0
                END AS freed_r
    ),
    moved AS (
        SELECT org_id, user_id, api_key_id, day, p_stripe AS stripe, t, c, r, 0 AS freed_t, 0 AS freed_c, 0 AS freed_r FROM paid
        UNION ALL
        SELECT org_id, user_id, api_key_id, day, stripe, 0, 0, 0, freed_t, freed_c, freed_r FROM paid
    )
    INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
        held_tokens, held_cost_micro_usd, held_requests)
    SELECT org_id, holder, day, stripe, sum(t), sum(c), sum(r), -sum(freed_t), -sum(freed_c), -sum(freed_r)
    FROM moved CROSS JOIN LATERAL (VALUES ('org'), ('user:' || user_id), ('key:' || api_key_id)) AS holders (holder)
    WHERE holder IS NOT NULL
    GROUP BY org_id, holder, day, stripe ORDER BY org_id, holder, day, stripe
    ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
        used_tokens = n.used_tokens + excluded.used_tokens,
        used_cost_micro_usd = n.used_cost_micro_usd + excluded.used_cost_micro_usd,
        used_requests = n.used_requests + excluded.used_requests,
        held_tokens = n.held_tokens + excluded.held_tokens,
        held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
        held_requests = n.held_requests + excluded.held_requests;

    RETURN QUERY SELECT l.id FROM app.usage_leases l JOIN app.usage_allowances a ON a.id = l.allowance_id
        WHERE l.id = ANY (p_leases) AND a.ended_at IS NULL AND a.expires_at > p_now;
END;
$$;
COMMENT ON FUNCTION app.usage_journal IS 'Writes down calls that leases pay for, each exactly once; see the migration.';

-- As before, and what a call of a lease does not use goes back to the lease while that is there.
CREATE OR REPLACE FUNCTION app.usage_settle(p_now timestamptz, p_entries jsonb) RETURNS bigint
LANGUAGE sql
SET enable_seqscan = off AS $$
    WITH closed AS (
        DELETE FROM app.usage_holds h
        USING jsonb_to_recordset(p_entries) AS x(id uuid, org uuid, released boolean, outcome text,
            silent_since timestamptz, used bigint[])
        WHERE h.org_id = x.org AND h.id = x.id
          AND h.id = ANY (ARRAY(SELECT (e ->> 'id')::uuid FROM jsonb_array_elements(p_entries) AS e))
          AND (x.silent_since IS NULL OR h.kept_at < x.silent_since)
        RETURNING h.*, x.released, x.outcome, x.used
    ),
    booked AS (
        INSERT INTO app.usage_bookings (reservation_id, org_id, admitted_at, booked_at, user_id, api_key_id, source,
            provider_slug, model, requests, input_tokens, output_tokens, cached_tokens, units, cost_micro_usd, outcome)
        SELECT id, org_id, admitted_at, p_now, user_id, api_key_id, source, provider_slug, model, requests,
               used[1], used[2], used[3], used[4], used[5], outcome
        FROM closed WHERE NOT released ORDER BY id
        ON CONFLICT (reservation_id) DO NOTHING
        RETURNING reservation_id
    ),
    summed AS (
        INSERT INTO app.usage_days AS n (org_id, day, user_id, api_key_id, source, provider_slug, model, stripe, requests,
            input_tokens, output_tokens, cached_tokens, units, cost_micro_usd)
        SELECT org_id, day, user_id, api_key_id, source, provider_slug, model, stripe, sum(requests), sum(used[1]),
               sum(used[2]), sum(used[3]), sum(used[4]), sum(used[5])
        FROM closed JOIN booked ON reservation_id = id
        GROUP BY org_id, day, user_id, api_key_id, source, provider_slug, model, stripe
        ORDER BY org_id, day, user_id, api_key_id, source, provider_slug, model, stripe
        ON CONFLICT ON CONSTRAINT usage_days_key DO UPDATE SET
            requests = n.requests + excluded.requests,
            input_tokens = n.input_tokens + excluded.input_tokens,
            output_tokens = n.output_tokens + excluded.output_tokens,
            cached_tokens = n.cached_tokens + excluded.cached_tokens,
            units = n.units + excluded.units,
            cost_micro_usd = n.cost_micro_usd + excluded.cost_micro_usd
    ),
    drawn AS (
        SELECT allowance_id AS id, count(*) AS calls, sum(tokens) AS held_t, sum(cost_micro_usd) AS held_c, sum(requests) AS held_r,
               coalesce(sum(used[1] + used[2]) FILTER (WHERE reservation_id IS NOT NULL), 0) AS used_t,
               coalesce(sum(used[5]) FILTER (WHERE reservation_id IS NOT NULL), 0) AS used_c,
               coalesce(sum(requests) FILTER (WHERE reservation_id IS NOT NULL), 0) AS used_r
        FROM closed LEFT JOIN booked ON reservation_id = closed.id
        WHERE allowance_id IS NOT NULL GROUP BY allowance_id
    ),
    locked AS MATERIALIZED (
        SELECT a.id FROM app.usage_allowances a WHERE a.id = ANY (ARRAY(SELECT id FROM drawn)) ORDER BY a.id FOR UPDATE
    ),
    unused AS MATERIALIZED (
        SELECT lease_id AS id, allowance_id,
               sum(greatest(tokens - CASE WHEN reservation_id IS NULL THEN 0 ELSE used[1] + used[2] END, 0)) AS t,
               sum(greatest(cost_micro_usd - CASE WHEN reservation_id IS NULL THEN 0 ELSE used[5] END, 0)) AS c,
               sum(CASE WHEN reservation_id IS NULL THEN requests ELSE 0 END) AS r
        FROM closed LEFT JOIN booked ON reservation_id = closed.id
        WHERE lease_id IS NOT NULL GROUP BY lease_id, allowance_id
    ),
    refunded AS (
        UPDATE app.usage_leases l SET tokens = l.tokens + u.t, cost_micro_usd = l.cost_micro_usd + u.c, requests = l.requests + u.r
        FROM unused u JOIN locked ON locked.id = u.allowance_id
        WHERE l.id = u.id AND l.id = ANY (ARRAY(SELECT id FROM unused))
        RETURNING u.allowance_id, u.t, u.c, u.r
    ),
    paid AS (
        UPDATE app.usage_allowances a SET
            calls = a.calls - d.calls, held_tokens = a.held_tokens - d.held_t + coalesce(f.t, 0),
            held_cost = a.held_cost - d.held_c + coalesce(f.c, 0),
            held_requests = a.held_requests - d.held_r + coalesce(f.r, 0), spent_tokens = a.spent_tokens + d.used_t,
            spent_cost = a.spent_cost + d.used_c, spent_requests = a.spent_requests + d.used_r,
            settled_at = CASE WHEN a.ended_at IS NOT NULL AND a.calls = d.calls AND a.leases = 0 THEN p_now END
        FROM drawn d JOIN locked ON locked.id = d.id
        LEFT JOIN (SELECT allowance_id, sum(t) AS t, sum(c) AS c, sum(r) AS r FROM refunded GROUP BY allowance_id) AS f
          ON f.allowance_id = d.id
        WHERE a.id = d.id AND a.id = ANY (ARRAY(SELECT id FROM drawn))
        RETURNING a.org_id, a.user_id, a.api_key_id, a.day, a.stripe,
            greatest(a.tokens - a.spent_tokens + d.used_t, 0)
                - CASE WHEN a.settled_at IS NULL THEN greatest(a.tokens - a.spent_tokens, 0) ELSE 0 END AS freed_t,
            greatest(a.cost_micro_usd - a.spent_cost + d.used_c, 0)
                - CASE WHEN a.settled_at IS NULL THEN greatest(a.cost_micro_usd - a.spent_cost, 0) ELSE 0 END AS freed_c,
            greatest(a.requests - a.spent_requests + d.used_r, 0)
                - CASE WHEN a.settled_at IS NULL THEN greatest(a.requests - a.spent_requests, 0) ELSE 0 END AS freed_r
    ),
    moved AS (
        SELECT org_id, user_id, api_key_id, day, stripe,
               CASE WHEN reservation_id IS NULL THEN 0 ELSE used[1] + used[2] END AS used_t,
               CASE WHEN reservation_id IS NULL THEN 0 ELSE used[5] END AS used_c,
               CASE WHEN reservation_id IS NULL THEN 0 ELSE requests END AS used_r,
               CASE WHEN allowance_id IS NULL THEN tokens ELSE 0 END AS freed_t,
               CASE WHEN allowance_id IS NULL THEN cost_micro_usd ELSE 0 END AS freed_c,
               CASE WHEN allowance_id IS NULL THEN requests ELSE 0 END AS freed_r
        FROM closed LEFT JOIN booked ON reservation_id = id
        UNION ALL
        SELECT org_id, user_id, api_key_id, day, stripe, 0, 0, 0, freed_t, freed_c, freed_r FROM paid
    ),
    counted AS (
        INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
            held_tokens, held_cost_micro_usd, held_requests)
        SELECT org_id, holder, day, stripe, sum(used_t), sum(used_c), sum(used_r), -sum(freed_t), -sum(freed_c), -sum(freed_r)
        FROM moved CROSS JOIN LATERAL (VALUES ('org'), ('user:' || user_id), ('key:' || api_key_id)) AS holders (holder)
        WHERE holder IS NOT NULL
        GROUP BY org_id, holder, day, stripe ORDER BY org_id, holder, day, stripe
        ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
            used_tokens = n.used_tokens + excluded.used_tokens,
            used_cost_micro_usd = n.used_cost_micro_usd + excluded.used_cost_micro_usd,
            used_requests = n.used_requests + excluded.used_requests,
            held_tokens = n.held_tokens + excluded.held_tokens,
            held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
            held_requests = n.held_requests + excluded.held_requests
    )
    SELECT count(*) FROM closed
$$;

-- As before, and what is leased is given back with the lease.
CREATE OR REPLACE FUNCTION app.usage_allowance_end(p_now timestamptz, p_entries jsonb) RETURNS bigint
LANGUAGE sql AS $$
    WITH due AS MATERIALIZED (
        SELECT a.id FROM jsonb_to_recordset(p_entries) AS x(org uuid, id uuid)
        JOIN app.usage_allowances a ON a.org_id = x.org AND a.id = x.id
        WHERE a.ended_at IS NULL ORDER BY a.id FOR UPDATE OF a
    ),
    ended AS (
        UPDATE app.usage_allowances a SET ended_at = p_now, settled_at = CASE WHEN a.calls = 0 AND a.leases = 0 THEN p_now END
        FROM due WHERE a.id = due.id AND a.ended_at IS NULL
        RETURNING a.*
    ),
    counted AS (
        INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
            held_tokens, held_cost_micro_usd, held_requests)
        SELECT org_id, holder, day, stripe, 0, 0, 0, -sum(greatest(tokens - spent_tokens, 0)),
               -sum(greatest(cost_micro_usd - spent_cost, 0)), -sum(greatest(requests - spent_requests, 0))
        FROM ended CROSS JOIN LATERAL (VALUES ('org'), ('user:' || user_id), ('key:' || api_key_id)) AS holders (holder)
        WHERE settled_at IS NOT NULL AND holder IS NOT NULL
        GROUP BY org_id, holder, day, stripe ORDER BY org_id, holder, day, stripe
        ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
            held_tokens = n.held_tokens + excluded.held_tokens,
            held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
            held_requests = n.held_requests + excluded.held_requests
    )
    SELECT count(*) FROM ended
$$;

-- Rows that come with every call are removed with their organization by it, and not asked one by one whether it is there:
-- what writes them has locked a row that goes with the organization before.
ALTER TABLE app.usage_bookings DROP CONSTRAINT usage_bookings_org_id_fkey;
ALTER TABLE app.gateway_log DROP CONSTRAINT gateway_log_org_id_fkey;
CREATE FUNCTION app.usage_forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM app.usage_bookings WHERE org_id = OLD.id;
    DELETE FROM app.gateway_log WHERE org_id = OLD.id;
    RETURN NULL;
END;
$$;
-- Its name stands behind those of the foreign keys, so that what they wait for is over.
CREATE TRIGGER usage_forget AFTER DELETE ON app.organizations FOR EACH ROW EXECUTE FUNCTION app.usage_forget();
