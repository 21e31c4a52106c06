import { isIP } from 'node:net';
import { connect } from 'node:tls';
import type { Command } from 'commander';
import { ApiError } from 'platform-management-client';
import { Ended, exitCodeOf, exitCodes, messageOf } from '../failures.ts';
import { withExamples } from '../help.ts';
import { show, table } from '../output.ts';
import { version } from '../version.ts';
import { type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const TIMEOUT_MS = 10_000;
const LARGEST_SKEW_SECONDS = 60;
const DAY_MS = 86_400_000;
const SOON_DAYS = 14;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

interface Check {
  check: 'address' | 'tls' | 'clock' | 'version' | 'ready' | 'signed in' | 'expiry';
  status: 'ok' | 'warning' | 'failed';
  message: string;
}

/** A check with what it is worth as the end of the command. */
type Finding = Check & { exitCode?: number };

const failed = (check: Check['check'], message: string, exitCode: number): Finding => ({
  check,
  status: 'failed',
  message,
  exitCode,
});
const fine = (check: Check['check'], message: string): Finding => ({ check, status: 'ok', message });
const warned = (check: Check['check'], message: string): Finding => ({ check, status: 'warning', message });

async function doctor(bench: Workbench): Promise<void> {
  const findings = [...(await serviceFindings(bench.url)), ...(await signInFindings(bench))];
  const checks = findings.map(({ check, status, message }) => ({ check, status, message }));
  const exitCode = findings.find(({ status }) => status === 'failed')?.exitCode ?? 0;
  show(bench, { ok: exitCode === 0, checks }, () =>
    table(
      ['CHECK', 'STATUS', ''],
      checks.map(({ check, status, message }) => [check, status, message]),
    ),
  );
  if (exitCode !== 0) throw new Ended(exitCode);
}

const at = (url: string, path: string): string => url.replace(/\/+$/, '') + path;
const get = (url: string): Promise<Response> =>
  fetch(url, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(TIMEOUT_MS) });

/** What anybody can see of the service. */
async function serviceFindings(url: string): Promise<Finding[]> {
  const tls = await tlsFinding(new URL(url));
  const sentAt = Date.now();
  let response: Response;
  let body: { version?: unknown };
  try {
    response = await get(at(url, '/'));
    body = (await response.json()) as { version?: unknown };
  } catch (error) {
    const message = error instanceof SyntaxError ? 'Something else answers there, without JSON.' : messageOf(error);
    return [failed('address', message, exitCodes.unavailable), tls];
  }
  const now = (sentAt + Date.now()) / 2;
  return [
    fine('address', `${url} answers`),
    tls,
    clockFinding(response.headers.get('date'), now),
    versionFinding(body?.version),
    await readyFinding(url),
  ];
}

/** Whether others on the way can read along. */
async function tlsFinding({ protocol, hostname, port }: URL): Promise<Finding> {
  if (protocol === 'http:')
    return LOOPBACK.test(hostname)
      ? fine('tls', 'not needed: this machine')
      : warned('tls', 'none: everybody on the way can read your token. Use https');
  const host = hostname.replaceAll(/[[\]]/g, '');
  return new Promise((resolve) => {
    const named = isIP(host) ? {} : { servername: host };
    const socket = connect({ host, port: Number(port) || 443, timeout: TIMEOUT_MS, ...named });
    const end = (finding: Finding) => {
      socket.destroy();
      resolve(finding);
    };
    socket.once('timeout', () => end(failed('tls', 'no answer in time', exitCodes.unavailable)));
    socket.once('error', (error: Error) => end(failed('tls', error.message, exitCodes.unavailable)));
    socket.once('secureConnect', () => end(certificateFinding(socket.getPeerCertificate().valid_to)));
  });
}

function certificateFinding(until: string): Finding {
  const days = Math.floor((Date.parse(until) - Date.now()) / DAY_MS);
  const message = `the certificate is valid until ${new Date(until).toISOString()}`;
  return days < SOON_DAYS ? warned('tls', `${message}: soon over`) : fine('tls', message);
}

function clockFinding(date: string | null, now: number): Finding {
  const skew = Math.round((now - Date.parse(date ?? '')) / 1_000);
  if (Number.isNaN(skew)) return warned('clock', 'the service does not say its time');
  if (Math.abs(skew) <= LARGEST_SKEW_SECONDS) return fine('clock', 'agrees with the service');
  const side = skew > 0 ? 'ahead of' : 'behind';
  return failed('clock', `this machine is ${Math.abs(skew)} seconds ${side} the service`, exitCodes.failed);
}

/** Before 1.0 a minor version may break something, and then a major one. */
const lineOf = (text: string): string => text.split('.', text.startsWith('0.') ? 2 : 1).join('.');

function versionFinding(ofService: unknown): Finding {
  if (typeof ofService !== 'string') return warned('version', 'the service does not say its version');
  const both = `service ${ofService}, command line ${version}`;
  return lineOf(ofService) === lineOf(version) ? fine('version', both) : warned('version', `${both}: they may not fit`);
}

async function readyFinding(url: string): Promise<Finding> {
  try {
    const response = await get(at(url, '/readyz'));
    if (response.ok) return fine('ready', 'the service takes requests');
    return failed('ready', `the service is not ready: status ${response.status}`, exitCodes.unavailable);
  } catch (error) {
    return failed('ready', messageOf(error), exitCodes.unavailable);
  }
}

/** What the service says of the caller. */
async function signInFindings(bench: Workbench): Promise<Finding[]> {
  try {
    if (bench.source === 'none') return [failed('signed in', 'no. Sign in: platform login', exitCodes.authentication)];
    const { data } = await bench.client.rest.GET('/v1/auth/me');
    const kept = bench.source === 'profile' ? `profile '${bench.profileName}' (${bench.kept})` : bench.source;
    return [fine('signed in', `as ${data.username} <${data.email}>, by the ${kept}`), await expiryFinding(bench)];
  } catch (error) {
    return [failed('signed in', messageOf(error), exitCodeOf(error))];
  }
}

async function expiryFinding(bench: Workbench): Promise<Finding> {
  const { token } = bench;
  if (token === undefined) return fine('expiry', 'renewed by itself while it is used');
  const until = jwtExpiry(token) ?? (await apiTokenExpiry(bench, token));
  if (until === undefined) return warned('expiry', 'unknown: the service does not show it to this token');
  if (until === null) return fine('expiry', 'never');
  const message = `the token works until ${new Date(until).toISOString()}`;
  return until - Date.now() < SOON_DAYS * DAY_MS ? warned('expiry', message) : fine('expiry', message);
}

/** The time in a signed access token. Whether it is genuine is the service's to say. */
function jwtExpiry(token: string): number | undefined {
  const [, payload, signature] = token.split('.');
  if (!payload || !signature) return undefined;
  try {
    const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp?: unknown };
    return typeof exp === 'number' ? exp * 1_000 : undefined;
  } catch {
    return undefined; // it is no signed token after all
  }
}

/** `null` if it never ends, `undefined` if that cannot be seen. */
async function apiTokenExpiry(bench: Workbench, token: string): Promise<number | null | undefined> {
  try {
    const org_id = bench.given('org') ?? (await bench.organizations())[0]?.value;
    if (org_id === undefined) return undefined;
    const { data } = await bench.client.rest.GET('/v1/orgs/{org_id}/api-tokens', { params: { path: { org_id } } });
    const own = data.tokens.find(({ prefix }) => token.startsWith(prefix));
    return own && (own.expires_at === null ? null : Date.parse(own.expires_at));
  } catch (error) {
    if (error instanceof ApiError) return undefined; // the token may do other things
    throw error;
  }
}

/** Adds `doctor`. */
export function addDoctor(program: Command, around: Surroundings): void {
  withExamples(
    program
      .command('doctor')
      .description('check the address, TLS, the clock, versions, and how long you are signed in')
      .action((_options, command: Command) => doctor(workbenchOf(command, around))),
    'platform doctor',
  );
}
