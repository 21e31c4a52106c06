import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { pageOf } from './common.ts';

const PAGE = `select id, timestamp, trace_id, user_id, workspace_id, app_id, principal_type, principal_id, token_id,
    token_type, method, path, resource_type, resource_id, action, status_code, success, error_code, duration_ms,
    execution_id, augmentation_id, stages_completed, total_stages, token_usage, metadata
  from activity where org_id = $1 order by timestamp desc, id desc limit $2`;
const LATEST = `activity_fold f cross join lateral
  (select * from activity r where (r.xid, r.id) >= (f.xid, f.record_id) order by r.xid, r.id limit 1000000000) t`;
const TOTAL = `select ((select coalesce(sum(requests), 0) from activity_sums
    where org_id = $1 and scope = 'organization' and user_id = '' and span = 'month total')
  + (select count(*) from ${LATEST} where t.org_id = $1))::int as n`;
const SUMMARY = `select action, resource_type as type, success, count(*)::int as requests,
    sum(duration_ms)::int as duration, coalesce(sum((token_usage ->> 'total')::int), 0)::int as tokens
  from activity where org_id = $1 and workspace_id = $2 and timestamp >= $3 group by 1, 2, 3`;

interface Kind {
  action: string;
  type: string | null;
  success: boolean;
  requests: number;
  duration: number;
  tokens: number;
}

/** The hand-written list, with a total from the sums by month, and a summary that adds up the records of its hours. */
export function addActivity(server: FastifyInstance, pool: Pool): void {
  server.get<{ Params: { org: string }; Querystring: { limit?: string } }>(
    '/v1/orgs/:org/activity',
    async (request) => {
      const { org } = request.params;
      const limit = Number(request.query.limit ?? 50);
      const [page, total] = await Promise.all([
        pool.query<{ id: string; timestamp: Date }>({ name: 'activity', text: PAGE, values: [org, limit + 1] }),
        pool.query<{ n: number }>({ name: 'activity total', text: TOTAL, values: [org] }),
      ]);
      const last = page.rows.length > limit ? page.rows[limit - 1]! : null;
      const cursor = last && Buffer.from(`${last.timestamp.toISOString()} ${last.id}`).toString('base64url');
      return pageOf('activities', page.rows, limit, total.rows[0]!.n, cursor);
    },
  );
  server.get<{ Params: { org: string; workspace: string }; Querystring: { hours?: string } }>(
    '/v1/orgs/:org/workspaces/:workspace/activity/summary',
    async (request) => {
      const { org, workspace } = request.params;
      const end = new Date();
      const start = new Date(end.getTime() - Number(request.query.hours ?? 24) * 3_600_000);
      const { rows } = await pool.query<Kind>({
        name: 'activity summary',
        text: SUMMARY,
        values: [org, workspace, start],
      });
      const counts = { total: 0, successful: 0, duration: 0, tokens: 0 };
      const byAction: Record<string, number> = {};
      const byResource: Record<string, number> = {};
      for (const { action, type, success, requests, duration, tokens } of rows) {
        counts.total += requests;
        if (success) counts.successful += requests;
        counts.duration += duration;
        counts.tokens += tokens;
        byAction[action] = (byAction[action] ?? 0) + requests;
        if (type) byResource[type] = (byResource[type] ?? 0) + requests;
      }
      return {
        total_requests: counts.total,
        successful_requests: counts.successful,
        failed_requests: counts.total - counts.successful,
        avg_duration_ms: counts.total === 0 ? 0 : counts.duration / counts.total,
        total_tokens_used: counts.tokens,
        by_action: byAction,
        by_resource: byResource,
        start_time: start,
        end_time: end,
      };
    },
  );
}
