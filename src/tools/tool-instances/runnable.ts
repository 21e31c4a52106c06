import type { Tool } from '../../generated/prisma/client.ts';
import { conflict } from '../../kernel/errors.ts';

/** Whether an instance runs: it must be active, and its tool not disabled. @throws RESOURCE_CONFLICT */
export function demandRunnable(
  { id, isActive }: { id: string; isActive: boolean },
  tool: Pick<Tool, 'id' | 'status'>,
): void {
  if (!isActive) throw conflict('tool_instance', id, 'instance_inactive', 'The tool instance is inactive.');
  if (tool.status === 'disabled')
    throw conflict('tool', tool.id, 'tool_disabled', `The tool '${tool.id}' is disabled: its instances do not run.`);
}
