import { builder } from '../../graphql/builder.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { FactorsView } from './factor.service.ts';
import {
  challengeBounds,
  codeBounds,
  credentialBounds,
  currentPassword,
  PasskeyChallenge,
} from './factor-sign-in.graph.ts';
import { Passkey } from './passkey.graph.ts';
import type { TotpEnrolment } from './totp.ts';

export const FactorMethodType = wordEnum('FactorMethod', 'How somebody proves a second factor.', {
  totp: 'With a code of an app.',
  passkey: 'With a passkey.',
  recovery_code: 'With a recovery code.',
});

const TotpFactor = builder.objectRef<NonNullable<FactorsView['totp']>>('TotpFactor').implement({
  description: 'An app that shows one-time codes.',
  fields: (t) => ({
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was added.' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When one of its codes was last accepted.',
    }),
  }),
});

const Factors = builder.objectRef<FactorsView>('Factors').implement({
  description: 'What the caller can prove besides a password.',
  fields: (t) => ({
    methods: t.field({
      type: [FactorMethodType],
      authorize: 'inherited',
      description: 'How the caller can prove a second factor. Empty without one: a password is enough then.',
      resolve: (_row, _args, { caller, services }) => services.factors.methods(caller),
    }),
    totp: t.expose('totp', {
      type: TotpFactor,
      authorize: 'inherited',
      nullable: true,
      description: 'The app for one-time codes. `null` without one.',
    }),
    passkeys: t.field({
      type: [Passkey],
      authorize: 'inherited',
      description: 'The passkeys, oldest first.',
      resolve: (_row, _args, { caller, services }) => services.passkeys.list(caller),
    }),
    recoveryCodesLeft: t.exposeInt('recoveryCodesLeft', { description: 'How many recovery codes were not used yet.' }),
    provenAt: t.expose('provenAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When a factor was last proven in this session. `null` for never.',
    }),
  }),
});

const TotpEnrolmentObject = builder.objectRef<TotpEnrolment>('TotpEnrolment').implement({
  description: 'What an app for one-time codes is given. It is not shown again.',
  fields: (t) => ({
    secret: t.exposeString('secret', { description: 'To be typed into the app, in Base32.' }),
    uri: t.exposeString('uri', { description: 'The same as an `otpauth` address, to be shown as a QR code.' }),
  }),
});

const RecoveryCodes = builder.objectRef<{ recoveryCodes: string[] }>('RecoveryCodes').implement({
  description: 'Codes for who has lost all other factors. Each works once. They are not shown again.',
  fields: (t) => ({
    recoveryCodes: t.exposeStringList('recoveryCodes', {
      description: 'Ten codes. Empty if the account has some already.',
    }),
  }),
});

const FactorProof = builder.objectRef<{ provenAt: Date }>('FactorProof').implement({
  description: 'A factor that was proven in the session of the caller.',
  fields: (t) => ({ provenAt: t.expose('provenAt', { type: 'DateTime', description: 'When it was proven.' }) }),
});

const DisableTotpPayload = builder.objectRef<object>('DisableTotpPayload').implement({
  description: 'The factors that are left.',
  fields: (t) => ({
    factors: t.field({
      type: Factors,
      authorize: 'inherited',
      description: 'The factors that are left.',
      resolve: (_row, _args, { caller, services }) => services.factors.view(caller),
    }),
  }),
});

builder.queryFields((t) => ({
  myFactors: t.field({
    type: Factors,
    description: "The caller's second factors.",
    authorize: { session: 'user:read' },
    resolve: (_root, _args, { caller, services }) => services.factors.view(caller),
  }),
}));

const EnrolTotpInput = builder.inputType('EnrolTotpInput', {
  description: 'Proves who adds an app.',
  fields: (t) => ({ currentPassword: currentPassword(t) }),
});

const ConfirmTotpInput = builder.inputType('ConfirmTotpInput', {
  description: 'A code of the new app.',
  fields: (t) => ({
    code: t.string({
      required: true,
      constraints: { pattern: '[0-9]{6}', sensitive: true },
      description: 'The six digits that the app shows.',
    }),
  }),
});

const ProveFactorInput = builder.inputType('ProveFactorInput', {
  description: 'A code, or the answer of a passkey.',
  fields: (t) => ({
    code: t.string({ constraints: codeBounds, description: 'A code of the app, or a recovery code.' }),
    challenge: t.string({
      constraints: challengeBounds,
      description: 'The `challenge` of `beginFactorProof`, with `credential`.',
    }),
    credential: t.field({
      type: 'JSONObject',
      constraints: credentialBounds,
      description: 'The answer of a passkey to its `options`, as JSON.',
    }),
  }),
});

const activity = { action: 'update', resourceType: 'user' } as const;

builder.mutationFields((t) => ({
  enrolTotp: t.field({
    type: TotpEnrolmentObject,
    description:
      'Begins to add an app for one-time codes. Nothing changes for sign-ins before `confirmTotp`. A user with a ' +
      'factor must have proven it within the last 10 minutes.',
    authorize: { session: 'user:update' },
    activity,
    isCredential: true,
    args: { input: t.arg({ type: EnrolTotpInput, required: true, description: 'The proof.' }) },
    resolve: (_root, { input }, { caller, services }) => services.factors.enrolTotp(caller, input.currentPassword),
  }),
  confirmTotp: t.field({
    type: RecoveryCodes,
    description: 'Adds the app by one of its codes. From then on, signing in takes a second factor.',
    authorize: { session: 'user:update' },
    activity,
    isCredential: true,
    args: { input: t.arg({ type: ConfirmTotpInput, required: true, description: 'The code.' }) },
    resolve: async (_root, { input }, { caller, services }) => ({
      recoveryCodes: await services.factors.confirmTotp(caller, input.code),
    }),
  }),
  disableTotp: t.field({
    type: DisableTotpPayload,
    description: 'Removes the app. A factor must have been proven within the last 10 minutes.',
    authorize: { session: 'user:update' },
    activity,
    resolve: async (_root, _args, { caller, services }) => {
      await services.factors.removeTotp(caller);
      return {};
    },
  }),
  renewRecoveryCodes: t.field({
    type: RecoveryCodes,
    description:
      'Makes ten new recovery codes; earlier codes end. A factor must have been proven within the last 10 minutes.',
    authorize: { session: 'user:update' },
    activity,
    resolve: async (_root, _args, { caller, services }) => ({
      recoveryCodes: await services.factors.renewRecoveryCodes(caller),
    }),
  }),
  beginFactorProof: t.field({
    type: PasskeyChallenge,
    description: 'Begins to prove a passkey in the session of the caller. A code needs no beginning.',
    authorize: { session: 'user:update' },
    activity: false,
    isCredential: true,
    resolve: (_root, _args, { caller, services }) => services.factors.beginProof(caller),
  }),
  proveFactor: t.field({
    type: FactorProof,
    description: 'Proves a second factor once more, in the session of the caller, for what asks for a fresh one.',
    authorize: { session: 'user:update' },
    activity,
    isCredential: true,
    args: { input: t.arg({ type: ProveFactorInput, required: true, description: 'The factor.' }) },
    resolve: async (_root, { input }, { caller, services }) => ({
      provenAt: await services.factors.prove(caller, input),
    }),
  }),
}));
