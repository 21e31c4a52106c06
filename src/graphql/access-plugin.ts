import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { Permission } from '../access/permissions.ts';
import type { Context } from './context.ts';
import { unauthenticated } from './errors.ts';

/**
 * What a field asks of its caller:
 * - `public`: nothing, strangers too; `signedIn`: any caller who is known (the field shows the caller's own things);
 * - `organization` / `workspace`: a permission there; which one it is comes from the arguments `orgId` and `workspaceId` (or `id` of
 *   the workspace's own operations), or from the object that the field belongs to;
 * - `service`: a permission that the service asks for, because where it is needed depends on the row, on the input or on the caller;
 *   beside `organization` or `workspace`, what the service asks for on top of that;
 * - `inherited`: whoever could reach the parent object may see it.
 */
export type Requirement =
  | 'public'
  | 'signedIn'
  | 'inherited'
  | { organization: Permission; service?: Permission }
  | { workspace: Permission; service?: Permission }
  | { service: Permission };

/** The permission that a field is about, where it has one: the one that a refusal names. */
export function permissionOf(requirement: Requirement | undefined): Permission | null {
  if (typeof requirement !== 'object') return null;
  if (requirement.service) return requirement.service;
  return 'organization' in requirement
    ? requirement.organization
    : 'workspace' in requirement
      ? requirement.workspace
      : null;
}

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      access: AccessPlugin<Types>;
    }
    export interface FieldOptions {
      /** What the field asks of its caller. Without it a field that is no plain column does not build. */
      authorize?: Requirement;
      /** Takes a password or a single-use token: at most one such field per GraphQL request, so that aliases cannot guess in bulk. */
      isCredential?: boolean;
    }
  }
}

const ROOTS = new Set(['Query', 'Mutation', 'Subscription']);

type Ids = { id?: string; orgId?: string; workspaceId?: string };
type Gate = (context: Context, parent: Ids, args: Ids) => unknown;

/**
 * Denies by default: a field of a root type, one with a resolver of its own and one that leads to another object do not build unless
 * they say what they ask of their caller. Columns that are exposed as they are belong to the object that was reached.
 */
export class AccessPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(fieldConfig: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    const requirement = requirementOf(fieldConfig);
    const isPlain = fieldConfig.extensions?.pothosExposedField !== undefined && !ROOTS.has(fieldConfig.parentType);
    if (requirement === undefined && !isPlain && !isGenerated(fieldConfig)) {
      throw new Error(
        `${fieldConfig.parentType}.${fieldConfig.name} does not say what it asks of its caller: give it 'authorize'.`,
      );
    }
    return {
      ...fieldConfig,
      extensions: {
        ...fieldConfig.extensions,
        access: requirement ?? 'inherited',
        isCredential: (fieldConfig.pothosOptions as { isCredential?: boolean }).isCredential ?? false,
      },
    };
  }

  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    if (fieldConfig.parentType === 'Subscription') return resolver; // asked in wrapSubscribe, before the stream starts
    const gate = gateOf(fieldConfig);
    if (!gate) return resolver;
    return (parent, args, context, info) => {
      const passed = gate(context as unknown as Context, parent as Ids, args as Ids);
      return passed instanceof Promise
        ? passed.then(() => resolver(parent, args, context, info))
        : resolver(parent, args, context, info);
    };
  }

  override wrapSubscribe(
    subscriber: GraphQLFieldResolver<unknown, Types['Context'], object> | undefined,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> | undefined {
    const gate = gateOf(fieldConfig);
    if (!gate || !subscriber) return subscriber;
    return async (parent, args, context, info) => {
      await gate(context as unknown as Context, parent as Ids, args as Ids);
      return subscriber(parent, args, context, info);
    };
  }
}

function requirementOf<Types extends SchemaTypes>(
  fieldConfig: PothosOutputFieldConfig<Types>,
): Requirement | undefined {
  return (fieldConfig.pothosOptions as { authorize?: Requirement }).authorize;
}

/** Fields of connections and edges are made by `connections.ts` around objects that were already reached. */
function isGenerated<Types extends SchemaTypes>(fieldConfig: PothosOutputFieldConfig<Types>): boolean {
  return fieldConfig.extensions?.partOfConnection === true || fieldConfig.kind === 'Interface';
}

function gateOf<Types extends SchemaTypes>(fieldConfig: PothosOutputFieldConfig<Types>): Gate | null {
  const requirement = requirementOf(fieldConfig);
  if (requirement === undefined || requirement === 'inherited' || requirement === 'public') return null;
  const { parentType } = fieldConfig;
  if (requirement === 'signedIn' || !('organization' in requirement || 'workspace' in requirement)) {
    return (context) => {
      if (!context.caller.principal) throw unauthenticated();
    };
  }
  const isRoot = ROOTS.has(parentType);
  if ('organization' in requirement) {
    return (context, parent, args) => {
      const orgId = isRoot ? (args.orgId ?? args.id) : parentType === 'Organization' ? parent.id : parent.orgId;
      return context.services.access.requireOrganization(
        context.actor,
        must(orgId, fieldConfig),
        requirement.organization,
      );
    };
  }
  return (context, parent, args) => {
    const orgId = isRoot ? args.orgId : parent.orgId;
    const workspaceId = isRoot
      ? (args.workspaceId ?? args.id)
      : parentType === 'Workspace'
        ? parent.id
        : parent.workspaceId;
    return context.services.access.requireWorkspace(
      context.actor,
      must(orgId, fieldConfig),
      must(workspaceId, fieldConfig),
      requirement.workspace,
    );
  };
}

function must<Types extends SchemaTypes>(id: string | undefined, fieldConfig: PothosOutputFieldConfig<Types>): string {
  if (id) return id;
  throw new Error(
    `${fieldConfig.parentType}.${fieldConfig.name} asks for a permission but names no organization or workspace.`,
  );
}

SchemaBuilder.registerPlugin('access', AccessPlugin);
