import SchemaBuilder, {
  BasePlugin,
  type PothosOutputFieldConfig,
  type PothosOutputFieldType,
  type SchemaTypes,
} from '@pothos/core';
import type { GraphQLField, GraphQLFieldResolver } from 'graphql';
import { type StepUp, stepUpOf } from '../../access/step-up.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { PlacePart } from '../../kernel/checked-place.ts';
import { type ErrorCode, forbidden, unauthenticated } from '../../kernel/errors.ts';
import type { Permit } from '../../kernel/permit.ts';
import { type Place, placeOfArgs, placeOfRow } from '../../kernel/place.ts';
import { sessionOf } from '../../kernel/principal.ts';
import type { Permission } from '../../kernel/resources.ts';
import { RootPlace } from '../../kernel/root-place.ts';
import { grants, mayEnter, type TokenGrant } from '../../kernel/token-grant.ts';
import type { Context } from '../context.ts';
import type { ActivityLabel } from './activity-label.ts';

/**
 * What a field requires of its caller:
 * - `public`: nothing; anonymous callers too.
 * - `signedIn`: any authenticated caller (the field shows the caller's own data).
 * - `session`: a caller who has signed in, because the field is about the account itself. API tokens are refused, with
 *   the permission that is named here.
 * - `organization` / `workspace`: a permission there. A root field names them by the arguments `orgId` and
 *   `workspaceId`; with `by: 'id'`, the argument `id` is the organization or workspace itself. Other fields take them
 *   from their object. `in` names the part of the workspace that a root field is about, by `namespaceId`, `appId` or
 *   `environmentId`, or several parts: they must exist, which is checked last. The resolver of a root field gets the
 *   checked place as its parent. `stepUp` names what an organization may ask a fresh factor of a mutation for, beyond
 *   what its permission says.
 * - `service`: a permission that the service checks, because the place depends on the row, the input or the caller.
 *   Beside `organization` or `workspace`, it is an additional permission that the service checks. A token must grant it
 *   even if the service would admit its user without it, as with the user's own resources.
 * - `inherited`: everybody who can reach the parent object may see it.
 */
export type Requirement =
  | 'public'
  | 'signedIn'
  | { session: Permission }
  | 'inherited'
  | { organization: Permission; by?: 'id'; service?: Permission; stepUp?: StepUp }
  | { workspace: Permission; by?: 'id'; in?: PlacePart | readonly PlacePart[]; service?: Permission }
  | { service: Permission };

/** The permission of a field, which a refusal names; `null` if it has none. */
export function permissionOf(requirement: Requirement | undefined): Permission | null {
  if (typeof requirement !== 'object') return null;
  if ('session' in requirement) return null;
  if (requirement.service) return requirement.service;
  return 'organization' in requirement
    ? requirement.organization
    : 'workspace' in requirement
      ? requirement.workspace
      : null;
}

/** The same of a field of the schema. */
export const permissionOfField = ({ extensions }: GraphQLField<unknown, unknown>): Permission | null =>
  permissionOf((extensions.pothosOptions as { authorize?: Requirement } | undefined)?.authorize);

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      access: AccessPlugin<Types>;
    }
    export interface FieldOptions {
      /** What the field requires of its caller. Only plain columns may omit it; otherwise the schema does not build. */
      authorize?: Requirement;
      /**
       * Takes a password or a single-use token: at most one such field per GraphQL request, so that aliases cannot
       * guess in bulk.
       */
      isCredential?: boolean;
      /**
       * Errors that do not follow from the shape of the field, for the OpenAPI document: a conflict of a query, an
       * upstream service.
       */
      mayFail?: readonly ErrorCode[];
    }
  }
}

const ROOTS = new Set(['Query', 'Mutation', 'Subscription']);

type IdName = 'id' | 'orgId' | 'workspaceId' | `${PlacePart}Id`;
type Ids = Place & { [Name in IdName]?: string | undefined };
type FoundPermit = Permit | undefined;
/**
 * Checks what a field requires of its caller; stored in `extensions.gate` of the field, `null` if it requires nothing.
 * Returns what was found, if a permission was checked for a place.
 */
export type Gate = (context: Context, parent: Ids, args: Ids) => FoundPermit | Promise<FoundPermit>;
/**
 * Returns the place that the arguments of a root field name, for a caller who passed its gate; stored in
 * `extensions.placeOf` of the field.
 */
export type FindPlace = (context: Context, args: Ids, permit: FoundPermit) => RootPlace | Promise<RootPlace>;

/**
 * Denies by default: root fields, fields with their own resolver and fields that return another object do not build
 * unless they declare what they require of their caller. Plain columns belong to the object that was reached.
 */
export class AccessPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(fieldConfig: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    const requirement = requirementOf(fieldConfig);
    if (requirement === undefined && !isPlain(fieldConfig))
      throw new Error(`${nameOf(fieldConfig)} does not say what it asks of its caller: give it 'authorize'.`);
    return {
      ...fieldConfig,
      extensions: {
        ...fieldConfig.extensions,
        access: requirement ?? 'inherited',
        gate: gateOf(fieldConfig),
        ...(ROOTS.has(fieldConfig.parentType) && { placeOf: placeReader(fieldConfig) }),
        isCredential: (fieldConfig.pothosOptions as { isCredential?: boolean }).isCredential ?? false,
        mayFail: (fieldConfig.pothosOptions as { mayFail?: readonly ErrorCode[] }).mayFail ?? [],
      },
    };
  }

  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    // checked in wrapSubscribe, before the stream starts
    if (fieldConfig.parentType === 'Subscription') return resolver;
    const gate = gateOf(fieldConfig);
    if (!gate) return resolver;
    const placeOf = ROOTS.has(fieldConfig.parentType) ? placeReader(fieldConfig) : null;
    return (parent, args, context, info) => {
      const enter = (permit: FoundPermit) => {
        const place = placeOf ? placeOf(context as unknown as Context, args as Ids, permit) : parent;
        return place instanceof Promise
          ? place.then((found) => resolver(found, args, context, info))
          : resolver(place, args, context, info);
      };
      const passed = gate(context as unknown as Context, parent as Ids, args as Ids);
      return passed instanceof Promise ? passed.then(enter) : enter(passed);
    };
  }

  override wrapSubscribe(
    subscriber: GraphQLFieldResolver<unknown, Types['Context'], object> | undefined,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> | undefined {
    const gate = gateOf(fieldConfig);
    if (!gate || !subscriber) return subscriber;
    const placeOf = placeReader(fieldConfig);
    return async (parent, args, context, info) => {
      const permit = await gate(context as unknown as Context, parent as Ids, args as Ids);
      return subscriber(await placeOf(context as unknown as Context, args as Ids, permit), args, context, info);
    };
  }
}

function requirementOf<Types extends SchemaTypes>(
  fieldConfig: PothosOutputFieldConfig<Types>,
): Requirement | undefined {
  return (fieldConfig.pothosOptions as { authorize?: Requirement }).authorize;
}

const nameOf = <Types extends SchemaTypes>({ parentType, name }: PothosOutputFieldConfig<Types>): string =>
  `${parentType}.${name}`;

/** Whether a field is a plain column of its object. */
function isPlain<Types extends SchemaTypes>({ parentType, extensions, type }: PothosOutputFieldConfig<Types>): boolean {
  return extensions?.pothosExposedField !== undefined && !ROOTS.has(parentType) && !leadsToObject(type);
}

function leadsToObject<Types extends SchemaTypes>(type: PothosOutputFieldType<Types>): boolean {
  return type.kind === 'List' ? leadsToObject(type.type) : type.kind !== 'Scalar' && type.kind !== 'Enum';
}

function gateOf<Types extends SchemaTypes>(fieldConfig: PothosOutputFieldConfig<Types>): Gate | null {
  const requirement = requirementOf(fieldConfig);
  if (requirement === undefined || requirement === 'inherited' || requirement === 'public') return null;
  const ask = questionOf(requirement, fieldConfig);
  const isRoot = ROOTS.has(fieldConfig.parentType);
  const isSession = typeof requirement === 'object' && 'session' in requirement;
  const service = typeof requirement === 'object' && !isSession ? requirement.service : undefined;
  const named = permissionOf(requirement) ?? 'organization:access';
  return (context, parent, args) => {
    const { principal } = context.anyCaller;
    if (!principal) throw unauthenticated();
    if (!principal.token) return ask(context, parent, args);
    if (isSession) sessionOf(context.caller, requirement.session);
    if (isRoot) admitToken(principal.token, context.caller, named);
    return askToken(principal.token, service, () => ask(context, parent, args));
  };
}

/**
 * @throws FORBIDDEN with the operation's permission, when the token's `endpoint_paths` do not include the endpoint of
 * the request
 */
function admitToken(token: TokenGrant, { request }: Caller, named: Permission): void {
  if (!mayEnter(token, request.endpoint)) throw forbidden(named);
}

/**
 * The permission of the service is checked on the token last: first comes whether the token may be in this place at
 * all.
 */
async function askToken(
  token: TokenGrant,
  service: Permission | undefined,
  ask: () => FoundPermit | Promise<FoundPermit>,
): Promise<FoundPermit> {
  const permit = await ask();
  if (service && !grants(token, service)) throw forbidden(service);
  return permit;
}

/**
 * The place of a root field: the organization and workspace in its arguments, and the part that its requirement
 * declares.
 */
function placeReader<Types extends SchemaTypes>(fieldConfig: PothosOutputFieldConfig<Types>): FindPlace {
  const requirement = requirementOf(fieldConfig);
  if (typeof requirement !== 'object' || !('organization' in requirement || 'workspace' in requirement))
    return () => new RootPlace({}, null);
  const isOrganization = 'organization' in requirement;
  const orgIdOf = argumentReader(fieldConfig, isOrganization ? (requirement.by ?? 'orgId') : 'orgId');
  const workspaceIdOf = isOrganization ? null : argumentReader(fieldConfig, requirement.by ?? 'workspaceId');
  const parts = isOrganization ? [] : [requirement.in ?? []].flat();
  const partReaders = parts.map((part) => ({ part, idOf: argumentReader(fieldConfig, `${part}Id`) }));
  return (context, args, permit) => {
    const asked = permit ?? null;
    const orgId = orgIdOf(args, args);
    if (!workspaceIdOf) return new RootPlace({ orgId }, asked);
    const workspace = { orgId, workspaceId: workspaceIdOf(args, args) };
    if (partReaders.length === 0) return new RootPlace(workspace, asked);
    const named = partReaders.map(({ part, idOf }) => ({ part, id: idOf(args, args) }));
    // checked once per request, however many fields are about it
    const found = context.once(`${JSON.stringify(named)} ${orgId} ${workspace.workspaceId}`, () =>
      context.services.access.parts.findParts(workspace, named),
    );
    return found.then((ids) => new RootPlace({ ...workspace, ...ids }, asked));
  };
}

/** Builds the check for the place that the arguments or the parent name. */
function questionOf<Types extends SchemaTypes>(
  requirement: Exclude<Requirement, 'inherited' | 'public'>,
  fieldConfig: PothosOutputFieldConfig<Types>,
): Gate {
  const { parentType } = fieldConfig;
  const isRoot = ROOTS.has(parentType);
  // `id` identifies the subject of the operation, which the permission on its parent does not tell
  const { activity } = fieldConfig.pothosOptions as { activity?: ActivityLabel | false };
  const resource = activity ? activity.resourceType : permissionOf(requirement)?.split(':')[0];
  // only tokens can be restricted to places
  const placeFor = ({ principal }: Caller, parent: Ids, args: Ids) =>
    principal.token ? (isRoot ? placeOfArgs(args, resource) : placeOfRow(parent)) : undefined;
  if (requirement === 'signedIn' || 'session' in requirement) return () => undefined;
  if ('organization' in requirement) {
    const orgIdOf = isRoot
      ? argumentReader(fieldConfig, requirement.by ?? 'orgId')
      : parentReader(fieldConfig, parentType === 'Organization' ? 'id' : 'orgId');
    // to look at what a change is about asks for no fresh factor
    const { organization: permission } = requirement;
    const stepUp = parentType === 'Mutation' ? (requirement.stepUp ?? stepUpOf(permission)) : undefined;
    return ({ caller, services: { access } }, parent, args) => {
      const [orgId, place] = [orgIdOf(parent, args), placeFor(caller, parent, args)];
      const permit = access.requireOrganization(caller, orgId, permission, place);
      return stepUp ? access.steppedUp(caller, orgId, { permission, stepUp }, permit) : permit;
    };
  }
  if ('workspace' in requirement) {
    const orgIdOf = isRoot ? argumentReader(fieldConfig, 'orgId') : parentReader(fieldConfig, 'orgId');
    const workspaceIdOf = isRoot
      ? argumentReader(fieldConfig, requirement.by ?? 'workspaceId')
      : parentReader(fieldConfig, parentType === 'Workspace' ? 'id' : 'workspaceId');
    const { workspace: permission } = requirement;
    const stepUp = parentType === 'Mutation' ? stepUpOf(permission) : undefined;
    return ({ caller, services: { access } }, parent, args) => {
      const [orgId, workspaceId] = [orgIdOf(parent, args), workspaceIdOf(parent, args)];
      const place = placeFor(caller, parent, args);
      const permit = access.requireWorkspace(caller, orgId, workspaceId, permission, place);
      return stepUp ? access.steppedUp(caller, orgId, { permission, stepUp }, permit) : permit;
    };
  }
  return ({ caller, services }, _parent, args) => {
    const { token } = caller.principal;
    if (!token) return undefined; // the service decides
    // a token's restrictions apply everywhere
    const where = { orgId: token.orgId, workspaceId: args.workspaceId };
    return services.access.requireToken(caller, requirement.service, where).then(() => undefined);
  };
}

type IdReader = (parent: Ids, args: Ids) => string;

/** @throws Error, so that the schema does not build, when the argument is optional */
function argumentReader<Types extends SchemaTypes>(
  fieldConfig: PothosOutputFieldConfig<Types>,
  name: IdName,
): IdReader {
  if (!fieldConfig.args[name]?.type.required)
    throw new Error(`${nameOf(fieldConfig)} asks for a permission and needs the required argument '${name}'.`);
  return (_parent, args) => args[name]!;
}

function parentReader<Types extends SchemaTypes>(fieldConfig: PothosOutputFieldConfig<Types>, name: IdName): IdReader {
  return (parent) => {
    const id = parent[name];
    if (typeof id !== 'string')
      throw new Error(`${nameOf(fieldConfig)} asks for a permission, but its object has no '${name}'.`);
    return id;
  };
}

SchemaBuilder.registerPlugin('access', AccessPlugin);
