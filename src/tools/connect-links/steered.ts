import type { ConnectionTarget } from '../connections/connection-target.ts';

/** An address whose host is in its own words, whatever an instance fills in behind it. */
const OWN_HOST = /^https?:\/\/[^/?#{}]+(?:[/?#]|$)/i;

/**
 * Whether who sets up an instance decides where it sends the credentials of its end users: by an action of its own, or
 * because the tool has the instance say the host.
 */
export function isSteered({ instance, tool }: ConnectionTarget): boolean {
  const custom = instance.customActions as readonly object[] | null;
  const actions = tool.actionSchemas as readonly { url_template?: unknown }[];
  return (
    (custom ?? []).length > 0 ||
    actions.some(({ url_template: address }) => typeof address === 'string' && !OWN_HOST.test(address))
  );
}
