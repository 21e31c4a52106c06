import type { CallEnd } from './action-calls.ts';
import type { ShownRequest } from './shown-request.ts';
import type { WholeResult } from './whole-results.ts';

/** How an execution ended. */
export interface ToolActionResult extends Omit<CallEnd, 'whole'> {
  orgId: string;
  toolInstanceId: string;
  action: string;
  /** What would be sent; `null` if it was sent. */
  request: ShownRequest | null;
  confirmation: string | null;
  confirmationExpiresAt: Date | null;
  /** Where the whole of a result is that is cut; `null` if it is not. */
  wholeResult: WholeResult | null;
}
