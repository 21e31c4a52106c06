import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import type { Verdict } from '../sending/attempts.ts';

/** The code of an answer of the HTTP Event Collector that has accepted all events. */
const SUCCESS = 0;

/** Records as events of Splunk's HTTP Event Collector: one object for each, one after the other. */
export const splunkEvents = (lines: readonly { line: string; timestamp: Date }[]): string =>
  lines
    .map(
      ({ line, timestamp }) =>
        `{"time":${(timestamp.getTime() / 1_000).toFixed(3)},"source":"platform:activity","sourcetype":"_json",` +
        `"event":${line.trimEnd()}}\n`,
    )
    .join('');

/** Whether the collector says in the body that it has accepted the events: its status alone does not tell. */
export function isAcceptedBySplunk(answer: OutboundResponse): Verdict {
  if (!answer.isOk) return { isDelivered: false, error: null };
  return codeOf(answer) === SUCCESS
    ? { isDelivered: true, error: null }
    : { isDelivered: false, error: 'not_accepted' };
}

function codeOf({ body }: OutboundResponse): unknown {
  try {
    const answer: unknown = JSON.parse(body.toString('utf8'));
    return typeof answer === 'object' && answer !== null && 'code' in answer ? answer.code : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
