import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { examineFiles, type FileFinding } from '../../../src/knowledge/files/doctor.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { runCommand, runScript } from '../../support/command.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { type Person, register } from '../../support/person.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';

let s3: S3Server;
beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());

describe.each(['folder', 's3'])('the doctor of files in a %s', (kind) => {
  let app: TestApp;
  let ann: Person;
  const env = () => (kind === 's3' ? s3.env : {});
  beforeAll(async () => {
    app = await startTestApp({ env: env() });
    ann = await register(app, { name: 'ann' });
  });
  afterAll(() => app.close());

  async function upload(content: string): Promise<string> {
    const answer = await app.server.inject({
      method: 'POST',
      url: `${ann.home}/namespaces/default/artifacts/upload`,
      headers: { ...ann.headers, 'content-type': FORM_TYPE },
      payload: formOf([
        ['name', 'x'],
        ['file', { content }],
      ]),
    });
    const { rows } = await app.database.pool.query<{ key: string }>(
      'select storage_key as key from files f join artifacts a on a.file_id = f.id where a.id = $1',
      [answer.json<{ artifact_id: string }>().artifact_id],
    );
    return rows[0]!.key;
  }

  async function examine() {
    const findings: FileFinding[] = [];
    const examined = await examineFiles(app.services.sql, app.services.storage, (finding) => findings.push(finding));
    return { ...examined, findings: findings.sort((a, b) => a.key.localeCompare(b.key)) };
  }

  /** `npm run files -- <command>`, as it was built. */
  const run = (command: string) =>
    runCommand('files', [command], {
      DATABASE_URL: app.database.url,
      DATA_DIR: app.dataDir,
      NODE_NO_WARNINGS: '1', // the client of S3 has one about older versions of Node
      ...env(),
    });

  test('finds nothing where everything agrees, and what does not agree in both directions', async () => {
    const { storage } = app.services;
    const [lost, cut, whole] = [await upload('lost'), await upload('cut'), await upload('whole')];
    expect(await examine()).toEqual({ rows: 3, objects: 3, findings: [] });
    expect(await run('doctor')).toEqual({ code: 0, output: '3 kept files, 3 stored objects: all agree.\n' });
    const folder = whole.split('/')[0]!;
    const put = (key: string) => storage.put(key, Readable.from([Buffer.from('other')]), { limitBytes: 100 });
    await storage.remove(lost);
    await storage.remove(cut);
    await put(cut);
    await put(`${folder}/unknown`);
    const idOf = (key: string) => key.slice(folder.length + 1);
    const expected: FileFinding[] = [
      { key: lost, fileId: idOf(lost), reason: 'no object' },
      { key: cut, fileId: idOf(cut), reason: 'another size' },
      { key: `${folder}/unknown`, fileId: null, reason: 'no row' },
    ];
    expect(await examine()).toEqual({
      rows: 3,
      objects: 3,
      findings: expected.sort((a, b) => a.key.localeCompare(b.key)),
    });
    const { code, output } = await run('doctor');
    expect(code).toBe(1);
    expect(output.trim().split('\n').sort()).toEqual(
      [
        ...expected.map(({ key, fileId, reason }) => `${key} ${fileId ?? '-'}: ${reason}`),
        '3 kept files, 3 stored objects: 3 findings.',
      ].sort(),
    );
  });
});

test('says how it is used', async () => {
  const { code, output } = await runScript('files', ['cure'], {});
  expect([code, output]).toEqual([1, expect.stringContaining('npm run files -- COMMAND')]);
});
