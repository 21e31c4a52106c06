import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg } from '../../graphql/place-args.ts';
import { challengeBounds, credentialBounds, currentPassword, PasskeyChallenge } from './factor-sign-in.graph.ts';
import type { PasskeyView } from './passkey.service.ts';

export const Passkey = builder.objectRef<PasskeyView>('Passkey').implement({
  description: 'A passkey (WebAuthn) of the caller: it signs in by itself, or is a second factor.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier.' }),
    name: t.exposeString('name', { description: 'What the caller calls it.' }),
    isSynced: t.exposeBoolean('isSynced', { description: 'Whether it is synchronised between devices.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was added.' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was last used. `null` for never.',
    }),
  }),
});

const AddedPasskey = builder.objectRef<{ passkey: PasskeyView; recoveryCodes: string[] }>('AddedPasskey').implement({
  description: 'A new passkey.',
  fields: (t) => ({
    passkey: t.expose('passkey', { type: Passkey, authorize: 'inherited', description: 'The passkey.' }),
    recoveryCodes: t.exposeStringList('recoveryCodes', {
      description: 'Ten recovery codes, which are not shown again. Empty if the account has some already.',
    }),
  }),
});

const BeginPasskeyInput = builder.inputType('BeginPasskeyInput', {
  description: 'Proves who adds a passkey.',
  fields: (t) => ({ currentPassword: currentPassword(t) }),
});

const AddPasskeyInput = builder.inputType('AddPasskeyInput', {
  description: 'A passkey that a browser has made.',
  fields: (t) => ({
    challenge: t.string({
      required: true,
      constraints: challengeBounds,
      description: 'The `challenge` of `beginPasskey`.',
    }),
    credential: t.field({
      type: 'JSONObject',
      required: true,
      constraints: credentialBounds,
      description: 'What the authenticator has answered to the `options`, as JSON.',
    }),
    name: t.string({ required: true, constraints: bounds.name, description: 'What the caller calls it.' }),
  }),
});

const RenamePasskeyInput = builder.inputType('RenamePasskeyInput', {
  description: 'Another name.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'What the caller calls it.' }),
  }),
});

const RemovePasskeyPayload = deletePayload('RemovePasskey', { noun: 'passkey' });

const activity = { action: 'update', resourceType: 'user' } as const;

builder.mutationFields((t) => ({
  beginPasskey: t.field({
    type: PasskeyChallenge,
    description: 'Begins to add a passkey. A user with a second factor must have proven it within the last 10 minutes.',
    authorize: { session: 'user:update' },
    activity: false,
    isCredential: true,
    args: { input: t.arg({ type: BeginPasskeyInput, required: true, description: 'The proof.' }) },
    resolve: (_root, { input }, { caller, services }) => services.passkeys.begin(caller, input.currentPassword),
  }),
  addPasskey: t.field({
    type: AddedPasskey,
    description: 'Adds a passkey. From then on, signing in takes a passkey, or a second factor.',
    authorize: { session: 'user:update' },
    activity,
    isCredential: true,
    args: { input: t.arg({ type: AddPasskeyInput, required: true, description: 'The passkey.' }) },
    resolve: (_root, { input }, { caller, services }) => services.passkeys.add(caller, input),
  }),
  renamePasskey: t.field({
    type: Passkey,
    description: 'Gives a passkey another name.',
    authorize: { session: 'user:update' },
    activity: { action: 'update', resourceType: 'passkey' },
    args: {
      ...idArg('The passkey.'),
      input: t.arg({ type: RenamePasskeyInput, required: true, description: 'The name.' }),
    },
    resolve: (_root, { id, input }, { caller, services }) => services.passkeys.rename(caller, id, input.name),
  }),
  removePasskey: t.field({
    type: RemovePasskeyPayload,
    description: 'Removes a passkey. A factor must have been proven within the last 10 minutes.',
    authorize: { session: 'user:update' },
    activity: { action: 'delete', resourceType: 'passkey' },
    args: idArg('The passkey.'),
    resolve: (_root, { id }, { caller, services }) => services.passkeys.remove(caller, id),
  }),
}));
