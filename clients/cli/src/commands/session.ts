import type { Command } from 'commander';
import { AuthenticationFailedError, Client, endGrant, type paths, signInWithDevice } from 'platform-management-client';
import { MeDocument } from 'platform-management-client/documents';
import { OutcomeError, UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { KeyringError } from '../keyring.ts';
import { readStdin, show, tell } from '../output.ts';
import { type Surroundings, stored, type Workbench, workbenchOf } from '../workbench.ts';

type Session = paths['/v1/auth/login']['post']['responses'][200]['content']['application/json'];

interface KeepOptions {
  /** `--no-keyring` makes it `false`. */
  keyring: boolean;
}

/** The command line at the authorization server of every service, in each organization. */
const COMMAND_LINE = 'urn:platform-management:command-line';

interface LoginOptions extends KeepOptions {
  browser?: boolean;
  clientId?: string;
  scope: string;
  username?: string;
  code?: string;
  passwordStdin?: boolean;
  tokenStdin?: boolean;
}

async function login(bench: Workbench, options: LoginOptions): Promise<void> {
  const url = await bench.address();
  if (options.tokenStdin) return loginWithToken(bench, await readStdin(bench), options);
  if (await wantsBrowser(bench, options)) return loginWithDevice(bench, options);
  const { username: given, passwordStdin } = options;
  demand(bench, { '--username': given, '--password-stdin': passwordStdin }, ' (or --token-stdin, or --browser)');
  const username = given ?? (await bench.ask('--username', 'Username or e-mail address'));
  const password = await passwordOf(bench, passwordStdin);
  keepSession(bench, await sessionOf(bench, new Client({ url }), { username, password }, options.code), options);
}

/** Whether somebody signs in in a browser, which knows passkeys and the sign-in of organizations, too. */
async function wantsBrowser(bench: Workbench, options: LoginOptions): Promise<boolean> {
  const { browser = false, clientId, username, passwordStdin } = options;
  if (browser || clientId !== undefined) return true;
  if (username !== undefined || passwordStdin || !bench.isInteractive) return false;
  const choices = async () => [
    { value: 'browser', label: 'In a browser' },
    { value: 'password', label: 'With a password' },
  ];
  return (await bench.pick({ option: '--browser', noun: 'way to sign in', choices })) === 'browser';
}

/** Names all that is missing where nobody can be asked. */
function demand(bench: Workbench, given: Record<string, unknown>, others = ''): void {
  if (bench.isInteractive) return;
  const missing = Object.entries(given).flatMap(([option, value]) => (value === undefined ? [option] : []));
  if (missing.length > 0) throw new UsageError(`Missing: ${missing.join(', ')}${others}`);
}

const passwordOf = (bench: Workbench, isOnStdin = false): Promise<string> =>
  isOnStdin ? readStdin(bench) : bench.ask('--password-stdin', 'Password', { isSecret: true });

/** Signs in, with a second factor if the account has one. */
async function sessionOf(
  bench: Workbench,
  { rest }: Client,
  body: { username: string; password: string },
  code: string | undefined,
): Promise<Session> {
  try {
    return (await rest.POST('/v1/auth/login', { body })).data;
  } catch (error) {
    if (!(error instanceof AuthenticationFailedError) || error.details.reason !== 'factor_required') throw error;
    const challenge = String(error.details.challenge);
    const given = code ?? (await bench.ask('--code', 'Code of your app, or a recovery code'));
    return (await rest.POST('/v1/auth/login/complete', { body: { challenge, code: given } })).data;
  }
}

function keepSession(bench: Workbench, data: Session, { keyring }: KeepOptions): void {
  const org = data.user.settings.current_org_id;
  const place = typeof org === 'string' ? { org } : {};
  const { access_token, refresh_token, expires_in } = data;
  const session = stored({ access_token, refresh_token, expires_in });
  signedIn(bench, data.user.username, bench.keep({ url: bench.url, session, ...place }, keyring));
}

interface RegisterOptions extends KeepOptions {
  email?: string;
  username?: string;
  passwordStdin?: boolean;
}

async function register(bench: Workbench, options: RegisterOptions): Promise<void> {
  const url = await bench.address();
  const { email: address, username: name, passwordStdin } = options;
  demand(bench, { '--email': address, '--username': name, '--password-stdin': passwordStdin });
  const email = address ?? (await bench.ask('--email', 'E-mail address'));
  const username = name ?? (await bench.ask('--username', 'Username'));
  const password = await passwordOf(bench, passwordStdin);
  const { data } = await new Client({ url }).rest.POST('/v1/auth/register', { body: { email, username, password } });
  keepSession(bench, data, options);
}

/** The user types a code in a browser, anywhere. */
async function loginWithDevice(bench: Workbench, options: LoginOptions): Promise<void> {
  const { clientId = COMMAND_LINE, scope, keyring } = options;
  const { url } = bench;
  const { access_token, refresh_token, expires_in } = await signInWithDevice({
    url,
    clientId,
    scope,
    onCode: ({ verification_uri, user_code }) =>
      tell(bench, `Open ${verification_uri} and enter the code ${user_code}`),
  });
  const tokens = { access_token, expires_in, ...(refresh_token !== undefined && { refresh_token }) };
  const { me } = await new Client({ url, credentials: access_token }).query(MeDocument, {});
  const grant = { ...stored(tokens), client_id: clientId };
  // a grant is for one organization
  const org = me.organizations.nodes[0]?.id;
  signedIn(bench, me.username, bench.keep({ url, grant, org }, keyring));
}

/** A token is stored once the service has accepted it. */
async function loginWithToken(bench: Workbench, token: string, { keyring }: KeepOptions): Promise<void> {
  const { url } = bench;
  const { data } = await new Client({ url, credentials: token }).rest.GET('/v1/auth/me');
  signedIn(bench, data.username, bench.keep({ url, token }, keyring));
}

const signedIn = (bench: Workbench, username: string, kept: 'keyring' | 'file'): void =>
  show(
    bench,
    { username, url: bench.url, profile: bench.profileName, kept },
    () => `Signed in as ${username} at ${bench.url}.`,
  );

async function logout(bench: Workbench): Promise<void> {
  const { profiles, profileName } = bench;
  const profile = profiles.get(profileName);
  if (!profile) throw new UsageError(`There is no profile '${profileName}'.`);
  const { url } = profile;
  const left: string[] = [];
  const readable = async (work: () => unknown, otherwise: string) => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof KeyringError)) throw error;
      left.push(`${otherwise}: ${error.message}`);
    }
  };
  try {
    await readable(() => endSession(bench, url), 'Its session was not ended, end it in the browser');
  } finally {
    await readable(() => profiles.forget(profileName), 'The keyring still has its sign-in');
  }
  if (left.length > 0) throw new OutcomeError(`The profile is forgotten. ${left.join('\n')}`, { profile: profileName });
  show(bench, { profile: profileName }, () => `Signed out of ${url}.`);
}

/** Ends a session or a grant. A token that was given stays good: whoever made it revokes it. */
async function endSession(bench: Workbench, url: string): Promise<void> {
  const { session, grant } = bench.profiles.signIn(bench.profileName);
  try {
    if (session) await new Client({ url, ...bench.credentialsOf(url, { session }) }).rest.POST('/v1/auth/logout');
    if (grant) await endGrant({ url, clientId: grant.client_id }, grant);
  } catch (error) {
    // it has ended already
    if (!(error instanceof AuthenticationFailedError)) throw error;
  }
}

async function whoami(bench: Workbench): Promise<void> {
  const { data } = await bench.client.rest.GET('/v1/auth/me');
  const { user_id, username, email } = data;
  const place = bench.profiles.get(bench.profileName) ?? {};
  const { org = null, workspace = null } = place as { org?: string; workspace?: string };
  const { source: credentials, kept, profileName: profile } = bench;
  const found = { user_id, username, email, url: bench.url, profile, credentials, kept, org, workspace };
  const from = { keyring: `keyring, profile ${profile}`, file: bench.profiles.file };
  show(bench, found, () => `${username} <${email}> at ${bench.url}\ncredentials: ${kept ? from[kept] : credentials}`);
}

const NO_KEYRING = 'keep it in the file profiles.json; the same for all commands: PLATFORM_NO_KEYRING=1';

/** Adds `login`, `register`, `logout` and `whoami`. */
export function addSessionCommands(program: Command, around: Surroundings): void {
  withExamples(
    program
      .command('login')
      .description('sign in at a service, and keep that in the keyring, or where there is none, in a file of yours')
      .option('--browser', 'sign in in a browser, anywhere, with a code that is shown here')
      .option('--client-id <id>', 'the same for an application of your organization')
      .option('--scope <scopes>', 'what to ask for in the browser', 'read write secret:reveal offline_access')
      .option('--username <name>', 'username or e-mail address')
      .option('--password-stdin', 'read the password from stdin')
      .option('--code <code>', 'code of your app, for an account with a second factor')
      .option('--token-stdin', 'read an API token from stdin instead')
      .option('--no-keyring', NO_KEYRING)
      .action((options: LoginOptions, command: Command) => login(workbenchOf(command, around), options)),
    'platform login --url https://platform.example.com',
    'platform login --url https://platform.example.com --token-stdin < token.txt',
  );
  withExamples(
    program
      .command('register')
      .description('make an account at a service, with an organization and a workspace of its own, and sign in')
      .option('--email <address>', 'e-mail address')
      .option('--username <name>', 'name to sign in with')
      .option('--password-stdin', 'read the password from stdin')
      .option('--no-keyring', NO_KEYRING)
      .action((options: RegisterOptions, command: Command) => register(workbenchOf(command, around), options)),
    'platform register --url https://platform.example.com',
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
