import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts';
import { changesOf, createUser, type Person, register } from '../../support/person.ts';

/** The TXT records of names; `null` is a server that is silent. */
const zone = new Map<string, readonly string[] | null>();
let dns: DnsServer;
let app: TestApp;
let owner: Person;
beforeAll(async () => {
  dns = await startDnsServer(({ name, type }) => {
    const texts = zone.get(name);
    if (texts === null) return null;
    return type === 'TXT' ? (texts ?? []).map((text) => ({ text })) : [];
  });
  app = await startTestApp({ env: { OUTBOUND_DNS: dns.address } });
  owner = await register(app, { name: 'owner' });
});
afterAll(async () => {
  await app.close();
  await dns.close();
});

const DOMAIN = `{ domain state provenAt provenBy provenByUser { id }
  proof { method startedAt recordName recordValue mailedTo } }`;
interface Domain {
  domain: string;
  state: string;
  provenAt: string | null;
  provenBy: string | null;
  proof: { method: string; recordName: string | null; recordValue: string | null; mailedTo: string | null } | null;
}
interface Refusal {
  code: string;
  details: Record<string, unknown>;
}

async function provider(by = owner) {
  const domain = `d${randomBytes(6).toString('hex')}.example.test`;
  const { body } = await by.call<{ idp_id: string }>('POST', `/v1/orgs/${by.orgId}/identity-providers`, {
    name: 'P',
    protocol: 'oidc',
    verified_domains: [domain],
  });
  const id = body.idp_id;
  const mutate = async (name: string, type: string, input: object, as: Person = by) => {
    const { data, errors } = (await as.ask<Record<string, Domain> | null>(
      `mutation ($orgId: ID!, $id: ID!, $input: ${type}!) { ${name}(orgId: $orgId, id: $id, input: $input) ${DOMAIN} }`,
      { orgId: by.orgId, id, input },
    )) as { data: Record<string, Domain> | null; errors?: { message: string; extensions: Refusal }[] };
    return errors ? { refused: { ...errors[0]!.extensions, message: errors[0]!.message } } : { domain: data![name]! };
  };
  const listed = async () => {
    const { data } = await by.ask<{ identityProvider: { domains: Domain[]; resourceVersion: number } }>(
      `query ($orgId: ID!, $id: ID!) {
        identityProvider(orgId: $orgId, id: $id) { resourceVersion domains ${DOMAIN} } }`,
      { orgId: by.orgId, id },
    );
    return data.identityProvider;
  };
  return {
    id,
    domain,
    url: `/v1/orgs/${by.orgId}/identity-providers/${id}`,
    listed,
    start: (method: string, as?: Person) => mutate('startDomainProof', 'StartDomainProofInput', { domain, method }, as),
    check: (code?: string, as?: Person) =>
      mutate('checkDomainProof', 'CheckDomainProofInput', { domain, ...(code && { code }) }, as),
    mutate,
  };
}

test('a domain is proven by a TXT record, and the proof ends with the domain', async () => {
  const { id, domain, url, listed, start, check } = await provider();
  const name = `_platform-verification.${domain}`;
  const claimed = { domain, state: 'claimed', provenAt: null, provenBy: null, provenByUser: null };
  expect((await listed()).domains).toEqual([{ ...claimed, proof: null }]);
  const reasonOf = ({ refused }: Awaited<ReturnType<typeof check>>) => refused?.details.reason;
  expect(reasonOf(await check())).toBe('proof_not_started');
  const before = (await listed()).resourceVersion;
  const { proof } = (await start('dns')).domain!;
  expect(proof).toEqual({
    method: 'dns',
    startedAt: expect.any(String) as string,
    recordName: name,
    recordValue: expect.stringMatching(/^platform-verification=[\w-]{43}$/) as string,
    mailedTo: null,
  });
  expect((await listed()).domains).toEqual([{ ...claimed, proof }]);
  expect((await listed()).resourceVersion).toBe(before + 1);
  expect((await check()).refused).toMatchObject({
    code: 'RESOURCE_CONFLICT',
    details: { reason: 'proof_not_found', resource_id: id },
    message: expect.stringContaining(`'${proof!.recordValue}' at '${name}' yet. It has no TXT record.`) as string,
  });
  zone.set(name, ['v=spf1 -all', 'platform-verification=of-somebody-else']);
  expect((await check()).refused!.message).toContain('It has other TXT records.');
  zone.set(name, ['v=spf1 -all', proof!.recordValue!]);
  const { domain: proven } = await check();
  const state = { state: 'proven', provenAt: expect.any(String) as string, provenBy: owner.userId, proof: null };
  expect(proven).toEqual({ ...claimed, ...state, provenByUser: { id: owner.userId } });
  const changes = (await changesOf(app, id)).filter(({ statusCode }) => statusCode < 300);
  expect(changes.map(({ metadata }) => metadata)).toMatchObject([
    { protocol: 'oidc' },
    { proof_started: domain, method: 'dns' },
    { proven: domain, method: 'dns' },
  ]);
  // another change of the provider leaves it, also the same domain in another spelling
  await owner.call('PUT', url, { name: 'Q', verified_domains: [`${domain.toUpperCase()}.`] });
  expect((await listed()).domains).toMatchObject([{ domain, state: 'proven' }]);
  await owner.call('PUT', url, { verified_domains: [] });
  await owner.call('PUT', url, { verified_domains: [domain] });
  expect((await listed()).domains).toEqual([{ ...claimed, proof: null }]);
});

test('a new start makes the record of an earlier one worthless', async () => {
  const { domain, start, check } = await provider();
  const earlier = (await start('dns')).domain!.proof!;
  zone.set(`_platform-verification.${domain}`, [earlier.recordValue!]);
  const later = (await start('dns')).domain!.proof!;
  expect((await check()).refused!.details.reason).toBe('proof_not_found');
  zone.set(`_platform-verification.${domain}`, [later.recordValue!]);
  expect((await check()).domain!.state).toBe('proven');
});

test('a silent DNS server is an error of its own, and nothing is proven', async () => {
  const { domain, listed, start, check } = await provider();
  await start('dns');
  zone.set(`_platform-verification.${domain}`, null);
  expect((await check()).refused).toMatchObject({ code: 'UPSTREAM_TIMEOUT', details: { upstream: 'dns' } });
  expect((await listed()).domains).toMatchObject([{ state: 'claimed', proof: { method: 'dns' } }]);
});

test('a domain is proven by a code that its postmaster gets', async () => {
  const { domain, start, check } = await provider();
  const { proof } = (await start('mail')).domain!;
  const mailedTo = `postmaster@${domain}`;
  expect(proof).toMatchObject({ method: 'mail', recordName: null, recordValue: null, mailedTo });
  await app.jobsDone();
  const mails = app.mails.filter(({ to }) => to === mailedTo);
  expect(mails).toHaveLength(1);
  const { subject, text } = mails[0]!;
  expect(subject).toBe(`Is ${domain} yours?`);
  expect(text).toContain(`${owner.username} of '${owner.username}'s organization'`);
  const code = /^([\w-]{43})$/m.exec(text)![1]!;
  const wrong = { code: 'VALIDATION_ERROR', details: { issues: [{ path: ['input', 'code'] }] } };
  for (const bad of [undefined, 'wrong', code.slice(1)]) expect((await check(bad)).refused).toMatchObject(wrong);
  expect((await check(`${code} `)).domain!.state).toBe('proven');
  expect((await check(code)).refused!.details.reason).toBe('proof_not_started');
});

test('a proof that was started too long ago is over', async () => {
  const { domain, start, check } = await provider();
  await start('mail');
  await app.jobsDone();
  const code = /^([\w-]{43})$/m.exec(app.mails.findLast(({ to }) => to === `postmaster@${domain}`)!.text)![1]!;
  await app.database.pool.query(
    `update identity_provider_domains set proof_started_at = now() - interval '25 hours' where domain = $1`,
    [domain],
  );
  expect((await check(code)).refused!.details.reason).toBe('proof_not_started');
});

describe('nobody else', () => {
  test('proves a domain of another provider, nor of another organization', async () => {
    const [one, two] = [await provider(), await provider()];
    const input = { domain: two.domain, method: 'dns' };
    const { refused } = await one.mutate('startDomainProof', 'StartDomainProofInput', input);
    expect(refused).toMatchObject({ code: 'VALIDATION_ERROR', details: { issues: [{ path: ['input', 'domain'] }] } });
    const editor = await createUser(app, owner, { role: 'editor' });
    expect((await one.start('dns', editor)).refused!.details.required_permission).toBe('identity_provider:update');
    expect((await one.start('dns', await register(app))).refused!.details.required_permission).toBe(
      'organization:access',
    );
  });

  test('is mailed to at will: three mails an hour for a domain', async () => {
    const { start } = await provider();
    for (let n = 0; n < 3; n++) expect((await start('mail')).refused).toBeUndefined();
    expect((await start('mail')).refused!.code).toBe('RATE_LIMIT_EXCEEDED');
  });
});
