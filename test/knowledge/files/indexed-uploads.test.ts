import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type FilePart, FORM_TYPE, formOf } from '../../support/form.ts';
import { docxOf, pdfOf } from '../../support/made-files.ts';
import { type Person, register } from '../../support/person.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';
import { type Artifact, getArtifact, newArtifact, putArtifact, shelfOf, versionsOf } from '../artifacts/artifacts.ts';

const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

let s3: S3Server;
beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());

describe.each(['folder', 's3'])('a file that was uploaded to a %s', (kind) => {
  let app: TestApp;
  let ann: Person;
  beforeAll(async () => {
    app = await startTestApp({ env: kind === 's3' ? s3.env : {} });
    ann = await register(app, { name: 'ann' });
  });
  afterAll(() => app.close());

  async function uploaded(file: FilePart, fields: Record<string, string> = {}): Promise<Artifact> {
    const answer = await app.server.inject({
      method: 'POST',
      url: `${shelfOf(ann)}/upload`,
      headers: { ...ann.headers, 'content-type': FORM_TYPE },
      payload: formOf([['name', 'Upload'], ...Object.entries(fields), ['file', file]]),
    });
    expect(answer.statusCode).toBe(201);
    await app.jobsDone();
    return answer.json<Artifact>();
  }

  interface Found {
    total_results: number;
    results: { artifact: Artifact; matched_chunk: string; score: number }[];
  }
  const found = async (query: string) => (await ann.call<Found>('POST', `${shelfOf(ann)}/query`, { query })).body;

  test.each([
    ['PDF', 'application/pdf', 'nightjars.pdf', () => pdfOf(['Nightjars rest', 'by day'], { deflated: 1 }), 'nightjar'],
    ['Word document', DOCX, 'corncrakes.docx', () => docxOf(['Corncrakes call', 'by night']), 'corncrake'],
  ])('is found by its text: a %s', async (_what, mimeType, name, content, word) => {
    // neither its name nor what the client says of it helps
    const { artifact_id: id } = await uploaded({ name: `a.${name.split('.')[1]}`, content: content(), type: 'text/x' });
    const { results, total_results: total } = await found(word);
    expect([total, results.map(({ artifact }) => artifact.artifact_id)]).toEqual([1, [id]]);
    expect(results[0]!.matched_chunk.toLowerCase()).toContain(word);
    expect((await getArtifact(ann, id)).body).toMatchObject({
      mime_type: mimeType,
      artifact_type: 'document',
      is_indexed: true,
      index_error: null,
      index_attempts: 1,
      chunk_count: 1,
    });
  });

  test('takes the place of a text, and a text that of the file; each is what it is said or looks like', async () => {
    const { artifact_id: root } = await newArtifact(ann, { content: 'Dippers dive', artifact_type: 'markdown' });
    const pdf = await uploaded({ name: 'owls.pdf', content: pdfOf(['Owls hoot']) }, { root_artifact_id: root });
    const png = await uploaded({ name: 'bird.png', content: PNG }, { root_artifact_id: root, artifact_type: 'map' });
    expect([pdf, png]).toMatchObject([
      { artifact_id: root, version: 2, artifact_type: 'document', mime_type: 'application/pdf', content: null },
      {
        artifact_id: root,
        version: 3,
        artifact_type: 'map',
        mime_type: 'image/png',
        content_preview: null,
        is_indexed: true,
      },
    ]);
    for (const word of ['dipper', 'owls']) expect((await found(word)).total_results).toBe(0);
    const text = await putArtifact(ann, root, { content: 'Wrens sing' });
    await app.jobsDone();
    expect(text.body).toMatchObject({ version: 4, artifact_type: 'text', mime_type: 'text/plain', has_file: false });
    expect((await found('wren')).results[0]!.artifact.artifact_id).toBe(root);
    const { versions } = await versionsOf(ann, root);
    expect(versions.map(({ file_name, size_bytes, content }) => [file_name, size_bytes, content])).toEqual([
      [null, 10, 'Wrens sing'],
      ['bird.png', PNG.length, null],
      ['owls.pdf', pdfOf(['Owls hoot']).length, null],
      [null, 12, 'Dippers dive'],
    ]);
    // the bytes of old versions stay, as long as these do
    const stored: number[] = [];
    for await (const { sizeBytes } of app.services.storage.list()) stored.push(sizeBytes);
    expect(stored).toEqual(expect.arrayContaining([PNG.length, pdfOf(['Owls hoot']).length]));
  });
});
