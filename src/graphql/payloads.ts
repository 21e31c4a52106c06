import type { ObjectRef } from '@pothos/core';
import { builder } from './builder.ts';
import { refersTo } from './references.ts';

type Types = typeof builder.$inferSchemaTypes;

/** The objects that a deleted one was in or belonged to, by the fields that name them. */
const places = {
  orgId: { kind: 'organization', name: 'organization' },
  workspaceId: { kind: 'workspace', name: 'workspace' },
  namespaceId: { kind: 'namespace', name: 'namespace' },
  environmentId: { kind: 'environment', name: 'environment' },
  appId: { kind: 'app', name: 'app' },
  userId: { kind: 'user', name: 'user' },
  applicationId: { kind: 'application', name: 'application' },
  identityProviderId: { kind: 'identity_provider', name: 'identityProvider' },
  toolInstanceId: { kind: 'tool_instance', name: 'toolInstance' },
  logicalModelId: { kind: 'model', name: 'model' },
  sourceEntityId: { kind: 'entity', name: 'sourceEntity' },
  targetEntityId: { kind: 'entity', name: 'targetEntity' },
} as const;
type PlaceField = keyof typeof places;

/** A deleted row: its id, and the ids of where it was. */
type DeletedRow<Place extends PlaceField, Maybe extends PlaceField> = { id: string } & Record<Place, string> &
  Record<Maybe, string | null>;

interface Deletion<Place extends PlaceField, Maybe extends PlaceField> {
  /** What the mutation deletes: `release`. */
  noun: string;
  /** The ids of where the object was. */
  in?: readonly Place[];
  /** Those of them that not every object has. */
  maybeIn?: readonly Maybe[];
  /** The sentence that REST answers. */
  message?: string;
}

/** `toolInstance` -> `tool instance` */
const wordsOf = (name: string) => name.replaceAll(/[A-Z]/g, ' $&').toLowerCase();

export const DeletePayload = builder.interfaceRef<{ id: string }>('DeletePayload').implement({
  description:
    'The result of a mutation that deletes something. The implementing type has the ids of where it was, each with ' +
    'the object itself, so that a client can read its lists again.',
  fields: (t) => ({ id: t.exposeID('id', { description: 'Identifier of what was deleted.' }) }),
});

/**
 * The type that a mutation returns that deletes an object.
 * @param mutation its name, as a type: `DeleteRelease`
 */
export function deletePayload<const Place extends PlaceField = never, const Maybe extends PlaceField = never>(
  mutation: string,
  { noun, in: within = [], maybeIn = [], message }: Deletion<Place, Maybe>,
): ObjectRef<Types, DeletedRow<Place, Maybe>> {
  const type = builder.objectRef<DeletedRow<never, PlaceField>>(`${mutation}Payload`).implement({
    description: `The ${noun} that was deleted${within.length > 0 ? ', and where it was' : ''}.`,
    interfaces: [DeletePayload],
  });
  const required: readonly PlaceField[] = within;
  const optional: readonly PlaceField[] = maybeIn;
  for (const name of [...required, ...optional]) {
    const nullable = optional.includes(name);
    const what = `The ${wordsOf(places[name].name)} of the ${noun}.`;
    const description = nullable ? `${what} \`null\` if it had none.` : what;
    builder.objectField(type, name, (t) =>
      t.id({ authorize: 'inherited', nullable, description, resolve: (row) => row[name] as string }),
    );
    refersTo(type, { [name]: places[name] });
  }
  if (message !== undefined)
    builder.objectField(type, 'message', (t) =>
      t.string({ authorize: 'inherited', description: 'What was done.', resolve: () => message }),
    );
  return type as unknown as ObjectRef<Types, DeletedRow<Place, Maybe>>;
}
