import { expect } from 'vitest';
import { Authenticator } from '../authenticator.ts';
import { challengeOf, codeOf, originOf, withPasskey, withTotp } from '../factors.ts';
import { register } from '../person.ts';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';

interface Begun {
  challenge: string;
  options: { challenge: string; user: { id: string } };
}

const nobodys = 'nobody-was-given-this-challenge';
const none = { id: 'nobody-has-this-passkey' };

/** A password is asked for. */
const asksForPassword =
  (url: string) =>
  async ({ app }: Lab): Promise<void> => {
    const person = await register(app);
    const attempt = async (current_password: string) => (await person.call('POST', url, { current_password })).status;
    expect(await attempt('not the password')).toBe(422);
    expect(await attempt(person.password)).toBe(200);
  };

/** Second factors and passkeys. */
export const factorCases: Readonly<Record<string, InputCase>> = {
  addPasskey: {
    prepare: async ({ app }) => {
      const { accessToken, password } = await register(app);
      const { challenge, options } = (await mutateOk(
        app,
        'beginPasskey',
        { input: { currentPassword: password } },
        accessToken,
      )) as unknown as Begun;
      const credential = new Authenticator(originOf(app)).create(options);
      return { given: { input: { challenge, credential } }, token: accessToken };
    },
    demands: { 'input.challenge': nobodys, 'input.credential': none },
    readAs: { 'input.name': 'passkey.name' },
  },
  beginPasskey: { effects: { 'input.currentPassword': asksForPassword('/v1/auth/passkeys/begin') } },
  completeSignIn: {
    prepare: async ({ app }) => {
      const person = await register(app);
      const { secret } = await withTotp(app, person);
      const challenge = await challengeOf(app, person);
      return { given: { input: { challenge, code: codeOf(secret) } }, token: null };
    },
    demands: { 'input.challenge': nobodys, 'input.code': '000000', 'input.credential': none },
    variants: () => [{ 'input.credential': leftOut }],
  },
  confirmTotp: {
    prepare: async ({ app }) => {
      const { accessToken, password } = await register(app);
      const input = { currentPassword: password };
      const { secret } = (await mutateOk(app, 'enrolTotp', { input }, accessToken)) as unknown as {
        secret: string;
      };
      return { given: { input: { code: codeOf(secret) } }, token: accessToken };
    },
    demands: { 'input.code': '000000' },
  },
  enrolTotp: {
    prepare: async ({ app }) => {
      const { accessToken, password } = await register(app);
      return { token: accessToken, given: { input: { currentPassword: password } } };
    },
    effects: { 'input.currentPassword': asksForPassword('/v1/auth/factors/totp') },
  },
  proveFactor: {
    prepare: async ({ app }) => {
      const person = await register(app);
      const { secret } = await withTotp(app, person);
      return { given: { input: { code: codeOf(secret) } }, token: person.accessToken };
    },
    demands: { 'input.code': '000000', 'input.credential': none },
    without: { 'input.challenge': 'counts with a credential alone: test/identity/factors/passkeys.test.ts' },
    variants: () => [{ 'input.credential': leftOut, 'input.challenge': leftOut }],
  },
  renamePasskey: {
    prepare: async ({ app }) => {
      const person = await register(app);
      const { passkeyId } = await withPasskey(app, person);
      return { given: { id: passkeyId }, token: person.accessToken };
    },
  },
  signInWithPasskey: {
    prepare: async ({ app }) => {
      const { authenticator } = await withPasskey(app, await register(app));
      const { challenge, options } = (await mutateOk(app, 'beginPasskeySignIn', {}, null)) as unknown as Begun;
      return { given: { input: { challenge, credential: authenticator.get(options) } }, token: null };
    },
    demands: { 'input.challenge': nobodys, 'input.credential': none },
  },
};
