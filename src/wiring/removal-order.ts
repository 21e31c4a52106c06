import type { ContentOwner } from '../tenancy/removals.ts';

/**
 * The owners of contents that go with a namespace, an app or a member, in the order in which they take part. THE place
 * to add one: the service does not start while one is missing.
 */
const removalOrder = [
  // artifacts before connections, as locks are taken; what is deployed before the tokens of its app
  'artifactRemoval',
  'knowledgeGraphRemoval',
  'connectionRemoval',
  'deployments',
  // a member's ways in, before what is done with them
  'identityLinks',
  'apiTokens',
  'secrets',
] as const;

type OwnersByName<Owners> = { readonly [Name in keyof Owners]: object & ContentOwner };

const hasContents = (owner: object & ContentOwner): boolean =>
  owner.placeRemoved !== undefined || owner.memberRemoved !== undefined;

/** The owners in this order. @throws Error if the order lacks one, or lists one without contents */
export function ownersInOrder<Owners extends OwnersByName<Owners> & Record<(typeof removalOrder)[number], object>>(
  owners: Owners,
): readonly ContentOwner[] {
  const listed = new Set<string>(removalOrder);
  const all = Object.entries<object & ContentOwner>(owners);
  const mistakes = [
    ...all.filter(([name, owner]) => hasContents(owner) && !listed.has(name)).map(([name]) => `${name} is missing`),
    ...removalOrder.filter((name) => !hasContents(owners[name])).map((name) => `${name} has no contents`),
  ];
  if (mistakes.length > 0)
    throw new Error(`The order of removals (src/wiring/removal-order.ts): ${mistakes.join('; ')}.`);
  return removalOrder.map((name) => owners[name]);
}
