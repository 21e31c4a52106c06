import { expect } from 'vitest';
import { startTarget } from '../../support/target-server.ts';
import { newTool } from '../../tools/tool-instances/instances.ts';
import type { Hand } from './hand.ts';

/** Puts a text where the credentials of a tool instance go in; a provider sees it, and nobody else. */
export async function plantInInstance(marker: string, { owner, member, send, ask }: Hand): Promise<void> {
  const target = await startTarget((request, response) => {
    response.statusCode = request.url!.includes('wrong') ? 401 : 200;
    response.end(JSON.stringify({ echo: request.headers }));
  });
  const credential = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-key' }, validation: {} };
  const toolId = await newTool(owner, {
    config_schema: [
      { name: 'base_url', type: 'string' },
      { name: 'token', type: 'string', sensitive: true, validation: { max_length: 100, pattern: '^[0-9a-f]+$' } },
    ],
    credential_schema: [credential],
    action_schemas: [
      { name: 'get', url_template: '{{base_url}}/x?token={{token}}' },
      { name: 'wrong', url_template: '{{base_url}}/wrong/{{id}}', parameters: [{ name: 'id' }] },
    ],
  });
  const url = `${owner.home}/tool-instances`;
  const good = { base_url: `http://127.0.0.1:${target.port}`, token: marker, api_key: marker };
  const body = { tool_id: toolId, name: 'x', configuration: good };
  const key = { 'idempotency-key': `i-${marker.slice(0, 8)}` };
  const made = await send(owner, 'POST', url, body, key);
  expect(made.statusCode, made.body).toBe(201);
  expect((await send(owner, 'POST', url, body, key)).headers['idempotent-replayed']).toBe('true');
  const { instance_id } = made.json<{ instance_id: string }>();
  const instance = `${url}/${instance_id}`;

  // everything that can be wrong with a request that holds it
  const wrong: [object | string, number][] = [
    [{ ...body, name: undefined }, 422],
    [{ ...body, name: 5, configuration: { ...good, unknown: marker } }, 422],
    [{ ...body, configuration: { ...good, unknown: marker } }, 422],
    [{ ...body, configuration: { ...good, token: `${marker}!` } }, 422],
    [{ ...body, configuration: { ...good, token: marker.repeat(3) } }, 422],
    [{ ...body, configuration: { ...good, token: [marker] } }, 422],
    [{ ...body, configuration: { ...good, api_key: { a: marker } } }, 422],
    [{ ...body, configuration: { ...good, api_key: `${marker}\0` } }, 422],
    [{ ...body, configuration: { ...good, api_key: marker.repeat(2_000) } }, 422],
    [{ ...body, configuration: marker }, 422],
    [{ ...body, configuration: [marker] }, 422],
    [{ ...body, tool_id: 'tool_unknown' }, 404],
    [{ ...body, namespace_id: 'ns_unknown' }, 404],
    [`{"tool_id": "x", "configuration": {"token": "${marker}"}, oops}`, 422],
  ];
  for (const [payload, status] of wrong) {
    const answer = await send(owner, 'POST', url, payload, { 'content-type': 'application/json' });
    expect(answer.statusCode, answer.body).toBe(status);
    if (status === 422) await send(owner, 'PUT', instance, payload, { 'content-type': 'application/json' });
  }
  expect((await send(member, 'PUT', instance, { configuration: good })).statusCode).toBe(403);
  expect((await send(owner, 'PUT', instance, { configuration: good }, { 'if-match': '"99"' })).statusCode).toBe(412);
  expect((await send(owner, 'PUT', instance, { configuration: good })).statusCode).toBe(200);
  for (const path of ['', '?limit=5']) await send(member, 'GET', url + path);
  await send(member, 'GET', instance);

  const { orgId, workspaceId } = owner;
  const create = `mutation ($orgId: ID!, $workspaceId: ID!, $input: CreateToolInstanceInput!) {
    createToolInstance(orgId: $orgId, workspaceId: $workspaceId, input: $input) {
      id configuration credentialRefs credentialFields metadata effectiveActionSchemas } }`;
  for (const input of [
    { toolId, name: 'from GraphQL', configuration: good },
    { toolId, name: 5, configuration: good },
    { toolId, name: 'x', configuration: marker },
    { toolId, name: 'x', configuration: { ...good, token: [marker] } },
    { toolId, name: 'x', unknown: 1, configuration: good },
  ])
    await ask(owner, create, { orgId, workspaceId, input });
  await ask(
    owner,
    `mutation { createToolInstance(orgId: "${orgId}", workspaceId: "${workspaceId}",
      input: { toolId: "${toolId}", name: 5, configuration: { token: "${marker}" } }) { id } }`,
  );

  // the provider gets it, in the header and in the address; nothing of its answer is shown
  for (const tried of [
    {},
    { action: 'wrong', parameters: { id: 'x' } },
    { dry_run: true },
    { action: marker.slice(0, 9) },
  ])
    expect((await send(member, 'POST', `${instance}/test`, tried)).statusCode).toBe(200);
  expect(target.requests.map(({ headers }) => headers['x-key'])).toEqual([marker, marker]);
  expect(target.requests[0]!.path).toBe(`/x?token=${marker}`);
  await target.close();
  await send(member, 'POST', `${instance}/test`, {});
  await send(owner, 'POST', `${instance}/upgrade`, { configuration: { token: marker } });
  await send(owner, 'DELETE', instance);
}
