import type { ObjectRef } from '@pothos/core';
import { type IdKind, resources } from '../kernel/resources.ts';
import { builder } from './builder.ts';
import { refersTo } from './references.ts';

type Types = typeof builder.$inferSchemaTypes;

interface InOrganization {
  id: string;
  orgId: string;
}

interface InWorkspace extends InOrganization {
  workspaceId: string;
}

interface Tracked {
  id: string;
  createdBy: string | null;
  createdAt: Date;
  updatedAt: Date;
}

const idOf = (kind: IdKind) => `Identifier, \`${resources[kind].prefix}_…\`.`;

/** The fields of a resource in an organization: `id` and `orgId`, with the organization. */
export function inOrganization(type: ObjectRef<Types, InOrganization>, kind: IdKind): void {
  builder.objectFields(type, (t) => ({
    id: t.exposeID('id', { description: idOf(kind) }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
  }));
  refersTo(type, { orgId: 'organization' });
}

/** The fields of a resource in a workspace: `id`, `orgId` and `workspaceId`, with their objects. */
export function inWorkspace(type: ObjectRef<Types, InWorkspace>, kind: IdKind): void {
  builder.objectFields(type, (t) => ({
    id: t.exposeID('id', { description: idOf(kind) }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
  }));
  refersTo(type, { orgId: 'organization' });
}

/** The fields of a resource in a namespace: those of a workspace, and `namespaceId`. */
export function inNamespace(type: ObjectRef<Types, InWorkspace & { namespaceId: string }>, kind: IdKind): void {
  inWorkspace(type, kind);
  builder.objectField(type, 'namespaceId', (t) => t.exposeID('namespaceId', { description: 'The namespace.' }));
  refersTo(type, { workspaceId: 'workspace', namespaceId: { kind: 'namespace', required: true } });
}

/** The fields of a resource in an app: those of a workspace, and `appId`. */
export function inApp(type: ObjectRef<Types, InWorkspace & { appId: string }>, kind: IdKind): void {
  inWorkspace(type, kind);
  builder.objectField(type, 'appId', (t) => t.exposeID('appId', { description: 'The app.' }));
  refersTo(type, { workspaceId: 'workspace' });
}

/** The fields of a resource in an app and a namespace: those of a workspace, `appId` and `namespaceId`. */
export function inAppAndNamespace(
  type: ObjectRef<Types, InWorkspace & { appId: string; namespaceId: string }>,
  kind: IdKind,
): void {
  inApp(type, kind);
  builder.objectField(type, 'namespaceId', (t) => t.exposeID('namespaceId', { description: 'The namespace.' }));
  refersTo(type, { appId: { kind: 'app', required: true }, namespaceId: { kind: 'namespace', required: true } });
}

/** A nullable time. */
export const optionalTime = (description: string) => ({ type: 'DateTime', nullable: true, description }) as const;

/** `createdBy` with the user, `createdAt` and `updatedAt`. */
export function tracked(
  type: ObjectRef<Types, Tracked>,
  {
    by = 'The user who created it.',
    at = 'When it was created.',
    changed = 'When it last changed.',
  }: { by?: string; at?: string; changed?: string } = {},
): void {
  builder.objectFields(type, (t) => ({
    createdBy: t.exposeID('createdBy', { nullable: true, description: by }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: at }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: changed }),
  }));
  refersTo(type, { createdBy: 'user' });
}
