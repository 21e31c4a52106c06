import type { ContentOwner } from '../tenancy/removals.ts';

/**
 * The owners of contents that go with a namespace, an app or a member, in the order in which they take part. THE place
 * to add one: the service does not start while one is missing.
 */
export const removalOrder = [
  // artifacts before connections, as locks are taken; what is deployed before the tokens of its app
  'artifactRemoval',
  // it locks augmentations
  'instancesOfRemovedNamespace',
  'knowledgeGraphRemoval',
  'connectionRemoval',
  'deployments',
  // a member's ways in, before what is done with them
  'identityLinks',
  'apiTokens',
  'scimTokens',
  'secrets',
] as const;

const hasContents = (owner: (object & ContentOwner) | undefined): owner is object & ContentOwner =>
  owner?.placeRemoved !== undefined || owner?.memberRemoved !== undefined;

/**
 * The owners of contents in an order.
 * @param services everything that may be one, by its name
 * @throws Error if the order lacks one, or has one twice or without contents
 */
export function ownersInOrder(
  services: Readonly<Record<string, object & ContentOwner>>,
  order: readonly string[],
): readonly ContentOwner[] {
  const owners = order.map((name) => services[name]).filter(hasContents);
  const mistakes = [
    ...order.filter((name, at) => order.indexOf(name) !== at).map((name) => `${name} is there twice`),
    ...order.filter((name) => !hasContents(services[name])).map((name) => `${name} has no contents`),
    ...Object.keys(services)
      .filter((name) => hasContents(services[name]) && !order.includes(name))
      .map((name) => `${name} is missing`),
  ];
  if (mistakes.length > 0)
    throw new Error(`The order of removals (src/wiring/removal-order.ts): ${mistakes.join('; ')}.`);
  return owners;
}
