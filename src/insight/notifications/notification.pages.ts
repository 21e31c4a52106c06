import type { Config } from '../../config.ts';
import type { Notification } from '../../generated/prisma/client.ts';
import { filledIn } from '../../platform/settings/app-pages.ts';
import { rules } from './rules.ts';

/** What the address of a page needs of a notification. */
export interface LinkedNotification
  extends Pick<
    Notification,
    'orgId' | 'workspaceId' | 'environmentId' | 'appId' | 'metadata' | 'sourceEvent' | 'actionUrl'
  > {
  /** `null` for one that is only mailed. */
  id: string | null;
}

/**
 * The pages that notifications lead to: those of the front end, or of the service. An address is made when somebody
 * looks, so notifications of before lead to where the front end is now.
 */
export class NotificationPages {
  readonly #config: Pick<Config, 'appUrl' | 'appPages'>;
  readonly #publicUrl: () => string;

  constructor(config: Pick<Config, 'appUrl' | 'appPages'>, publicUrl: () => string) {
    this.#config = config;
    this.#publicUrl = publicUrl;
  }

  /** The page of what a notification tells of; `null` if there is nothing to open. */
  urlOf(notification: LinkedNotification): string | null {
    const { appUrl, appPages } = this.#config;
    const page = rules.get(notification.sourceEvent)?.page;
    if (notification.actionUrl === null) return null;
    if (appUrl === undefined || page === undefined)
      return notification.id && `${this.#publicUrl()}/account/sign-in?notification=${notification.id}`;
    return `${appUrl}${filledIn(appPages[page], (name) => valueIn(notification, name))}`;
  }
}

/** A value for a name in the pattern of a page. */
function valueIn({ id, orgId, workspaceId, environmentId, appId, metadata }: LinkedNotification, name: string): string {
  const details = metadata as Readonly<Record<string, unknown>>;
  const known: Readonly<Record<string, unknown>> = {
    notification_id: id,
    org_id: orgId,
    workspace_id: workspaceId,
    environment_id: environmentId,
    app_id: appId,
    tool_instance_id: details.tool_instance_id,
  };
  const value = Object.hasOwn(known, name) ? known[name] : details.resource_id;
  return typeof value === 'string' ? value : '';
}
