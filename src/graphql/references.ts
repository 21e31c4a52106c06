import type { ObjectRef } from '@pothos/core';
import { notFound } from '../kernel/errors.ts';
import { kindOfId } from '../kernel/ids.ts';
import type { IdKind, Permission } from '../kernel/resources.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { Node, nodeKindOf } from './node.ts';

type Types = typeof builder.$inferSchemaTypes;

/** A resource that reference fields can return. */
type ReferredKind = { [Kind in IdKind]: `${Kind}:read` extends Permission ? Kind : never }[IdKind] | 'organization';

interface ResourceReference<Row> {
  /** The resource that the id names; `node` if only its prefix tells. */
  kind: ReferredKind | 'node';
  /** Name of the field, if it does not follow from the name of the id. */
  name?: string;
  description?: string;
  /** The referenced object always exists, so the field is not nullable. */
  required?: true;
  /** The column is a list with at most this many ids. */
  atMost?: number;
  /** Returns the id, for columns that not every caller may see in full. */
  idOf?: (row: Row, context: Context) => string | null;
  /** The id may refer to another organization. */
  anywhere?: true;
}

type Ids = string | readonly string[] | null;
type References<Row> = {
  [Name in keyof Row & string as Row[Name] extends Ids ? Name : never]?:
    | ResourceReference<Row>['kind']
    | ResourceReference<Row>;
};

/** `createdBy` -> `createdByUser`, `workspaceIds` -> `workspaces`, `orgId` -> `organization`, `appId` -> `app` */
const nameBeside = (column: string): string =>
  column === 'orgId' ? 'organization' : column.endsWith('By') ? `${column}User` : column.replace(/Id(s?)$/, '$1');

const permissionOf = (kind: ReferredKind): Permission =>
  kind === 'organization' ? 'organization:access' : `${kind}:read`;

function descriptionOf<Row>(column: string, { kind, required, atMost }: ResourceReference<Row>): string {
  const noun = kind === 'node' ? 'resource' : kind.replaceAll('_', ' ').replace('api ', 'API ');
  const nouns = `${noun.replace(/y$/, 'ie')}s`;
  const what = atMost ? `The ${nouns} in \`${column}\`, in the same order.` : `The ${noun} in \`${column}\`.`;
  if (required) return what;
  const gone = kind === 'user' ? 'the user has left the organization' : `the ${noun} was deleted`;
  const subject = atMost ? 'An item is' : 'It is';
  return `${what} ${subject} \`null\` if ${gone}, and \`null\` with an error if the caller may not read it.`;
}

/**
 * Adds reference fields to a type: the objects beside the ids that name them. Each requires its own permission in its
 * own place. All objects of one level of an answer are read together, by the node loader of their kind.
 */
export function refersTo<Row extends object>(type: ObjectRef<Types, Row>, references: References<Row>): void {
  builder.objectFields(type, (t) =>
    Object.fromEntries(
      Object.entries<ResourceReference<Row>['kind'] | ResourceReference<Row> | undefined>(references).map(
        ([column, given]) => {
          const reference = typeof given === 'object' ? given : { kind: given! };
          const { kind, name = nameBeside(column), required, atMost } = reference;
          const options = {
            authorize: kind === 'node' ? ('signedIn' as const) : { service: permissionOf(kind) },
            extensions: { beside: column, atMost },
            description: reference.description ?? descriptionOf(column, reference),
          };
          const target = kind === 'node' ? Node : nodeKindOf(kind).type;
          const idIn = (row: Row): Ids => row[column as keyof Row] as Ids;
          return [
            name,
            atMost
              ? t.field({
                  ...options,
                  type: [target],
                  nullable: { list: false, items: true },
                  resolve: (row, _args, context) =>
                    ((idIn(row) ?? []) as readonly string[]).map((id) => find(context, reference, row, id)) as never,
                })
              : t.field({
                  ...options,
                  type: target,
                  nullable: !required,
                  resolve: (row, _args, context) => {
                    const id = reference.idOf ? reference.idOf(row, context) : (idIn(row) as string | null);
                    return (id ? find(context, reference, row, id) : null) as never;
                  },
                }),
          ];
        },
      ),
    ),
  );
}

/** @throws FORBIDDEN; RESOURCE_NOT_FOUND for a missing required object */
async function find<Row extends object>(
  context: Context,
  { kind, required, anywhere }: ResourceReference<Row>,
  row: Row,
  id: string,
): Promise<object | null> {
  const named = kind === 'node' ? kindOfId(id) : kind;
  const load = (of: IdKind) => nodeKindOf(of).load(context, id, anywhere ? undefined : organizationOf(row));
  // what may be anywhere is not read together with others, and many rows may name the same: one's own, for example
  const found = named && (await (anywhere ? context.once(`reference ${named} ${id}`, () => load(named)) : load(named)));
  if (!found && required) throw notFound(named ?? 'node', id);
  return found;
}

/** The organization of a row. An organization belongs to itself. */
function organizationOf({ id, orgId = id }: { id?: unknown; orgId?: unknown }): string {
  if (typeof orgId !== 'string') throw new Error(`'${String(id)}' names no organization.`);
  return orgId;
}
