import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PlaceParts } from '../../src/access/place-parts.ts';
import { newId } from '../../src/kernel/ids.ts';
import { missing } from '../support/actors.ts';
import { addOrganization, addWorkspace, type BareDatabase, openBareDatabase } from '../support/bare-database.ts';

let database: BareDatabase;
let parts: PlaceParts;
beforeAll(async () => {
  database = await openBareDatabase();
  parts = new PlaceParts(database.sql);
});
afterAll(() => database.close());

describe('the parts of a workspace', () => {
  it('are found by their ids, in this workspace only', async () => {
    const orgId = await addOrganization(database);
    const workspaceId = await addWorkspace(database, orgId);
    const workspace = { orgId, workspaceId };
    const [namespaceId, appId, environmentId] = [newId('namespace'), newId('app'), newId('environment')];
    await database.add('namespaces', { id: namespaceId, ...workspace, name: 'n', slug: 'default' });
    await database.add('apps', { id: appId, ...workspace, name: 'a' });
    await database.add('environments', { id: environmentId, ...workspace, name: 'e', slug: 'e' });

    expect(await parts.findPart(workspace, 'namespace', namespaceId)).toBe(namespaceId);
    expect(await parts.findPart(workspace, 'namespace', 'default')).toBe(namespaceId);
    const another = newId('namespace');
    await database.add('namespaces', { id: another, ...workspace, name: 'another', slug: 'another' });
    expect(await parts.findPart(workspace, 'namespace', another)).toBe(another);
    await expect(parts.findPart(workspace, 'namespace', 'ns_1')).rejects.toEqual(missing('namespace', 'ns_1'));
    expect(await parts.findPart(workspace, 'app', appId)).toBe(appId);
    expect(await parts.findPart(workspace, 'environment', environmentId)).toBe(environmentId);
    await expect(parts.findPart(workspace, 'app', 'default')).rejects.toEqual(missing('app', 'default'));
    await expect(parts.findPart(workspace, 'app', namespaceId)).rejects.toEqual(missing('app', namespaceId));
    await expect(parts.findPart(workspace, 'app', '\u0000')).rejects.toEqual(missing('app', '\u0000'));
    const elsewhere = { orgId, workspaceId: await addWorkspace(database, orgId) };
    await expect(parts.findPart(elsewhere, 'app', appId)).rejects.toEqual(missing('app', appId));
    await expect(parts.findPart(elsewhere, 'namespace', 'default')).rejects.toEqual(missing('namespace', 'default'));
    await expect(parts.findPart({ ...workspace, orgId: 'org_2' }, 'app', appId)).rejects.toEqual(missing('app', appId));

    const named = (part: 'namespace' | 'app' | 'environment', id: string) => ({ part, id });
    expect(await parts.findParts(workspace, [named('app', appId)])).toEqual({ appId });
    const both = [named('app', appId), named('namespace', 'default')];
    expect(await parts.findParts(workspace, both)).toEqual({ appId, namespaceId });
    expect(
      await parts.findParts(workspace, [named('namespace', namespaceId), named('environment', environmentId)]),
    ).toEqual({ namespaceId, environmentId });
    expect(await parts.findParts(workspace, [...both].reverse())).toEqual({ appId, namespaceId });
    const three = [named('environment', environmentId), named('namespace', 'default'), named('app', appId)];
    expect(await parts.findParts(workspace, three)).toEqual({ appId, namespaceId, environmentId });
    expect(await parts.findParts(workspace, [named('namespace', another), named('app', appId)])).toEqual({
      appId,
      namespaceId: another,
    });
    await expect(parts.findParts(workspace, [named('app', appId), named('environment', appId)])).rejects.toEqual(
      missing('environment', appId),
    );
    await expect(parts.findParts(workspace, [named('namespace', 'default'), named('app', 'default')])).rejects.toEqual(
      missing('app', 'default'),
    );
    await expect(parts.findParts(elsewhere, [named('namespace', 'default'), named('app', appId)])).rejects.toEqual(
      missing('namespace', 'default'),
    );
    await expect(parts.findParts(workspace, [named('app', 'app_1'), named('namespace', 'ns_1')])).rejects.toEqual(
      missing('app', 'app_1'),
    );
    await expect(parts.findParts(workspace, [named('app', appId), named('namespace', '\u0000')])).rejects.toEqual(
      missing('namespace', '\u0000'),
    );
    await expect(parts.findParts(elsewhere, both)).rejects.toEqual(missing('app', appId));
  });
});
