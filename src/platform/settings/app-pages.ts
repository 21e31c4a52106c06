import { z } from 'zod';
import type { SettingKind } from '../../setting.ts';

/** What each page of a front end shows, by the names that stand in the pattern of its address. */
const placeholders = {
  organization: ['org_id'],
  members: ['org_id'],
  workspace: ['org_id', 'workspace_id'],
  deployments: ['org_id', 'workspace_id', 'environment_id', 'app_id'],
  tool_instance: ['org_id', 'workspace_id', 'tool_instance_id'],
  secret: ['org_id', 'secret_id'],
  api_tokens: ['org_id'],
  app_tokens: ['org_id', 'app_id'],
  provider_account: ['org_id', 'provider_account_id'],
  models: ['org_id', 'logical_model_id'],
  identity_provider: ['org_id', 'identity_provider_id'],
  webhook: ['org_id', 'webhook_id'],
  audit_stream: ['org_id', 'audit_stream_id'],
  account: [],
} as const satisfies Record<string, readonly string[]>;

/** A page that a notification leads to. */
export type PageKind = keyof typeof placeholders;

/** The address of each page below `APP_URL`. */
export type AppPages = Readonly<Record<PageKind, string>>;

/** Where a front end has its pages if `APP_PAGES` does not say so. */
const defaults: AppPages = {
  organization: '/orgs/{org_id}',
  members: '/orgs/{org_id}/members',
  workspace: '/orgs/{org_id}/workspaces/{workspace_id}',
  deployments: '/orgs/{org_id}/workspaces/{workspace_id}/environments/{environment_id}/deployments',
  tool_instance: '/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{tool_instance_id}',
  secret: '/orgs/{org_id}/secrets/{secret_id}',
  api_tokens: '/orgs/{org_id}/api-tokens',
  app_tokens: '/orgs/{org_id}/apps/{app_id}/tokens',
  provider_account: '/orgs/{org_id}/provider-accounts/{provider_account_id}',
  models: '/orgs/{org_id}/models',
  identity_provider: '/orgs/{org_id}/identity-providers/{identity_provider_id}',
  webhook: '/orgs/{org_id}/webhooks/{webhook_id}',
  audit_stream: '/orgs/{org_id}/audit-streams/{audit_stream_id}',
  account: '/account',
};

export const pageKinds = Object.keys(defaults) as PageKind[];

const PLACEHOLDER = /\{([^{}]*)\}/g;
const PATTERN = /^\/(?!\/)[^\s\\<>"^`|]*$/;

/** Puts values into a pattern. */
export const filledIn = (pattern: string, valueFor: (name: string) => string): string =>
  pattern.replace(PLACEHOLDER, (_whole, name: string) => encodeURIComponent(valueFor(name)));

const isPattern = (kind: PageKind, pattern: string): boolean => {
  const known: readonly string[] = [...placeholders[kind], 'notification_id'];
  const names = [...pattern.matchAll(PLACEHOLDER)].map(([, name]) => name!);
  return (
    PATTERN.test(pattern) && names.every((name) => known.includes(name)) && !/[{}]/.test(filledIn(pattern, () => ''))
  );
};

/** `workspace=/w/{workspace_id},account=/me`: only the pages that are elsewhere than by default. */
export const appPages: SettingKind<AppPages> = {
  mustBe:
    `pages like workspace=/w/{workspace_id} between commas: a kind (${pageKinds.join(', ')}), and a path with names ` +
    'that the kind has',
  schema: z.string().transform((value, context) => {
    const pages: Record<PageKind, string> = { ...defaults };
    const given = value.split(',').filter((item) => item.trim() !== '');
    const named = new Set<string>();
    for (const item of given) {
      const at = item.indexOf('=');
      const [kind, pattern] = [item.slice(0, at).trim(), item.slice(at + 1).trim()];
      const page = pageKinds.find((known) => known === kind);
      if (page === undefined || named.has(kind) || !isPattern(page, pattern)) context.addIssue(`a wrong page: ${item}`);
      else pages[page] = pattern;
      named.add(kind);
    }
    return pages;
  }),
};
