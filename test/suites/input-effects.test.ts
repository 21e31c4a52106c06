import { isDeepStrictEqual } from 'node:util';
import { type GraphQLInputField, getNamedType, isInputObjectType, isRequiredInputField } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import type { InputCase, Lab } from '../support/input-effects/input-case.ts';
import { inputCases } from '../support/input-effects/input-cases.ts';
import { found, holds, type InputLeaf, leavesOf, valueAt } from '../support/input-effects/input-leaves.ts';
import { argumentsFor, mutate, mutations, readAgain } from '../support/input-effects/input-trials.ts';
import { otherValues } from '../support/input-effects/input-values.ts';
import { PUBLIC_URL } from '../support/input-effects/sign-in.cases.ts';
import { operationAt } from '../support/operations.ts';
import type { RootField } from '../support/root-fields.ts';
import { constraintsOf } from '../support/samples.ts';
import { createWorld, findKey, makeOne, type World } from '../support/world.ts';

/*
 * A field of an input that is accepted, validated and then dropped, or stored in another column, breaks no promise that
 * a test of its resource happens to state. So every mutation gets every field here, and each value must be read
 * afterwards under the name that it was given by.
 */

type Json = Record<string, unknown>;

let app: TestApp;
let world: World;
const servers: { close(): Promise<unknown> }[] = [];
let lab: Lab;
/** The world with other ids where an input takes one: what refers to the first refers to the second afterwards. */
let others: World;

beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', PUBLIC_URL } });
  world = await createWorld(app);
  lab = { app, world, closeLater: (server) => servers.push(server) };
  others = { ...world, ids: { ...world.ids, ...(await secondIds()) } };
});
afterAll(async () => {
  await app.close();
  await Promise.all(servers.map((server) => server.close()));
});

const W = '/v1/orgs/{org_id}/workspaces/{workspace_id}';
const GRAPH = `${W}/apps/{app_id}/namespaces/{namespace_id}`;
/** The routes that make what inputs refer to, by the name of its id. */
const referredTo: Record<string, string> = {
  augmentation_id: `${W}/apps/{app_id}/augmentations`,
  endpoint_id: `${W}/apps/{app_id}/endpoints`,
  entity_id: `${GRAPH}/entities`,
  logical_model_id: '/v1/orgs/{org_id}/model-catalog',
  memory_id: `${GRAPH}/memories`,
  provider_account_id: '/v1/orgs/{org_id}/provider-accounts',
  thread_id: `${W}/namespaces/{namespace_id}/threads`,
  tool_id: '/v1/orgs/{org_id}/tools',
  tool_instance_id: `${W}/tool-instances`,
};

async function secondIds(): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  for (const [name, path] of Object.entries(referredTo)) {
    const id = findKey(await makeOne(app, world, operationAt('POST', path)), [name, 'instance_id']);
    if (!id) throw new Error(`POST ${path} answers no ${name}.`);
    ids[name] = id;
  }
  return ids;
}

const caseOf = ({ name }: RootField): InputCase => inputCases[name] ?? {};
const isUpdate = ({ name }: RootField) => name.startsWith('update');

/** Whether an argument names the place or the thing that a mutation is about: another value must be refused. */
const namesTarget = ({ path, type }: InputLeaf) => !path.includes('.') && getNamedType(type).name === 'ID';

interface Target {
  given: Json;
  token: string | null;
}

/** A call that succeeds, with what must be given alone. */
async function targetOf(root: RootField): Promise<Target> {
  const { given = {}, token = world.accounts.owner.accessToken } = (await caseOf(root).prepare?.(lab)) ?? {};
  return { given: merged(await argumentsFor(app, world, root), given), token };
}

const merged = (target: Json, given: Json): Json => ({
  ...target,
  ...given,
  ...(given.input ? { input: { ...(target.input as Json), ...(given.input as Json) } } : {}),
});

/** The same arguments with another value at one path. */
function changed(given: Json, path: string, value: unknown): Json {
  const [name, ...rest] = path.split('.');
  return {
    ...given,
    [name!]: rest.length === 0 ? value : changed((given[name!] ?? {}) as Json, rest.join('.'), value),
  };
}

const nobodys = (id: unknown): string => String(id).replace(/.{4}$/, 'ZZZZ');

/** Calls a mutation, and reads anew what it answers. */
async function call(root: RootField, { given, token }: Target): Promise<unknown> {
  const { result, code, text } = await mutate(app, root, given, token);
  if (code) throw new Error(`${root.name} with ${JSON.stringify(given)} answered ${text}`);
  return readAgain(app, result, token ?? '');
}

/**
 * Tries wrong values of everything that names what a mutation is about, or that it demands, and then the right ones.
 * @returns what is read after that, and the paths that were looked at
 */
async function refuseWrong(root: RootField, target: Target) {
  const { demands = {} } = caseOf(root);
  const paths: string[] = [];
  const refuse = async (path: string, value: unknown, { given, token }: Target) => {
    paths.push(path);
    const answer = await mutate(app, root, changed(given, path, value), token);
    expect(answer.code, `${root.name} takes any ${path}: ${answer.text}`).not.toBeNull();
    expect(answer.code, answer.text).not.toBe('INTERNAL_SERVER_ERROR');
    return answer;
  };
  for (const leaf of leavesOf(root)) {
    const { path, constraints } = leaf;
    // a try with a wrong value may use up what it is tried on
    if (path in demands) await refuse(path, demands[path], await targetOf(root));
    else if (namesTarget(leaf) || constraints.sameAs) await refuse(path, nobodys(valueAt(target.given, path)), target);
  }
  const versioned = leavesOf(root).some(({ path }) => path === 'expectedVersion');
  if (!versioned) return { before: await call(root, target), paths };
  // what is indexed in the background has another version afterwards
  await app.jobsDone();
  const { text, code } = await refuse('expectedVersion', 999_999_999, target);
  expect(code, text).toBe('PRECONDITION_FAILED');
  const expectedVersion = Number(/"current_version":(\d+)/.exec(text)?.[1]);
  return { before: await call(root, { ...target, given: { ...target.given, expectedVersion } }), paths };
}

/** What a value is found as afterwards. */
function isRead(root: RootField, path: string, read: unknown, given: unknown): boolean {
  const how = caseOf(root).readAs?.[path] ?? path;
  return typeof how === 'function' ? how(read, given) : holds(found(read, how), given);
}

/**
 * Gives all fields at once.
 * @returns what is wrong with each field that was given, by its path; what was given last; and what is read then
 */
async function giveAll(root: RootField, first: Target, before: unknown) {
  const { variants, prepare } = caseOf(root);
  const leaves = leavesOf(root);
  const verdicts = new Map<string, string | null>();
  let [target, values, after] = [first, {} as Json, before];
  for (const variant of (await variants?.(lab)) ?? [{}]) {
    if (!isUpdate(root)) target = await targetOf(root);
    const { given: fixed } = target;
    const prepared = prepare ? leaves.map(({ path }) => [path, valueAt(fixed, path)] as const) : [];
    const overrides = Object.fromEntries(prepared.filter(([, value]) => value !== undefined));
    const was = isUpdate(root) ? after : before;
    values = otherValues(root, others, was, { ...overrides, ...variant });
    after = await call(root, { ...target, given: merged(fixed, values) });
    for (const { path } of leaves) {
      const given = valueAt(values, path);
      if (given === undefined || verdicts.get(path) === null) continue;
      if (isRead(root, path, was, given)) verdicts.set(path, `${JSON.stringify(given)} was there before`);
      else if (isRead(root, path, after, given)) verdicts.set(path, null);
      else verdicts.set(path, `given ${JSON.stringify(given)}, read ${JSON.stringify(found(after, path))}`);
    }
  }
  return { verdicts, values, after };
}

type Given = Awaited<ReturnType<typeof giveAll>> & { target: Target; paths: string[] };
const tried = new Map<string, Promise<Given>>();

/** Gives a mutation all of its input, once. */
function tryAll(root: RootField): Promise<Given> {
  const trial = async (): Promise<Given> => {
    const target = await targetOf(root);
    const { before, paths } = await refuseWrong(root, target);
    const { effects = {}, without = {} } = caseOf(root);
    const known = [...paths, ...Object.keys(effects), ...Object.keys(without)];
    const isOpen = leavesOf(root).some(({ path }) => !known.includes(path));
    const given = isOpen ? await giveAll(root, target, before) : { verdicts: new Map(), values: {}, after: before };
    return { ...given, target, paths: known };
  };
  const known = tried.get(root.name) ?? trial();
  tried.set(root.name, known);
  return known;
}

const WHERE = 'Say in test/support/input-effects what the field does, if its name does not tell, or mend the service';

const titled = (roots: readonly RootField[]) => roots.map((root) => [root.name, root] as const);

test.each(titled(mutations.filter(({ field }) => field.args.length > 0)))(
  '%s: every field that is given is read afterwards',
  async (_name, root) => {
    const { verdicts, paths } = await tryAll(root);
    for (const effect of Object.values(caseOf(root).effects ?? {})) await effect(lab);
    const wrong = leavesOf(root).flatMap(({ path }) => {
      if (paths.includes(path)) return [];
      const verdict = verdicts.has(path) ? verdicts.get(path) : 'no sample gives it';
      return verdict === null ? [] : [`${path}: ${verdict}`];
    });
    expect(wrong, `${root.name} has fields without an effect. ${WHERE}`).toEqual([]);
  },
);

/** Fields of the input that need not be given. */
function optionalFields({ field }: RootField): GraphQLInputField[] {
  const input = getNamedType(field.args.find(({ name }) => name === 'input')?.type);
  return isInputObjectType(input) ? Object.values(input.getFields()).filter((of) => !isRequiredInputField(of)) : [];
}

const updates = mutations.filter((root) => isUpdate(root) && optionalFields(root).length > 0);

test.each(titled(updates))('%s: a field that is left out stays as it is', async (_name, root) => {
  const { target, values, after } = await tryAll(root);
  const next = otherValues(root, others, after, {}).input as Json;
  const texts = Object.entries(next).filter(
    ([name, value]) => typeof value === 'string' && name in (values.input as Json),
  );
  let was = after;
  // two, one after the other: each shows that the other one stays
  for (const [name, value] of texts.slice(0, 2)) {
    const read = await call(root, { ...target, given: { ...target.given, input: { [name]: value } } });
    const kept = optionalFields(root).filter((field) => field.name !== name);
    for (const { name: field } of kept)
      expect(found(read, field), `${field}, after ${name}`).toEqual(found(was, field));
    was = read;
  }
});

test.each(titled(updates))('%s: null clears what may be empty', async (_name, root) => {
  const { target, after } = await tryAll(root);
  const { notCleared = {} } = caseOf(root);
  const clears = optionalFields(root).filter(
    (field) => !constraintsOf(field).notNull && !(`input.${field.name}` in notCleared),
  );
  const input = Object.fromEntries(clears.map(({ name }) => [name, null]));
  const read = await call(root, { ...target, given: { ...target.given, input } });
  const left = clears.filter(
    ({ name }) => isDeepStrictEqual(found(read, name), found(after, name)) && !isEmpty(found(after, name)),
  );
  expect(
    left.map(({ name }) => `${name}: ${JSON.stringify(found(read, name))}`),
    WHERE,
  ).toEqual([]);
});

/** Null, an empty list, or an object of nothing but those. */
const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'object' && Object.values(value).every(isEmpty));

test('no case is left of what no mutation takes any more', () => {
  const stale = Object.entries(inputCases).flatMap(([name, { prepare: _prepare, variants: _variants, ...tables }]) => {
    const root = mutations.find((mutation) => mutation.name === name);
    const paths = root ? leavesOf(root).map(({ path }) => path) : [];
    const fields = root ? optionalFields(root).map((field) => `input.${field.name}`) : [];
    const named = Object.values(tables).flatMap((table) => Object.keys(table ?? {}));
    const unknown = named.filter((path) => !paths.includes(path) && !fields.includes(path));
    return root ? unknown.map((path) => `${name}.${path}`) : [name];
  });
  expect(stale).toEqual([]);
});
