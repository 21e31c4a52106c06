import type { Owner, SecretReference } from '../kernel/owner.ts';
import type { ResourceWord } from '../kernel/resources.ts';

/** The resources that name secrets, in the order in which a refusal to destroy one lists them. THE place to add one. */
const order: readonly ResourceWord[] = [
  'provider_account',
  'identity_provider',
  'tool_instance',
  'webhook',
  'audit_stream',
];

/** The references that owners declare, in this order. @throws Error for those of a resource that it lacks */
export function secretReferencesOf(owners: readonly (object & Owner)[]): SecretReference[] {
  const declared = owners.flatMap(({ secretReferences }) => secretReferences ?? []);
  const unknown = declared.find(({ resource }) => !order.includes(resource));
  if (unknown)
    throw new Error(`References of ${unknown.resource} to secrets: src/wiring/secret-references.ts lacks them.`);
  return declared.toSorted((a, b) => order.indexOf(a.resource) - order.indexOf(b.resource));
}
