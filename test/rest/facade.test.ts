import { afterAll, expect, it } from 'vitest';
import { CompileError } from '../../rest/documents.ts';
import { Facade } from '../../rest/facade.ts';
import { folderOf, removeFolders, toySchema } from './toy.ts';

afterAll(removeFolders);

const documents = {
  'health.graphql': 'query Health @rest(method: GET, path: "/v1/health") { health @body }',
  'groups.json': JSON.stringify([{ file: 'health', name: 'Whether it works' }]),
};
const info = { title: 'Shop', version: '1', description: 'A toy.' };

it('has the operations of a folder, and their reference', () => {
  const facade = new Facade(toySchema(), folderOf(documents));
  expect(facade.operations.map(({ name }) => name)).toEqual(['Health']);
  expect(facade.openApi({ info, publicUrl: 'https://shop.test' })).toMatchObject({
    info,
    servers: [{ url: 'https://shop.test' }],
    tags: [{ name: 'Whether it works' }],
    paths: { '/v1/health': { get: { operationId: 'Health' } } },
  });
});

it('makes the OpenAPI document once for servers of the same name and address', () => {
  const facade = new Facade(toySchema(), folderOf(documents));
  const document = facade.openApi({ info });
  expect(facade.openApi({ info: { ...info } })).toBe(document);
  expect(facade.openApi({ info, publicUrl: undefined })).toBe(document);
  expect(facade.openApi({ info: { ...info, title: 'Stall' } })).toMatchObject({ info: { title: 'Stall' } });
  const there = facade.openApi({ info, publicUrl: 'https://there.test' });
  expect(there).toMatchObject({ servers: [{ url: 'https://there.test' }] });
  expect(facade.openApi({ info, publicUrl: 'https://there.test' })).toBe(there);
  expect(facade.openApi({ info })).toBe(document);
});

it('validates the documents unless it is told that they were', () => {
  const wrong = folderOf('query A @rest(method: GET, path: "/v1/x") { item(id: "1") @body { ownerId owner_id: id } }');
  expect(() => new Facade(toySchema(), wrong)).toThrow(CompileError);
  const asked: string[] = [];
  const wereValid = (digest: string) => asked.push(digest) > 0;
  expect(new Facade(toySchema(), wrong, wereValid).operations).toHaveLength(1);
  expect(asked).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
});
