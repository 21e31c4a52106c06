import { Secret, TOTP } from 'otpauth';
import type { TestApp } from './app.ts';
import { Authenticator } from './authenticator.ts';
import type { Account, Person } from './person.ts';
import { expectOk } from './requests.ts';

/** The code that an app shows, now or some half minutes later. */
export const codeOf = (secret: string, later = 0): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + later * 30_000 });

/**
 * A request with the code that an app shows when it is sent. On a busy machine, its turn comes after the end of the
 * code that was shown when it was written.
 */
export const withCode = <T extends object>(request: T, secret: string): T & { readonly code: string } =>
  Object.defineProperty({ ...request, code: '' }, 'code', { enumerable: true, get: () => codeOf(secret) });

/** Whether codes that were used before may come again: a test need not wait for the next half minute. */
export async function forgetCodes(app: TestApp, { userId }: Pick<Account, 'userId'>): Promise<void> {
  await app.database.pool.query('update totp_factors set last_step = null where user_id = $1', [userId]);
}

/** Nobody has proven a factor for a while. */
export async function letFactorsAge(app: TestApp, { userId }: Pick<Account, 'userId'>): Promise<void> {
  await app.database.pool.query(
    `update sessions set factor_at = factor_at - interval '11 minutes', created_at = created_at - interval '11 minutes'
      where user_id = $1`,
    [userId],
  );
}

/** Adds an app for one-time codes. None of its codes counts as used. */
export async function withTotp(app: TestApp, person: Person): Promise<{ secret: string; recoveryCodes: string[] }> {
  const { headers } = person;
  const request = { method: 'POST', headers } as const;
  const payload = { current_password: person.password };
  const enrolled = { ...request, url: '/v1/auth/factors/totp', payload };
  const { secret } = await expectOk<{ secret: string }>(app, enrolled);
  const url = '/v1/auth/factors/totp/confirm';
  const confirmed = { ...request, url, payload: { code: codeOf(secret) } };
  const { recovery_codes } = await expectOk<{ recovery_codes: string[] }>(app, confirmed);
  await forgetCodes(app, person);
  return { secret, recoveryCodes: recovery_codes };
}

/** The challenge of a sign-in whose password was right. */
export async function challengeOf(
  app: TestApp,
  { username, password }: Pick<Account, 'username' | 'password'>,
): Promise<string> {
  const request = { method: 'POST', url: '/v1/auth/login', payload: { username, password } } as const;
  const { details } = (await app.server.inject(request)).json<{ details: { challenge: string } }>();
  return details.challenge;
}

/** Where the service thinks it is: passkeys are bound to it. */
export const originOf = (app: TestApp): string => app.services.authorizationServer.publicUrl;

/** What begins something with a passkey. */
export interface Beginning {
  challenge: string;
  options: { challenge: string; user: { id: string }; allowCredentials?: { id: string }[] };
}

/** Adds a passkey. */
export async function withPasskey(
  app: TestApp,
  person: Person,
  authenticator = new Authenticator(originOf(app)),
): Promise<{ authenticator: Authenticator; passkeyId: string; recoveryCodes: string[] }> {
  const { headers, password } = person;
  const request = { method: 'POST', headers } as const;
  const { challenge, options } = await expectOk<Beginning>(app, {
    ...request,
    url: '/v1/auth/passkeys/begin',
    payload: { current_password: password },
  });
  const payload = { challenge, credential: authenticator.create(options), name: 'Key' };
  const added = await expectOk<{ passkey: { passkey_id: string }; recovery_codes: string[] }>(app, {
    ...request,
    url: '/v1/auth/passkeys',
    payload,
  });
  return { authenticator, passkeyId: added.passkey.passkey_id, recoveryCodes: added.recovery_codes };
}
