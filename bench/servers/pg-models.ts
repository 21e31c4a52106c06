import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { pageOf } from './common.ts';

const HEALTHY = `t.enabled and t.consecutive_failures < 3 and a.enabled and a.status = 'active'`;
const PAGE = `select m.id, m.logical_model_id, m.org_id, m.name, m.description, m.model_type, m.created_by,
    m.created_at, m.updated_at, m.capabilities, m.default_temperature, m.default_top_p, m.default_max_tokens,
    m.fallback_chain, m.enabled, m.tags, m.constraints,
    x.targets, x.total as total_targets_count, x.healthy as healthy_targets_count,
    case when m.status_by_hand is not null then m.status_by_hand
      when x.total = x.healthy then 'active' when x.healthy > 0 then 'degraded' else 'unavailable' end as status
  from logical_models m cross join lateral (
    select coalesce(json_agg(json_build_object(
        'provider_account_id', t.provider_account_id, 'model_name', t.model_name, 'weight', t.weight,
        'priority', t.priority, 'enabled', t.enabled, 'consecutive_failures', t.consecutive_failures,
        'last_failure', t.last_failure, 'last_success', t.last_success,
        'temperature_override', t.temperature_override, 'max_tokens_override', t.max_tokens_override)
        order by t.position), '[]') as targets,
      count(*)::int as total, count(*) filter (where ${HEALTHY})::int as healthy
    from model_targets t join provider_accounts a on a.id = t.provider_account_id where t.model_id = m.id) x
  where m.org_id = $1 order by m.id desc limit $2`;
const TOTAL = 'select count(*)::int as n from logical_models where org_id = $1';

interface ModelRow {
  id: string;
  status: string;
  healthy_targets_count: number;
  total_targets_count: number;
  constraints: object;
}

const noConstraints = {
  data_residency: [],
  require_audit_log: false,
  max_cost_per_1k_tokens: null,
  max_latency_ms: null,
  allow_caching: null,
  cache_ttl_seconds: null,
};

const shown = ({ id: _id, constraints, ...row }: ModelRow) => ({
  ...row,
  constraints: { ...noConstraints, ...constraints },
  status_reason:
    row.status === 'active' ? null : `${row.healthy_targets_count} of ${row.total_targets_count} targets are healthy.`,
});

/** The hand-written list of logical models: two statements, with the targets as PostgreSQL JSON. */
export function addModels(server: FastifyInstance, pool: Pool): void {
  server.get<{ Params: { org: string }; Querystring: { limit?: string } }>(
    '/v1/orgs/:org/model-catalog',
    async (request) => {
      const limit = Number(request.query.limit ?? 50);
      const [page, total] = await Promise.all([
        pool.query<ModelRow>({ name: 'models', text: PAGE, values: [request.params.org, limit + 1] }),
        pool.query<{ n: number }>({ name: 'models total', text: TOTAL, values: [request.params.org] }),
      ]);
      const cursor = page.rows.length > limit ? Buffer.from(page.rows[limit - 1]!.id).toString('base64url') : null;
      return pageOf('models', page.rows.map(shown), limit, total.rows[0]!.n, cursor);
    },
  );
}
