import type { CallEnd } from './action-calls.ts';
import type { ShownRequest } from './shown-request.ts';

/** How an execution ended. */
export interface ToolActionResult extends CallEnd {
  orgId: string;
  toolInstanceId: string;
  action: string;
  /** What would be sent; `null` if it was sent. */
  request: ShownRequest | null;
  confirmation: string | null;
  confirmationExpiresAt: Date | null;
}
