-- What holds and books a call costs less, and costs the same however full the tables are.
--
-- - Rows are looked for by their ids in a list of their own, through an index. A plan that was made while a table was
--   empty would read all of it for as long as it is kept, and a table of holds consists of dead rows mostly.
-- - Rows that come and go with every call are judged where they are made, by the functions here, and not once more by
--   constraints, of which each is parsed anew by every statement that writes: they were a fifth of the cost of a call.
-- - A call that is alone takes two short statements from its allowance.

DO $$
DECLARE
    v_one record;
BEGIN
    FOR v_one IN
        SELECT conrelid::regclass AS name, conname FROM pg_constraint
        WHERE contype = 'c' AND conrelid IN ('app.usage_holds'::regclass, 'app.usage_bookings'::regclass, 'app.usage_allowances'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', v_one.name, v_one.conname);
    END LOOP;
END;
$$;

-- Dead rows of holds are taken away every few thousand calls, not after a fifth of a table that is empty when nobody calls.
ALTER TABLE app.usage_holds SET (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0);

CREATE OR REPLACE FUNCTION app.usage_hold(p_owner uuid, p_stripe smallint, p_now timestamptz, p_gates jsonb, p_charges jsonb)
RETURNS TABLE (granted bigint[], taken bigint[])
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    v_lock  bigint;
    v_one   record;
    v_grant bigint[];
    v_taken bigint[];
    v_value bigint;
    v_all   uuid[] := ARRAY(SELECT (x ->> 'id')::uuid FROM jsonb_array_elements(p_charges) AS x);
    v_ids   uuid[] := '{}';
    v_t     bigint[] := '{}';
    v_c     bigint[] := '{}';
    v_r     bigint[] := '{}';
    v_tok   bigint[] := '{}';
    v_cost  bigint[] := '{}';
    v_req   bigint[] := '{}';
    g       integer;
BEGIN
    IF jsonb_array_length(p_gates) > 0 THEN
        FOR v_lock IN
            SELECT DISTINCT hashtextextended(org::text || '/' || holder, 1797) AS key
            FROM jsonb_to_recordset(p_gates) AS x(org uuid, holder text) ORDER BY key
        LOOP
            PERFORM pg_advisory_xact_lock(v_lock);
        END LOOP;
        SELECT array_agg(t ORDER BY gate), array_agg(c ORDER BY gate), array_agg(r ORDER BY gate)
        INTO v_tok, v_cost, v_req
        FROM (
            SELECT x.gate, coalesce(sum(n.used_tokens + n.held_tokens), 0)::bigint AS t,
                   coalesce(sum(n.used_cost_micro_usd + n.held_cost_micro_usd), 0)::bigint AS c,
                   coalesce(sum(n.used_requests + n.held_requests), 0)::bigint AS r
            FROM jsonb_to_recordset(p_gates) AS x(gate integer, org uuid, holder text, first date, last date, source text)
            LEFT JOIN app.usage_counters n
              ON n.org_id = x.org AND n.holder = x.holder AND n.day BETWEEN x.first AND x.last
            WHERE x.source IS NULL
            GROUP BY x.gate
            UNION ALL
            SELECT x.gate, 0, 0, coalesce(sum(h.requests), 0)::bigint
            FROM jsonb_to_recordset(p_gates) AS x(gate integer, org uuid, source text, "user" uuid, key uuid, over uuid[])
            LEFT JOIN LATERAL (
                SELECT u.id, u.source, u.kept_at, u.requests FROM app.usage_holds u
                WHERE u.org_id = x.org AND u.user_id = x."user"
                UNION ALL
                SELECT k.id, k.source, k.kept_at, k.requests FROM app.usage_holds k
                WHERE k.org_id = x.org AND k.api_key_id = x.key
            ) h ON h.source = x.source AND h.kept_at > p_now - interval '150 seconds' AND h.id <> ALL (x.over)
            WHERE x.source IS NOT NULL
            GROUP BY x.gate
        ) sums;
    END IF;

    FOR v_one IN
        SELECT x.*, coalesce(h.tokens, 0) AS old_t, coalesce(h.cost_micro_usd, 0) AS old_c, coalesce(h.requests, 0) AS old_r
        FROM jsonb_to_recordset(p_charges) AS x(n integer, id uuid, org uuid, gates integer[], cap_gates integer[],
            cap_kinds integer[], cap_limits bigint[], need bigint[], want bigint[])
        LEFT JOIN app.usage_holds h ON h.org_id = x.org AND h.id = x.id AND h.id = ANY (v_all)
        ORDER BY x.n
    LOOP
        v_grant := v_one.want;
        v_taken := '{}';
        FOR i IN 1 .. coalesce(array_length(v_one.cap_gates, 1), 0) LOOP
            g := v_one.cap_gates[i];
            v_value := CASE v_one.cap_kinds[i]
                WHEN 1 THEN v_tok[g] - v_one.old_t
                WHEN 2 THEN v_cost[g] - v_one.old_c
                ELSE v_req[g] - v_one.old_r END;
            v_taken := v_taken || v_value;
            IF v_value + v_one.need[v_one.cap_kinds[i]] > v_one.cap_limits[i] THEN
                v_grant := NULL;
            ELSIF v_grant IS NOT NULL THEN
                v_grant[v_one.cap_kinds[i]] := least(v_grant[v_one.cap_kinds[i]], v_one.cap_limits[i] - v_value);
            END IF;
        END LOOP;
        IF v_grant IS NOT NULL THEN
            FOREACH g IN ARRAY v_one.gates LOOP
                v_tok[g] := v_tok[g] + v_grant[1] - v_one.old_t;
                v_cost[g] := v_cost[g] + v_grant[2] - v_one.old_c;
                v_req[g] := v_req[g] + v_grant[3] - v_one.old_r;
            END LOOP;
            v_ids := v_ids || v_one.id;
            v_t := v_t || v_grant[1];
            v_c := v_c || v_grant[2];
            v_r := v_r || v_grant[3];
        END IF;
        granted := v_grant;
        taken := v_taken;
        RETURN NEXT;
    END LOOP;

    WITH admitted AS (
        SELECT x.*, a.t, a.c, a.r, coalesce(h.stripe, p_stripe) AS place,
               a.t - coalesce(h.tokens, 0) AS more_t, a.c - coalesce(h.cost_micro_usd, 0) AS more_c,
               a.r - coalesce(h.requests, 0) AS more_r
        FROM jsonb_to_recordset(p_charges) AS x(id uuid, org uuid, "user" uuid, key uuid, source text, provider text,
            model text, at timestamptz, day date, holders text[], floor bigint[])
        JOIN unnest(v_ids, v_t, v_c, v_r) AS a(id, t, c, r) ON a.id = x.id
        LEFT JOIN app.usage_holds h ON h.org_id = x.org AND h.id = x.id AND h.id = ANY (v_all)
    ),
    held AS (
        INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at, day,
            kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units, floor_cost)
        SELECT id, org, p_owner, "user", key, source, provider, model, at, day, p_now, place, t, c, r,
               floor[1], floor[2], floor[3], floor[4], floor[5]
        FROM admitted ORDER BY id
        ON CONFLICT (id) DO UPDATE SET tokens = excluded.tokens, cost_micro_usd = excluded.cost_micro_usd,
            requests = excluded.requests, kept_at = excluded.kept_at, floor_input = excluded.floor_input,
            floor_output = excluded.floor_output, floor_cached = excluded.floor_cached,
            floor_units = excluded.floor_units, floor_cost = excluded.floor_cost
    )
    INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
        held_tokens, held_cost_micro_usd, held_requests)
    SELECT org, holder, day, place, 0, 0, 0, sum(more_t), sum(more_c), sum(more_r)
    FROM admitted CROSS JOIN LATERAL unnest(holders) AS holder
    GROUP BY org, holder, day, place ORDER BY org, holder, day, place
    ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
        held_tokens = n.held_tokens + excluded.held_tokens,
        held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
        held_requests = n.held_requests + excluded.held_requests;
END;
$$;

CREATE OR REPLACE FUNCTION app.usage_draw(p_owner uuid, p_stripe smallint, p_now timestamptz, p_allowances jsonb, p_calls jsonb)
RETURNS TABLE (verdict text, left_tokens bigint, left_cost bigint, left_requests bigint)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    v_keys  uuid[] := ARRAY(SELECT (x ->> 'id')::uuid FROM jsonb_array_elements(p_allowances) AS x);
    v_org   uuid;
    v_call  jsonb;
    v_need  bigint[];
    v_floor bigint[];
    v_one   record;
    v_state text[] := '{}';
    v_t     bigint[] := '{}';
    v_c     bigint[] := '{}';
    v_r     bigint[] := '{}';
    v_ids   uuid[] := '{}';
BEGIN
    -- A call that is alone, as nearly all are, and has room: two short statements. Whatever is in its way is found below.
    IF jsonb_array_length(p_calls) = 1 THEN
        v_org := p_allowances #>> '{0,org}';
        v_call := p_calls -> 0;
        v_need := translate(v_call ->> 'need', '[]', '{}');
        v_floor := translate(v_call ->> 'floor', '[]', '{}');
        UPDATE app.usage_allowances k SET calls = k.calls + 1, held_tokens = k.held_tokens + v_need[1],
            held_cost = k.held_cost + v_need[2], held_requests = k.held_requests + v_need[3]
        WHERE k.org_id = v_org AND k.id = v_keys[1] AND k.ended_at IS NULL AND k.expires_at > p_now
          AND (k.tokens IS NULL OR k.tokens - k.spent_tokens - k.held_tokens >= v_need[1])
          AND k.cost_micro_usd - k.spent_cost - k.held_cost >= v_need[2]
          AND (k.requests IS NULL OR k.requests - k.spent_requests - k.held_requests >= v_need[3])
        RETURNING k.* INTO v_one;
        IF FOUND THEN
            INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at,
                day, kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units,
                floor_cost, allowance_id)
            VALUES ((v_call ->> 'id')::uuid, v_org, p_owner, v_one.user_id, v_one.api_key_id, v_one.source,
                v_call ->> 'provider', v_call ->> 'model', v_one.admitted_at, v_one.day, p_now, p_stripe, v_need[1], v_need[2],
                v_need[3], v_floor[1], v_floor[2], v_floor[3], v_floor[4], v_floor[5], v_keys[1]);
            verdict := 'held';
            left_tokens := v_one.tokens - v_one.spent_tokens - v_one.held_tokens + v_need[1];
            left_cost := v_one.cost_micro_usd - v_one.spent_cost - v_one.held_cost + v_need[2];
            left_requests := v_one.requests - v_one.spent_requests - v_one.held_requests + v_need[3];
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;

    FOR v_one IN
        SELECT x.a, k.ended_at, k.expires_at, k.tokens - k.spent_tokens - k.held_tokens AS t,
               k.cost_micro_usd - k.spent_cost - k.held_cost AS c, k.requests - k.spent_requests - k.held_requests AS r
        FROM jsonb_to_recordset(p_allowances) AS x(a integer, org uuid, id uuid)
        JOIN app.usage_allowances k ON k.org_id = x.org AND k.id = x.id AND k.id = ANY (v_keys)
        ORDER BY k.id FOR UPDATE OF k
    LOOP
        v_state[v_one.a] := CASE WHEN v_one.ended_at IS NOT NULL THEN 'ended' WHEN v_one.expires_at <= p_now THEN 'expired' ELSE 'held' END;
        v_t[v_one.a] := v_one.t;
        v_c[v_one.a] := v_one.c;
        v_r[v_one.a] := v_one.r;
    END LOOP;

    FOR v_one IN
        SELECT x.id, x.a, x.need FROM jsonb_to_recordset(p_calls) AS x(n integer, id uuid, a integer, need bigint[]) ORDER BY x.n
    LOOP
        verdict := coalesce(v_state[v_one.a], 'unknown');
        left_tokens := v_t[v_one.a];
        left_cost := v_c[v_one.a];
        left_requests := v_r[v_one.a];
        IF verdict = 'held' THEN
            IF v_one.need[1] > left_tokens OR v_one.need[2] > left_cost OR v_one.need[3] > left_requests THEN
                verdict := 'full';
            ELSE
                v_t[v_one.a] := left_tokens - v_one.need[1];
                v_c[v_one.a] := left_cost - v_one.need[2];
                v_r[v_one.a] := left_requests - v_one.need[3];
                v_ids := v_ids || v_one.id;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;

    WITH admitted AS (
        SELECT c.id AS call, c.provider, c.model, c.need, c.floor, k.*
        FROM jsonb_to_recordset(p_calls) AS c(id uuid, a integer, provider text, model text, need bigint[], floor bigint[])
        JOIN jsonb_to_recordset(p_allowances) AS x(a integer, org uuid, id uuid) ON x.a = c.a
        JOIN app.usage_allowances k ON k.org_id = x.org AND k.id = x.id AND k.id = ANY (v_keys)
        WHERE c.id = ANY (v_ids)
    ),
    held AS (
        INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at, day,
            kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units, floor_cost,
            allowance_id)
        SELECT call, org_id, p_owner, user_id, api_key_id, source, provider, model, admitted_at, day, p_now, p_stripe,
               need[1], need[2], need[3], floor[1], floor[2], floor[3], floor[4], floor[5], id
        FROM admitted ORDER BY call
    )
    UPDATE app.usage_allowances k SET calls = k.calls + s.n, held_tokens = k.held_tokens + s.t,
        held_cost = k.held_cost + s.c, held_requests = k.held_requests + s.r
    FROM (SELECT id, count(*) AS n, sum(need[1]) AS t, sum(need[2]) AS c, sum(need[3]) AS r FROM admitted GROUP BY id) AS s
    WHERE k.id = s.id AND k.id = ANY (v_keys);
END;
$$;

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
    paid AS (
        UPDATE app.usage_allowances a SET
            calls = a.calls - d.calls, held_tokens = a.held_tokens - d.held_t, held_cost = a.held_cost - d.held_c,
            held_requests = a.held_requests - d.held_r, spent_tokens = a.spent_tokens + d.used_t,
            spent_cost = a.spent_cost + d.used_c, spent_requests = a.spent_requests + d.used_r,
            settled_at = CASE WHEN a.ended_at IS NOT NULL AND a.calls = d.calls THEN p_now END
        FROM drawn d JOIN locked ON locked.id = d.id
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

-- Ends holds that are not there: the database lost them when it was cut off itself, because holds do not wait for the disk.
-- They are written once more as they were, but for what they held of tokens and cost, and end as ever. One that was booked
-- for its silence stays booked as it is. Answers how many ended.
--
-- p_entries: those of app.usage_settle with what was held: {user, key, source, at, day} or {allowance}, and {provider, model,
-- requests}.
CREATE FUNCTION app.usage_settle_lost(p_owner uuid, p_stripe smallint, p_now timestamptz, p_entries jsonb) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_lost uuid[];
BEGIN
    WITH lost AS (
        INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at, day,
            kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units, floor_cost,
            allowance_id)
        SELECT x.id, x.org, p_owner, coalesce(a.user_id, x."user"), coalesce(a.api_key_id, x.key), coalesce(a.source, x.source),
               x.provider, x.model, coalesce(a.admitted_at, x.at), coalesce(a.day, x.day), p_now, p_stripe, 0, 0, x.requests,
               0, 0, 0, 0, 0, CASE WHEN a.settled_at IS NULL THEN a.id END
        FROM jsonb_to_recordset(p_entries) AS x(id uuid, org uuid, released boolean, "user" uuid, key uuid, source text,
            provider text, model text, at timestamptz, day date, requests bigint, allowance uuid)
        JOIN app.organizations o ON o.id = x.org
        LEFT JOIN app.usage_allowances a ON a.org_id = x.org AND a.id = x.allowance
        WHERE NOT x.released AND coalesce(a.source, x.source) IS NOT NULL
          AND NOT EXISTS (SELECT FROM app.usage_bookings b WHERE b.reservation_id = x.id)
        ORDER BY x.id
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    )
    SELECT array_agg(id) INTO v_lost FROM lost;
    UPDATE app.usage_allowances a SET calls = a.calls + s.calls, held_requests = a.held_requests + s.requests
    FROM (
        SELECT allowance_id, count(*) AS calls, sum(requests) AS requests FROM app.usage_holds
        WHERE id = ANY (v_lost) AND allowance_id IS NOT NULL GROUP BY allowance_id
    ) AS s
    WHERE a.id = s.allowance_id;
    INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
        held_tokens, held_cost_micro_usd, held_requests)
    SELECT h.org_id, holder, h.day, h.stripe, 0, 0, 0, 0, 0, sum(h.requests)
    FROM app.usage_holds h
    CROSS JOIN LATERAL (VALUES ('org'), ('user:' || h.user_id), ('key:' || h.api_key_id)) AS holders (holder)
    WHERE h.id = ANY (v_lost) AND h.allowance_id IS NULL AND holder IS NOT NULL
    GROUP BY h.org_id, holder, h.day, h.stripe ORDER BY h.org_id, holder, h.day, h.stripe
    ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET held_requests = n.held_requests + excluded.held_requests;
    RETURN app.usage_settle(p_now, p_entries);
END;
$$;
COMMENT ON FUNCTION app.usage_settle_lost IS 'Books holds that the database has lost; see the migration.';
