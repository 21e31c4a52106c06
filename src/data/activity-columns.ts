/** Columns of `activity` that are written, in the order of the insert. */
export const columns = {
  id: 'text',
  timestamp: 'timestamptz',
  trace_id: 'text',
  org_id: 'text',
  user_id: 'text',
  workspace_id: 'text',
  namespace_id: 'text',
  environment_id: 'text',
  app_id: 'text',
  principal_type: 'text',
  principal_id: 'text',
  token_id: 'text',
  token_type: 'text',
  method: 'text',
  path: 'text',
  resource_type: 'text',
  resource_id: 'text',
  action: 'text',
  status_code: 'int',
  success: 'boolean',
  error_code: 'text',
  duration_ms: 'int',
  execution_id: 'text',
  augmentation_id: 'text',
  stages_completed: 'int',
  total_stages: 'int',
  token_usage: 'jsonb',
  metadata: 'jsonb',
} as const;

/** A record as it is written. */
export type ActivityRow = Record<keyof typeof columns, unknown>;
