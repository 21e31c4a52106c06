import { MODELS, STATUS } from './models/logical-model.reads.ts';

/** The logical models of an organization, as `id`, `model_type` and `enabled`: SQL for statements of groups above. */
export const modelsOf = (orgId: string): string =>
  `select m.logical_model_id as id, m.model_type, m.enabled from logical_models m where m.org_id = ${orgId}`;

/** Whether none of the targets of a model is healthy, or an administrator says so. */
export const isUnavailable = (orgId: string, logicalModelId: string): string =>
  `exists (select from ${MODELS} where t.org_id = ${orgId} and t.logical_model_id = ${logicalModelId}
    and ${STATUS} = 'unavailable')`;

/** Whether a provider account that is in use has this status. */
export const accountIs = (id: string, status: string): string =>
  `exists (select from provider_accounts a where a.id = ${id} and a.enabled and a.status = '${status}')`;

/** What a workspace used of models, by quarters of an hour: SQL for statements of groups above. */
export const usageOf = (workspaceId: string): string =>
  `select s.start, s.logical_model_id, s.provider_account_id, s.model_name, s.requests, s.errors, s.input_tokens,
    s.output_tokens, s.cost from model_usage_sums s where s.workspace_id = ${workspaceId}`;

/** The models that a workspace may use, with the limits: SQL for statements of groups above. */
export const entitlementsOf = (orgId: string, workspaceId: string): string =>
  `select e.logical_model_id, e.workspace_limits, e.allowed_step_types, e.allowed_endpoints, e.allowed_purposes,
    e.enabled from model_entitlements e where e.org_id = ${orgId} and e.workspace_id = ${workspaceId}`;
