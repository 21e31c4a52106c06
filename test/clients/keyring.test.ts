import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Keyring, KeyringError } from '../../clients/cli/dist/keyring.js';
import { Profiles } from '../../clients/cli/dist/profiles.js';
import { startTestApp, type TestApp } from '../support/app.ts';
import { commandLine } from '../support/command-line.ts';
import { type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

const DAEMON = '/usr/bin/gnome-keyring-daemon';
const BUS = '/usr/bin/dbus-run-session';
const PROGRAMS = [DAEMON, BUS, '/usr/bin/secret-tool'];

let app: TestApp;
let url: string;
let ann: Person;
let folder: string;
beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  ann = await register(app, { name: 'ann' });
  folder = mkdtempSync(path.join(tmpdir(), 'keyring-'));
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Somebody with a folder of their own. */
function homeOf(name: string): string {
  const home = path.join(folder, name);
  mkdirSync(home, { recursive: true });
  return home;
}
const fileOf = (home: string) => path.join(home, '.config', 'platform', 'profiles.json');
interface Stored {
  profiles: Record<string, Record<string, unknown>>;
}
const storedIn = (home: string) => JSON.parse(readFileSync(fileOf(home), 'utf8')) as Stored;
const NOTE = (home: string) => `The sign-in is in ${fileOf(home)}, which only you may read.\n`;

const login = (env: Record<string, string>, ...more: string[]) =>
  commandLine(['login', '--url', url, '--username', ann.username, '--password-stdin', ...more], {
    env,
    input: ann.password,
  });

describe.skipIf(!process.env.CI && !PROGRAMS.every((file) => existsSync(file)))('a keyring that is unlocked', () => {
  let session: ChildProcess;
  let bus: string;
  /** A user whose keyring it is. */
  const userAt = (home: string) => ({ PATH: '/usr/bin:/bin', HOME: home, DBUS_SESSION_BUS_ADDRESS: bus });
  const keyring = () => new Keyring({ PATH: '/usr/bin:/bin', DBUS_SESSION_BUS_ADDRESS: bus }, 'linux');

  beforeAll(async () => {
    const home = homeOf('daemon');
    const start = `echo "$DBUS_SESSION_BUS_ADDRESS"; exec ${DAEMON} --foreground --unlock --components=secrets`;
    session = spawn(BUS, ['--', 'sh', '-c', start], {
      env: { PATH: '/usr/bin:/bin', HOME: home, XDG_RUNTIME_DIR: home, XDG_DATA_HOME: home },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    });
    let out = '';
    session.stdout!.on('data', (part: Buffer) => (out += part.toString()));
    session.stdin!.end('the password of a login');
    bus = await waitUntil(() => /^(unix:\S+)\n/.exec(out)?.[1]);
    await waitUntil(() => {
      keyring().set('0', 'platform: a test', 'it is there');
      return true;
    });
  });
  afterAll(() => void process.kill(-session.pid!));

  test('a sign-in is kept there, used by later commands, and gone after logout', async () => {
    const home = homeOf('signs-in');
    const env = userAt(home);
    expect(await login(env)).toEqual({ code: 0, out: `Signed in as ${ann.username} at ${url}.\n`, err: '' });
    expect(storedIn(home).profiles).toEqual({ default: { url, keyring: true, org: ann.orgId } });
    const who = JSON.parse((await commandLine(['whoami', '--json'], { env })).out) as object;
    expect(who).toMatchObject({ username: ann.username, credentials: 'profile', kept: 'keyring' });
    expect((await commandLine(['org', 'use', ann.orgId], { env })).code).toBe(0);
    expect((await commandLine(['workspace', 'list'], { env })).code).toBe(0);

    // another file of profiles has entries of its own
    const other = userAt(homeOf('other'));
    expect((await login(other, '--profile', 'default')).code).toBe(0);
    expect((await commandLine(['logout'], { env: other })).code).toBe(0);
    expect((await commandLine(['whoami'], { env })).code).toBe(0);

    // tokens never go to another service
    const file = readFileSync(fileOf(home), 'utf8');
    writeFileSync(fileOf(home), file.replace(url, 'http://127.0.0.1:9'));
    expect((await commandLine(['doctor', '--json'], { env })).out).toContain('no. Sign in: platform login');
    writeFileSync(fileOf(home), file);

    expect(await commandLine(['logout'], { env })).toEqual({ code: 0, out: `Signed out of ${url}.\n`, err: '' });
    // the profile as it was: the keyring has nothing for it any more
    writeFileSync(fileOf(home), file);
    expect((await commandLine(['whoami'], { env })).code).toBe(3);
  });

  test('new tokens replace the old ones there', async () => {
    const home = homeOf('renews');
    const env = userAt(home);
    expect((await login(env)).code).toBe(0);
    const profiles = new Profiles(env);
    const session = profiles.signIn('default').session!;
    profiles.renew('default', { session: { ...session, access_token: 'worn.out.token', expires_at: 0 } });
    expect(await commandLine(['whoami'], { env })).toMatchObject({ code: 0, err: '' });
    const renewed = profiles.signIn('default').session!;
    expect(renewed.refresh_token).not.toBe(session.refresh_token);
    expect(storedIn(home).profiles.default).toEqual({ url, keyring: true, org: ann.orgId });
    // a keyring that fails loses no tokens: the old ones are worth nothing any more
    profiles.renew('default', { session: { ...renewed, access_token: 'worn.out.token', expires_at: 0 } });
    const away = new Profiles({ ...env, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent' });
    expect(away.renew('default', { session: renewed })).toMatchObject({ kept: 'file' });
    expect(await commandLine(['whoami'], { env })).toMatchObject({ code: 0, err: '' });
    expect(storedIn(home).profiles.default).toMatchObject({ keyring: false });
  });

  test('a sign-in of an older version moves there when it is used; one that was kept in the file stays', async () => {
    const home = homeOf('moves');
    const env = userAt(home);
    expect(await login(env, '--no-keyring')).toMatchObject({ code: 0, err: '' });
    expect(storedIn(home).profiles.default).toMatchObject({ keyring: false, session: { expires_in: 1800 } });
    expect(await commandLine(['whoami'], { env })).toMatchObject({ code: 0, err: '' });
    expect(storedIn(home).profiles.default).toHaveProperty('session');

    const { keyring: _keyring, ...old } = storedIn(home).profiles.default!;
    writeFileSync(fileOf(home), JSON.stringify({ current: 'default', profiles: { default: old } }));
    const off = { ...env, PLATFORM_NO_KEYRING: '1' };
    expect(await commandLine(['whoami'], { env: off })).toMatchObject({ code: 0, err: '' });
    expect(storedIn(home).profiles.default).toEqual(old);
    expect(await commandLine(['whoami'], { env })).toMatchObject({
      code: 0,
      err: "The sign-in of the profile 'default' is in the keyring from now on.\n",
    });
    expect(storedIn(home).profiles.default).toEqual({ url, org: ann.orgId, keyring: true });
    expect(await commandLine(['whoami'], { env })).toMatchObject({ code: 0, err: '' });
    // and back, by a login that does not want it
    expect((await login(off)).err).toBe('');
    expect(storedIn(home).profiles.default).toMatchObject({ keyring: false, session: { expires_in: 1800 } });
  });

  test('a text that it would cut is not kept there', () => {
    expect(() => keyring().set('1', 'platform: a test', 'x'.repeat(9_000))).toThrow('it does not keep all of it');
    expect(keyring().get('1')).toBeNull();
    const text = '{"a":"ä\\n"}\n';
    keyring().set('1', "platform: 'a' test", text);
    expect(keyring().get('1')).toBe(text);
    keyring().remove('1');
    keyring().remove('1');
    expect(keyring().get('1')).toBeNull();
  });

  test('one that is away is said to be, and a profile can be forgotten without it', async () => {
    const home = homeOf('away');
    const env = userAt(home);
    expect((await login(env)).code).toBe(0);
    const away = { ...env, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent' };
    const who = await commandLine(['whoami', '--json'], { env: away });
    expect([who.code, JSON.parse(who.err)]).toMatchObject([3, { error: 'KEYRING' }]);
    expect((await commandLine(['doctor'], { env: away })).out).toMatch(
      /signed in +failed +The keyring with the sign-in/,
    );
    const out = await commandLine(['logout'], { env: away });
    expect([out.code, out.err.startsWith('The profile is forgotten. Its session was not ended')]).toEqual([1, true]);
    expect(storedIn(home).profiles).toEqual({});
  });
});

test('without a keyring, the sign-in is in a file, and one line says so', async () => {
  const home = homeOf('nothing');
  // nothing is installed there
  const env = { PATH: home, HOME: home };
  const signedIn = await login(env);
  expect(signedIn).toEqual({
    code: 0,
    out: `Signed in as ${ann.username} at ${url}.\n`,
    err: `No keyring: secret-tool is not installed. ${NOTE(home)}`,
  });
  expect(storedIn(home).profiles.default).toMatchObject({ keyring: false });
  // it is said once
  expect(await commandLine(['whoami'], { env })).toMatchObject({ code: 0, err: '' });
  const json = await login(env, '--json');
  expect([json.err, JSON.parse(json.out)]).toMatchObject(['', { kept: 'file' }]);
  expect((await login({ ...env, PLATFORM_NO_KEYRING: '1' })).err).toBe('');
});

describe('the programs of other systems, by a stand-in', () => {
  /** It keeps one entry, and writes down how it was called. */
  const STAND_IN = `#!/bin/sh
printf '%s\\n' "$*" >> "$0.calls"
case "$1" in
  -i) read -r line; echo "$line" > "$0.kept" ;;
  find-generic-password) [ -e "$0.kept" ] || exit 44; sed 's/.* -w //' "$0.kept" ;;
  delete-generic-password) [ -e "$0.kept" ] || exit 44; rm "$0.kept" ;;
  *) exit 1 ;;
esac
`;

  test('of macOS: the text goes by stdin, and nothing of it has a meaning', () => {
    const home = homeOf('mac');
    const program = path.join(home, 'security');
    writeFileSync(program, STAND_IN);
    chmodSync(program, 0o755);
    const keyring = new Keyring({ PATH: `${home}:/usr/bin:/bin` }, 'darwin');
    expect(keyring.get('7')).toBeNull();
    keyring.remove('7');
    const text = `{"token":"it's $(a) \\"b\\" ä"}`;
    keyring.set('7', 'platform: a test', text);
    expect(keyring.get('7')).toBe(text);
    const place = '-s platform-management-cli -a 7';
    expect(readFileSync(`${program}.kept`, 'utf8')).toBe(
      `add-generic-password -U ${place} -w ${Buffer.from(text).toString('base64')}\n`,
    );
    keyring.remove('7');
    expect(keyring.get('7')).toBeNull();
    const [find, remove] = [`find-generic-password ${place} -w`, `delete-generic-password ${place}`];
    expect(readFileSync(`${program}.calls`, 'utf8').trimEnd().split('\n')).toEqual([
      find,
      remove,
      '-i',
      find,
      find,
      remove,
      find,
    ]);
  });

  test('an entry that is no sign-in is damaged, and nothing of it is shown', async () => {
    const home = homeOf('damaged');
    const program = path.join(home, 'secret-tool');
    for (const entry of ['pat_a-token-that-somebody-pasted', '"pat_a-token-that-somebody-pasted"', 'null']) {
      writeFileSync(program, `#!/bin/sh\nprintf '%s' '${entry}'\n`);
      chmodSync(program, 0o755);
      mkdirSync(path.dirname(fileOf(home)), { recursive: true });
      writeFileSync(
        fileOf(home),
        JSON.stringify({ current: 'default', profiles: { default: { url, keyring: true, org: ann.orgId } } }),
      );
      const who = await commandLine(['whoami', '--json'], { env: { PATH: `${home}:/usr/bin:/bin`, HOME: home } });
      const message = 'The entry in the keyring is damaged. Sign in again: platform login';
      expect([who.code, JSON.parse(who.err)]).toMatchObject([3, { error: 'KEYRING', message }]);
      expect(who.err).not.toContain('pat_');
    }
  });

  test('a system without one that is known has none', () => {
    expect(() => new Keyring({}, 'win32').get('7')).toThrow(KeyringError);
  });
});
