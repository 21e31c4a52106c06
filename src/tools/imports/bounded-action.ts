import { checkConstraints } from '../../kernel/constraints.ts';
import { entriesOf, entryShapes } from '../tools/tool-shapes.ts';
import { Gap } from './references.ts';

/** The largest action that is made of an operation. What is larger is described less deeply. */
const MAX_BYTES = 8 * 1024;
const DEPTHS = [5, 2, 1, 0];

/**
 * The action that an operation becomes, in such a depth that it is not too large.
 * @param place of the operation
 * @param tell hears of what the action has less exactly
 * @param made in a depth
 * @throws Gap for what makes no action
 */
export function boundedAction(
  place: string,
  tell: (gap: Gap) => void,
  made: (depth: number, tell: (gap: Gap) => void) => Record<string, unknown>,
): Record<string, unknown> {
  let action: Record<string, unknown> = {};
  for (const depth of DEPTHS) {
    const gaps: Gap[] = [];
    action = made(depth, (gap) => gaps.push(gap));
    if (Buffer.byteLength(JSON.stringify(action)) > MAX_BYTES && depth > 0) continue;
    if (depth < DEPTHS[0]!)
      gaps.push(new Gap('simplified', place, 'The action is large: what is nested deeply is not described.'));
    gaps.forEach(tell);
    break;
  }
  const [issue] = checkConstraints(action, { ...entriesOf(entryShapes.actionSchemas).item, maxBytes: MAX_BYTES });
  if (issue) {
    const kind = issue.type === 'too_long' && issue.path.length === 0 ? 'too_large' : 'invalid';
    throw new Gap(kind, place, `It makes no action: ${issue.path.join('.').slice(0, 200)} ${issue.msg.slice(0, 200)}`);
  }
  return action;
}
