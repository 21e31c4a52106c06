import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';

/** Where files of the world belong. */
const placeOf = ({ world }: Lab) => {
  const { org_id: orgId, workspace_id: workspaceId, namespace_id: namespaceId } = world.ids;
  return { orgId, workspaceId, namespaceId };
};

/** An address for a file. */
async function announced(lab: Lab, input: object): Promise<{ file: string; url: string }> {
  const { app, world } = lab;
  const made = await mutateOk(app, 'createUpload', { ...placeOf(lab), input }, world.accounts.owner.accessToken);
  const { file, url } = made as { file: string; url: string };
  return { file, url: new URL(url).pathname };
}

/** Sends a file. @returns its id */
async function sent(lab: Lab, content: string, input: object = { fileName: 'a.txt' }): Promise<string> {
  const { file, url } = await announced(lab, input);
  await lab.app.server.inject({ method: 'PUT', url, payload: content });
  return file;
}

/** The artifact of a file. */
const finished = async (lab: Lab, file: string) =>
  (await mutateOk(
    lab.app,
    'finishUpload',
    { ...placeOf(lab), input: { file, name: 'A file' } },
    lab.world.accounts.owner.accessToken,
  )) as { id: string; fileName: string; mimeType: string; sizeBytes: number };

/** An artifact with the texts `first` and `second`. */
async function twoVersions(lab: Lab): Promise<string> {
  const token = lab.world.accounts.owner.accessToken;
  const given = { ...placeOf(lab), input: { name: 'A text', content: 'first' } };
  const { id } = (await mutateOk(lab.app, 'createArtifact', given, token)) as { id: string };
  await mutateOk(lab.app, 'updateArtifact', { ...placeOf(lab), id, input: { content: 'second' } }, token);
  return id;
}

const assertEqual = (read: unknown, given: unknown): void => {
  if (read !== given) throw new Error(`It is ${JSON.stringify(read)}, not ${JSON.stringify(given)}.`);
};

/** Artifacts and the files that they are made of. */
export const fileCases: Readonly<Record<string, InputCase>> = {
  createArtifact: {
    variants: ({ world }) => [
      { 'input.isPinned': true, 'input.mimeType': 'text/x-other', 'input.ttlSeconds': 90_000 },
      { 'input.rootArtifactId': world.ids.artifact_id, 'input.isPinned': true },
    ],
  },
  updateArtifact: {
    variants: () => [{ 'input.isPinned': true, 'input.mimeType': 'text/x-other', 'input.ttlSeconds': 90_000 }],
  },
  createUpload: {
    effects: {
      'input.fileName': async (lab) => {
        const fileName = `f${lab.world.next()}.txt`;
        assertEqual((await finished(lab, await sent(lab, 'text', { fileName }))).fileName, fileName);
      },
      'input.contentType': async (lab) => {
        for (const contentType of ['text/csv', 'text/markdown']) {
          const file = await sent(lab, 'text', { fileName: 'without-ending', contentType });
          assertEqual((await finished(lab, file)).mimeType, contentType);
        }
      },
      'input.sizeBytes': async (lab) => {
        const { url } = await announced(lab, { fileName: 'a.txt', sizeBytes: 5 });
        const answer = await lab.app.server.inject({ method: 'HEAD', url });
        assertEqual(answer.headers['upload-length'], '5');
      },
      'input.sha256': async (lab) => {
        const { url } = await announced(lab, { fileName: 'a.txt', sha256: '0'.repeat(64) });
        const answer = await lab.app.server.inject({ method: 'PUT', url, payload: 'text' });
        assertEqual(answer.json<{ details: { reason: string } }>().details.reason, 'digest_mismatch');
      },
      'input.resume': async (lab) => {
        const known = { fileName: 'a.bin', sizeBytes: 8, sha256: '0'.repeat(64) };
        const first = await announced(lab, known);
        const headers = { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' };
        await lab.app.server.inject({ method: 'PATCH', url: first.url, payload: 'text', headers });
        // one to which a piece was begun just now is left to who sends it
        await lab.app.database.pool.query(
          `update files set created_at = created_at - interval '1 minute' where part_of = $1`,
          [first.file],
        );
        assertEqual((await announced(lab, { ...known, resume: true })).file, first.file);
      },
    },
  },
  finishUpload: {
    prepare: async (lab) => ({ given: { input: { file: await sent(lab, 'text') } } }),
    variants: async (lab) => [
      { 'input.ttlSeconds': 90_000 },
      { 'input.rootArtifactId': (await finished(lab, await sent(lab, 'first'))).id, 'input.threadId': leftOut },
    ],
    effects: {
      'input.file': async (lab) => {
        const [short, long] = [await sent(lab, 'short'), await sent(lab, 'much longer')];
        assertEqual((await finished(lab, short)).sizeBytes, 5);
        assertEqual((await finished(lab, long)).sizeBytes, 11);
      },
    },
  },
  restoreArtifactVersion: {
    prepare: async (lab) => ({ given: { id: await twoVersions(lab) } }),
    variants: () => [{ 'input.version': 1 }],
    effects: {
      'input.version': async (lab) => {
        const id = await twoVersions(lab);
        const given = { ...placeOf(lab), id, input: { version: 1 } };
        const read = await mutateOk(lab.app, 'restoreArtifactVersion', given, lab.world.accounts.owner.accessToken);
        assertEqual((read as { content: string }).content, 'first');
      },
    },
  },
  restoreArtifact: {
    prepare: async (lab) => {
      const id = await twoVersions(lab);
      await mutateOk(lab.app, 'deleteArtifact', { ...placeOf(lab), id }, lab.world.accounts.owner.accessToken);
      return { given: { id } };
    },
  },
  deleteArtifact: {
    prepare: async (lab) => ({ given: { id: await twoVersions(lab) } }),
    effects: {
      onlyUnused: async (lab) => {
        const token = lab.world.accounts.owner.accessToken;
        const given = { ...placeOf(lab), id: await twoVersions(lab) };
        await mutateOk(lab.app, 'promoteArtifact', given, token);
        const refusal = await mutateOk(lab.app, 'deleteArtifact', { ...given, onlyUnused: true }, token).then(
          () => 'none',
          (error: Error) => error.message,
        );
        assertEqual(refusal.includes('in_use'), true);
      },
    },
  },
  promoteArtifact: {
    prepare: async (lab) => {
      const given = { ...placeOf(lab), input: { name: 'To be promoted', content: 'x' } };
      const made = await mutateOk(lab.app, 'createArtifact', given, lab.world.accounts.owner.accessToken);
      return { given: { id: (made as { id: string }).id } };
    },
    readAs: { 'input.name': 'promotedToSource.name', 'input.description': 'promotedToSource.description' },
  },
};
