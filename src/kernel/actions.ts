/** What can be done to a resource, and the past tense that its event has. */
export const eventNames = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
  destroy: 'destroyed',
  restore: 'restored',
  rotate: 'rotated',
  refresh: 'refreshed',
  revoke: 'revoked',
  toggle: 'toggled',
  upgrade: 'upgraded',
  relate: 'related',
  unrelate: 'unrelated',
  import: 'imported',
  merge: 'merged',
  promote: 'promoted',
  apply: 'applied',
} as const;

/** A verb of {@link eventNames}. */
export type ChangeVerb = keyof typeof eventNames;

const others = [
  'read',
  'list',
  'execute',
  'login',
  'logout',
  'reveal',
  'deploy',
  'undeploy',
  'connect',
  'disconnect',
  'export',
  'join',
  'leave',
  'view',
] as const;

/** What an activity record says was done. */
export type ActivityAction = ChangeVerb | (typeof others)[number];

/** Whether a text is an action. */
export const isAction = (text: string): text is ActivityAction =>
  Object.hasOwn(eventNames, text) || (others as readonly string[]).includes(text);
