import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';
import { type Company, company, entraUser, GROUP, provision, USER, unique } from './directories.ts';

/*
 * What Okta and Entra ID send, as their documentation shows it: "Understanding SCIM 2.0" of Okta, and "Develop a SCIM
 * endpoint" with "Known issues" of Entra ID.
 */

let app: TestApp;
let firm: Company;
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' }); // the first account administers the platform
  firm = await company(app);
});
afterAll(() => app.close());

const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
const LIST = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
const quoted = (text: string) => encodeURIComponent(`"${text}"`);

describe('Okta', () => {
  const okta = (userName: string) => ({
    schemas: [USER],
    userName,
    name: { givenName: 'Test', familyName: 'User' },
    emails: [{ primary: true, value: userName, type: 'work' }],
    displayName: 'Test User',
    locale: 'en-US',
    externalId: '00ujl29u0le5T6Aj10h7',
    groups: [],
    password: '1mz050nq',
    active: true,
  });

  test('a user: looked for, created, read, replaced, deactivated, activated', async () => {
    const userName = `test.user.${unique()}@${firm.domain}`;
    const look = await firm.scim('GET', `/Users?filter=userName%20eq%20${quoted(userName)}&startIndex=1&count=100`);
    expect([look.status, look.body]).toEqual([
      200,
      { schemas: [LIST], totalResults: 0, startIndex: 1, itemsPerPage: 0, Resources: [] },
    ]);
    const made = await firm.scim('POST', '/Users', okta(userName));
    expect([made.status, made.body.name]).toEqual([201, { givenName: 'Test', familyName: 'User' }]);
    const one = `/Users/${made.body.id}`;
    expect((await firm.scim('GET', one)).body).toEqual(made.body);
    const put = { ...made.body, name: { givenName: 'Another', middleName: 'Excited', familyName: 'User' } };
    expect((await firm.scim('PUT', one, put)).body.name).toEqual({ givenName: 'Another', familyName: 'User' });
    const off = await firm.scim('PATCH', one, {
      schemas: [PATCH_OP],
      Operations: [{ op: 'replace', value: { active: false } }],
    });
    expect([off.status, off.body.active]).toEqual([200, false]);
    const on = await firm.scim('PUT', one, { ...put, active: true });
    expect([on.status, on.body.active]).toEqual([200, true]);
    const list = await firm.scim('GET', '/Users?startIndex=1&count=2');
    expect(list.body).toMatchObject({ schemas: [LIST], startIndex: 1, itemsPerPage: 1, totalResults: 1 });
  });

  test('a group: created, pushed, renamed with its id, members in bulk, deleted', async () => {
    const [ann, bea] = [await provision(firm), await provision(firm)];
    const displayName = `Test SCIMv2 ${unique()}`;
    expect((await firm.scim('GET', `/Groups?filter=displayName%20eq%20${quoted(displayName)}`)).body.totalResults).toBe(
      0,
    );
    const made = await firm.scim('POST', '/Groups', { schemas: [GROUP], displayName, members: [] });
    expect(made.status).toBe(201);
    const { id } = made.body;
    const send = (...Operations: object[]) => firm.scim('PATCH', `/Groups/${id}`, { schemas: [PATCH_OP], Operations });
    expect((await send({ op: 'replace', value: { id, displayName: `${displayName} 2` } })).status).toBe(204);
    const members = [ann, bea].map(({ id: value, userName: display }) => ({ value, display }));
    expect((await send({ op: 'add', path: 'members', value: members })).status).toBe(204);
    const values = async () =>
      (await firm.scim('GET', `/Groups/${id}`)).body.members.map(({ value }: { value: string }) => value).toSorted();
    expect(await values()).toEqual([ann.id, bea.id].toSorted());
    const swap = await send(
      { op: 'remove', path: `members[value eq "${ann.id}"]` },
      { op: 'add', path: 'members', value: [{ value: bea.id, display: 'x' }] },
    );
    expect([swap.status, await values()]).toEqual([204, [bea.id]]);
    expect((await send({ op: 'replace', path: 'members', value: [{ value: ann.id }] })).status).toBe(204);
    expect(await values()).toEqual([ann.id]);
    const put = { schemas: [GROUP], id, displayName, members: [{ value: bea.id, display: 'b' }] };
    expect((await firm.scim('PUT', `/Groups/${id}`, put)).status).toBe(200);
    expect(await values()).toEqual([bea.id]);
    expect((await firm.scim('DELETE', `/Groups/${id}`)).status).toBe(204);
  });
});

describe('Entra ID', () => {
  const patched = (Operations: object[]) => ({ schemas: [PATCH_OP], Operations });

  test('the test of the connection, and discovery as a list', async () => {
    const look = await firm.scim('GET', `/Users?filter=userName%20eq%20${quoted('non-existent user')}`);
    expect([look.status, look.body.totalResults]).toEqual([200, 0]);
    const config = await firm.scim('GET', '/ServiceProviderConfig');
    expect([config.status, config.body]).toMatchObject([
      200,
      { patch: { supported: true }, bulk: { supported: false }, filter: { supported: true, maxResults: 100 } },
    ]);
    for (const [path, ids] of [
      ['/ResourceTypes', ['User', 'Group']],
      ['/Schemas', [USER, GROUP]],
    ] as const) {
      const { body } = await firm.scim('GET', path);
      expect([body.schemas, body.Resources.map(({ id }: { id: string }) => id)]).toEqual([[LIST], ids]);
      expect((await firm.scim('GET', `${path}/${ids[0]}`)).body.id).toBe(ids[0]);
      expect((await firm.scim('GET', `${path}/nothing`)).status).toBe(404);
    }
  });

  test('a user: created, matched, patched in capitals and at what is not there, disabled, deleted', async () => {
    const userName = `Test_User_${unique()}@${firm.domain}`;
    const made = await firm.scim('POST', '/Users', { ...entraUser(userName), emails: [], name: {} });
    expect([made.status, made.body.emails, made.body.name]).toEqual([201, undefined, undefined]);
    const one = `/Users/${made.body.id}`;
    const match = await firm.scim('GET', `/Users?filter=userName%20eq%20${quoted(userName.toUpperCase())}`);
    expect(match.body.Resources[0]?.id).toBe(made.body.id);
    const byId = await firm.scim('GET', `/Users?filter=externalId%20eq%20${quoted(made.body.externalId)}`);
    expect(byId.body.Resources[0]?.id).toBe(made.body.id);
    const multi = await firm.scim(
      'PATCH',
      one,
      patched([
        { op: 'Replace', path: 'emails[type eq "work"].value', value: `updated@${firm.domain}` },
        { op: 'Add', path: 'name.familyName', value: 'updatedFamilyName' },
        { op: 'Replace', path: 'addresses[type eq "work"].locality', value: 'Redmond' },
        { op: 'Add', path: 'phoneNumbers[type eq "mobile"].value', value: '+1 555' },
        { op: 'Add', path: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department', value: 'D' },
        { op: 'Add', path: 'emails[type eq "home"].value', value: 'home@example.test' },
      ]),
    );
    expect([multi.status, multi.body]).toMatchObject([
      200,
      {
        emails: [{ value: `updated@${firm.domain}`, type: 'work', primary: true }],
        name: { familyName: 'updatedFamilyName' },
      },
    ]);
    const renamed = await firm.scim(
      'PATCH',
      one,
      patched([{ op: 'Replace', path: 'userName', value: `new${userName}` }]),
    );
    expect([renamed.status, renamed.body.userName]).toEqual([200, `new${userName}`]);
    // without a path, with names of attributes in one
    const flat = await firm.scim(
      'PATCH',
      one,
      patched([
        {
          op: 'replace',
          value: {
            displayName: 'Bjfe',
            'name.givenName': 'Kim',
            title: 'Worker',
            'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager': null,
          },
        },
      ]),
    );
    expect([flat.status, flat.body]).toMatchObject([200, { displayName: 'Bjfe', name: { givenName: 'Kim' } }]);
    const gone = await firm.scim('PATCH', one, patched([{ op: 'Remove', path: 'emails[type eq "work"].value' }]));
    expect([gone.status, gone.body.emails]).toEqual([200, undefined]);
    const off = await firm.scim('PATCH', one, patched([{ op: 'Replace', path: 'active', value: 'False' }]));
    expect([off.status, off.body.active]).toEqual([200, false]);
    expect((await firm.scim('DELETE', one)).status).toBe(204);
    expect((await firm.scim('DELETE', one)).status).toBe(404);
  });

  test('a group: looked for without its members, members one by one, and removed by a list of values', async () => {
    const ann = await provision(firm);
    const externalId = unique();
    const displayName = `displayName ${externalId}`;
    const made = await firm.scim('POST', '/Groups', {
      schemas: [GROUP, 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
      externalId,
      displayName,
      meta: { resourceType: 'Group' },
    });
    expect(made.status).toBe(201);
    const { id } = made.body;
    expect((await firm.scim('GET', `/Groups/${id}?excludedAttributes=members`)).body).toMatchObject({
      id,
      displayName,
    });
    const look = await firm.scim(
      'GET',
      `/Groups?excludedAttributes=members&filter=displayName%20eq%20${quoted(displayName)}`,
    );
    expect(look.body.Resources).toEqual([expect.not.objectContaining({ members: expect.anything() })]);
    const send = (...Operations: object[]) => firm.scim('PATCH', `/Groups/${id}`, patched(Operations));
    const isMember = async () => {
      const filter = encodeURIComponent(`id eq "${id}" and members eq "${ann.id}"`);
      return (await firm.scim('GET', `/Groups?filter=${filter}&attributes=id`)).body.totalResults;
    };
    expect((await send({ op: 'Add', path: 'members', value: [{ $ref: null, value: ann.id }] })).status).toBe(204);
    expect(await isMember()).toBe(1);
    expect((await send({ op: 'Remove', path: 'members', value: [{ $ref: null, value: ann.id }] })).status).toBe(204);
    expect(await isMember()).toBe(0);
    // once more, and of somebody who is not there
    expect((await send({ op: 'Remove', path: 'members', value: [{ value: ann.id }, { value: 'scu_x' }] })).status).toBe(
      204,
    );
    expect((await send({ op: 'Replace', path: 'displayName', value: `${displayName} 2` })).status).toBe(204);
    expect((await firm.scim('DELETE', `/Groups/${id}`)).status).toBe(204);
  });
});

test('answers have the attributes that were asked for', async () => {
  const { id } = await provision(firm);
  const keys = async (query: string) => Object.keys((await firm.scim('GET', `/Users/${id}?${query}`)).body).toSorted();
  expect(await keys('attributes=userName')).toEqual(['id', 'schemas', 'userName']);
  expect(await keys(`attributes=${USER}:userName,name.familyName`)).toEqual(['id', 'name', 'schemas', 'userName']);
  expect((await firm.scim('GET', `/Users/${id}?attributes=name.familyName`)).body.name).toEqual({
    familyName: 'Example',
  });
  expect(await keys('excludedAttributes=name,emails,meta,id,externalId,displayName')).toEqual([
    'active',
    'id',
    'schemas',
    'userName',
  ]);
  const page = await firm.scim('GET', '/Users?count=0');
  expect([page.body.Resources, page.body.totalResults > 0]).toEqual([[], true]);
  const sorted = await firm.scim('GET', '/Users?sortBy=userName&sortOrder=descending&attributes=userName&count=-5');
  expect(sorted.body.itemsPerPage).toBe(0);
  const names = (await firm.scim('GET', '/Users?sortBy=userName&sortOrder=descending')).body.Resources.map(
    ({ userName }: { userName: string }) => userName.toLowerCase(),
  );
  expect(names).toEqual(names.toSorted().toReversed());
});
