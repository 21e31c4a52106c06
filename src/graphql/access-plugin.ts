import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { Actor } from '../access/caller.ts';
import type { Permission } from '../access/permissions.ts';
import { type Place, placeOfArgs, placeOfRow } from '../access/place.ts';
import { sessionOf } from '../access/principal.ts';
import { grants, mayEnter, type TokenGrant } from '../access/token-grant.ts';
import type { Context } from './context.ts';
import { type ErrorCode, forbidden, unauthenticated } from './errors.ts';

/**
 * What a field asks of its caller:
 * - `public`: nothing, strangers too; `signedIn`: any caller who is known (the field shows the caller's own things); `session`: one who
 *   has signed in, because it is about the account itself: no API token;
 * - `organization` / `workspace`: a permission there; which one it is comes from the arguments `orgId` and `workspaceId` (or `id` of
 *   the workspace's own operations), or from the object that the field belongs to;
 * - `service`: a permission that the service asks for, because where it is needed depends on the row, on the input or on the caller;
 *   beside `organization` or `workspace`, what the service asks for on top of that. A token must grant it even where the service would let
 *   its user pass without, as with what is the user's own;
 * - `inherited`: whoever could reach the parent object may see it.
 */
export type Requirement =
  | 'public'
  | 'signedIn'
  | 'session'
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
      /** Errors that cannot be told from the form of the field, for the OpenAPI document: a conflict of a query, an upstream service. */
      mayFail?: readonly ErrorCode[];
    }
  }
}

const ROOTS = new Set(['Query', 'Mutation', 'Subscription']);

type Ids = Place & { id?: string | undefined; orgId?: string | undefined; workspaceId?: string | undefined };
/** Asks what a field asks of its caller; kept as `extensions.gate` of the field, `null` where it asks nothing. */
export type Gate = (context: Context, parent: Ids, args: Ids) => unknown;

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
        gate: gateOf(fieldConfig),
        isCredential: (fieldConfig.pothosOptions as { isCredential?: boolean }).isCredential ?? false,
        mayFail: (fieldConfig.pothosOptions as { mayFail?: readonly ErrorCode[] }).mayFail ?? [],
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
  const ask = questionOf(requirement, fieldConfig);
  const isRoot = ROOTS.has(fieldConfig.parentType);
  const service = typeof requirement === 'object' ? requirement.service : undefined;
  const named = permissionOf(requirement) ?? 'organization:access';
  return (context, parent, args) => {
    const { principal } = context.caller;
    if (!principal) throw unauthenticated();
    if (!principal.token) return ask(context, parent, args);
    if (requirement === 'session') sessionOf(context.actor);
    if (isRoot) admitToken(principal.token, context.actor, named);
    return askToken(principal.token, service, () => ask(context, parent, args));
  };
}

/** @throws FORBIDDEN with the operation's permission, when the token's `endpoint_paths` do not have the door that the request came in by */
function admitToken(token: TokenGrant, { request }: Actor, named: Permission): void {
  if (!mayEnter(token, request.door)) throw forbidden(named);
}

/** What the service asks for is asked of the token last: whether it may be here at all comes first. */
async function askToken(token: TokenGrant, service: Permission | undefined, ask: () => unknown): Promise<void> {
  await ask();
  if (service && !grants(token, service)) throw forbidden(service);
}

/** What is asked about the place that the arguments or the parent name. */
function questionOf<Types extends SchemaTypes>(
  requirement: Exclude<Requirement, 'inherited' | 'public'>,
  fieldConfig: PothosOutputFieldConfig<Types>,
): Gate {
  const { parentType } = fieldConfig;
  const isRoot = ROOTS.has(parentType);
  const [resource] = (permissionOf(requirement) ?? '').split(':');
  // only tokens are restricted to places
  const placeFor = ({ principal }: Actor, parent: Ids, args: Ids) =>
    principal.token ? (isRoot ? placeOfArgs(args, resource) : placeOfRow(parent)) : undefined;
  if (requirement === 'signedIn' || requirement === 'session') return () => undefined;
  if ('organization' in requirement)
    return ({ actor, services }, parent, args) => {
      const orgId = isRoot ? (args.orgId ?? args.id) : parentType === 'Organization' ? parent.id : parent.orgId;
      const place = placeFor(actor, parent, args);
      return services.access.requireOrganization(actor, must(orgId, fieldConfig), requirement.organization, place);
    };
  if ('workspace' in requirement)
    return ({ actor, services }, parent, args) => {
      const orgId = must(isRoot ? args.orgId : parent.orgId, fieldConfig);
      const workspaceId = isRoot
        ? (args.workspaceId ?? args.id)
        : parentType === 'Workspace'
          ? parent.id
          : parent.workspaceId;
      const place = placeFor(actor, parent, args);
      return services.access.requireWorkspace(
        actor,
        orgId,
        must(workspaceId, fieldConfig),
        requirement.workspace,
        place,
      );
    };
  return ({ actor, services }, _parent, args) => {
    const { token } = actor.principal;
    // for users the service decides; a token's restrictions hold wherever it looks
    return token
      ? services.access.requireToken(actor, requirement.service, { orgId: token.orgId, workspaceId: args.workspaceId })
      : undefined;
  };
}

function must<Types extends SchemaTypes>(id: string | undefined, fieldConfig: PothosOutputFieldConfig<Types>): string {
  if (id) return id;
  throw new Error(
    `${fieldConfig.parentType}.${fieldConfig.name} asks for a permission but names no organization or workspace.`,
  );
}

SchemaBuilder.registerPlugin('access', AccessPlugin);
