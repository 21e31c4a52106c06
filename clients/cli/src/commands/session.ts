import { isCancel, password, text } from '@clack/prompts';
import type { Command } from 'commander';
import { AuthenticationFailedError, Client, endGrant, signInWithDevice } from 'platform-management-client';
import { UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { readStdin, show, tell } from '../output.ts';
import { type Surroundings, stored, type Workbench, workbenchOf } from '../workbench.ts';

async function asked(bench: Workbench, option: string, ask: () => Promise<string | symbol>): Promise<string> {
  if (!bench.isInteractive) throw new UsageError(`Missing: ${option}`);
  const answer = await ask();
  if (isCancel(answer)) throw new UsageError(`Missing: ${option}`);
  return answer as string;
}

interface LoginOptions {
  clientId?: string;
  scope: string;
  username?: string;
  passwordStdin?: boolean;
  tokenStdin?: boolean;
}

async function login(bench: Workbench, options: LoginOptions): Promise<void> {
  const { url } = bench;
  if (options.clientId !== undefined) return loginWithDevice(bench, options.clientId, options.scope);
  if (options.tokenStdin) return loginWithToken(bench, await readStdin(bench));
  if (!bench.isInteractive) {
    const given = { '--username': options.username, '--password-stdin': options.passwordStdin };
    const missing = Object.entries(given).flatMap(([option, value]) => (value === undefined ? [option] : []));
    if (missing.length > 0) throw new UsageError(`Missing: ${missing.join(', ')} (or --token-stdin, or --client-id)`);
  }
  const username =
    options.username ?? (await asked(bench, '--username', () => text({ message: 'Username or e-mail address' })));
  const secret = options.passwordStdin
    ? await readStdin(bench)
    : await asked(bench, '--password-stdin', () => password({ message: 'Password' }));
  const { data } = await new Client({ url }).rest.POST('/v1/auth/login', { body: { username, password: secret } });
  const org = data.user.settings.current_org_id;
  const place = typeof org === 'string' ? { org } : {};
  const { access_token, refresh_token, expires_in } = data;
  const session = stored({ access_token, refresh_token, expires_in });
  bench.profiles.set(bench.profileName, { url, session, ...place });
  signedIn(bench, data.user.username);
}

/** The user types a code in a browser, anywhere. */
async function loginWithDevice(bench: Workbench, clientId: string, scope: string): Promise<void> {
  const { url } = bench;
  const { access_token, refresh_token, expires_in } = await signInWithDevice({
    url,
    clientId,
    scope,
    onCode: ({ verification_uri, user_code }) =>
      tell(bench, `Open ${verification_uri} and enter the code ${user_code}`),
  });
  const tokens = { access_token, expires_in, ...(refresh_token !== undefined && { refresh_token }) };
  const { data } = await new Client({ url, credentials: access_token }).rest.GET('/v1/auth/me');
  bench.profiles.set(bench.profileName, { url, grant: { ...stored(tokens), client_id: clientId } });
  signedIn(bench, data.username);
}

/** A token is stored once the service has accepted it. */
async function loginWithToken(bench: Workbench, token: string): Promise<void> {
  const { url } = bench;
  const { data } = await new Client({ url, credentials: token }).rest.GET('/v1/auth/me');
  bench.profiles.set(bench.profileName, { url, token });
  signedIn(bench, data.username);
}

const signedIn = (bench: Workbench, username: string): void =>
  show(
    bench,
    { username, url: bench.url, profile: bench.profileName },
    () => `Signed in as ${username} at ${bench.url}.`,
  );

async function logout(bench: Workbench): Promise<void> {
  const profile = bench.profiles.get(bench.profileName);
  if (!profile) throw new UsageError(`There is no profile '${bench.profileName}'.`);
  // a token that was given stays good: whoever made it revokes it
  const { url, session, grant } = profile;
  try {
    if (session) await new Client({ url, ...bench.ofProfile() }).rest.POST('/v1/auth/logout');
    if (grant) await endGrant({ url, clientId: grant.client_id }, grant);
  } catch (error) {
    // it has ended already
    if (!(error instanceof AuthenticationFailedError)) throw error;
  } finally {
    bench.profiles.set(bench.profileName, null);
  }
  show(bench, { profile: bench.profileName }, () => `Signed out of ${url}.`);
}

async function whoami(bench: Workbench): Promise<void> {
  const { data } = await bench.client.rest.GET('/v1/auth/me');
  const { user_id, username, email } = data;
  const place = bench.profiles.get(bench.profileName) ?? {};
  const { org = null, workspace = null } = place as { org?: string; workspace?: string };
  const credentials = bench.source;
  const found = { user_id, username, email, url: bench.url, profile: bench.profileName, credentials, org, workspace };
  const kept = credentials === 'profile' ? bench.profiles.file : credentials;
  show(bench, found, () => `${username} <${email}> at ${bench.url}\ncredentials: ${kept}`);
}

/** Adds `login`, `logout` and `whoami`. */
export function addSessionCommands(program: Command, around: Surroundings): void {
  withExamples(
    program
      .command('login')
      .description('sign in at a service, and keep that in the profile')
      .option('--client-id <id>', 'sign in in a browser, for an application of your organization')
      .option('--scope <scopes>', 'what that application may do', 'read write offline_access')
      .option('--username <name>', 'username or e-mail address')
      .option('--password-stdin', 'read the password from stdin')
      .option('--token-stdin', 'read an API token from stdin instead')
      .action((options: LoginOptions, command: Command) => login(workbenchOf(command, around), options)),
    'platform login --url https://platform.example.com',
    'platform login --url https://platform.example.com --token-stdin < token.txt',
  );
  withExamples(
    program
      .command('logout')
      .description('end the session and forget the profile')
      .action((_options, command: Command) => logout(workbenchOf(command, around))),
    'platform logout',
  );
  withExamples(
    program
      .command('whoami')
      .description('show who is signed in, where, and from where the credentials come')
      .action((_options, command: Command) => whoami(workbenchOf(command, around))),
    'platform whoami',
  );
}
