/** The logical models of an organization, as `id`, `model_type` and `enabled`: SQL for statements of groups above. */
export const modelsOf = (orgId: string): string =>
  `select m.logical_model_id as id, m.model_type, m.enabled from logical_models m where m.org_id = ${orgId}`;
