-- A call whose lease was taken from its process before it was written down holds nothing; it is one call all the same
-- when it is booked.
DO $$
DECLARE
    body text := pg_get_functiondef('app.usage_settle(timestamptz, jsonb)'::regprocedure);
    one constant text := 'CASE WHEN allowance_id IS NULL THEN requests ELSE greatest(requests, 1) END';
BEGIN
    body := replace(body, 'provider_slug, model, requests,
               used[1]', 'provider_slug, model, ' || one || ',
               used[1]');
    body := replace(body, 'stripe, sum(requests), sum(used[1])', 'stripe, sum(' || one || '), sum(used[1])');
    body := replace(body, 'coalesce(sum(requests) FILTER', 'coalesce(sum(' || one || ') FILTER');
    body := replace(body, 'ELSE requests END AS used_r', 'ELSE ' || one || ' END AS used_r');
    IF array_length(string_to_array(body, one), 1) <> 5 THEN
        RAISE EXCEPTION 'app.usage_settle is not what it was';
    END IF;
    EXECUTE body;
END;
$$;
