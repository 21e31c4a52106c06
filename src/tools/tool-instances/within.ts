import { OutboundError } from '../../platform/outbound/outbound-error.ts';

/**
 * What work gives, if that is in time. A refresh of the connection that takes longer goes on: stopping it could lose
 * the new tokens, and whoever needs them next finds them.
 * @throws OutboundError `timeout`
 */
export async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new OutboundError('timeout')), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
