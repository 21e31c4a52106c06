import { builder } from '../../graphql/builder.ts';
import type { InputFields } from '../../graphql/inputs.ts';
import { SignInResult } from '../auth/auth.graph.ts';
import type { PasskeyBeginning } from './factor-sign-in.ts';

export const challengeBounds = { minLength: 1, maxLength: 1024, sensitive: true } as const;
/** Six digits, or a recovery code with what people put between its groups. */
export const codeBounds = { minLength: 6, maxLength: 40, sensitive: true } as const;

/** The answer of an authenticator is short. */
export const credentialBounds = { maxBytes: 32_768 } as const;

/** Proves who adds a first factor. */
export const currentPassword = (t: InputFields) =>
  t.string({
    constraints: { minLength: 1, maxLength: 1024, sensitive: true },
    description:
      "The caller's own password. Needed for the first factor; without a password, the caller must have signed in " +
      'within the last 10 minutes.',
  });

export const PasskeyChallenge = builder.objectRef<PasskeyBeginning>('PasskeyChallenge').implement({
  description: 'What a browser asks an authenticator with. It is good once, for five minutes.',
  fields: (t) => ({
    challenge: t.exposeString('challenge', { description: 'To be sent back with the answer of the authenticator.' }),
    options: t.expose('options', {
      type: 'JSONObject',
      description: 'The options of WebAuthn, in the JSON form that `PublicKeyCredential` reads.',
    }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until it is over.' }),
  }),
});

const CompleteSignInInput = builder.inputType('CompleteSignInInput', {
  description: 'A second factor after a password: a code, or the answer of a passkey.',
  fields: (t) => ({
    challenge: t.string({
      required: true,
      constraints: challengeBounds,
      description: 'The `challenge` of the refused sign-in.',
    }),
    code: t.string({ constraints: codeBounds, description: 'A code of the app, or a recovery code.' }),
    credential: t.field({
      type: 'JSONObject',
      constraints: credentialBounds,
      description: 'The answer of a passkey to the `passkey_options` of the refused sign-in, as JSON.',
    }),
  }),
});

const PasskeySignInInput = builder.inputType('PasskeySignInInput', {
  description: 'The answer of a passkey.',
  fields: (t) => ({
    challenge: t.string({
      required: true,
      constraints: challengeBounds,
      description: 'The `challenge` that began it.',
    }),
    credential: t.field({
      type: 'JSONObject',
      required: true,
      constraints: credentialBounds,
      description: 'The answer of the passkey to the `options`, as JSON.',
    }),
  }),
});

builder.mutationFields((t) => ({
  completeSignIn: t.field({
    type: SignInResult,
    description:
      'Completes a sign-in whose password was right, and which was refused with the reason `factor_required`. A code ' +
      'is accepted once. After ten wrong codes the second factor is locked for a while.',
    authorize: 'public',
    activity: { action: 'login', resourceType: 'user', byService: true },
    isCredential: true,
    args: { input: t.arg({ type: CompleteSignInInput, required: true, description: 'The second factor.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.factorSignIn.complete(anyCaller, input),
  }),
  beginPasskeySignIn: t.field({
    type: PasskeyChallenge,
    description: 'Begins a sign-in with a passkey, without a name and a password.',
    authorize: 'public',
    isCredential: true,
    resolve: (_root, _args, { anyCaller, services }) => services.factorSignIn.beginWithPasskey(anyCaller),
  }),
  signInWithPasskey: t.field({
    type: SignInResult,
    description:
      'Signs in with a passkey that knows its user, by a PIN or a fingerprint. It counts as two factors. The same ' +
      'refusal for everything that is wrong.',
    authorize: 'public',
    activity: { action: 'login', resourceType: 'user', byService: true },
    isCredential: true,
    args: { input: t.arg({ type: PasskeySignInInput, required: true, description: 'The answer of the passkey.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.factorSignIn.withPasskey(anyCaller, input),
  }),
}));
