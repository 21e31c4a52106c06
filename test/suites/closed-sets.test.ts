import { readFileSync } from 'node:fs';
import path from 'node:path';
import eld from 'eld/extrasmall';
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isIntrospectionType,
  isObjectType,
  isScalarType,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesBelow } from '../../scripts/stamp.mjs';
import { languageNames } from '../../src/kernel/languages.ts';
import { projectRoot } from '../../src/paths.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { camelCase } from '../support/prisma-rows.ts';
import { constraintsOf } from '../support/samples.ts';

/** The models of Prisma by the names of their tables. */
function modelsByTable(): Map<string, string> {
  const text = filesBelow(path.join(projectRoot, 'prisma', 'schema'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  const models = [...text.matchAll(/^model (\w+) \{.*?^\}/gms)];
  return new Map(models.map(([model, name]) => [/@@map\("(\w+)"\)/.exec(model)![1]!, name!]));
}

type Element = GraphQLField<unknown, unknown> | GraphQLArgument | GraphQLInputField;

const types = Object.values(schema.getTypeMap()).filter((type) => !isIntrospectionType(type));
const elements = types.flatMap((type): [string, Element][] => {
  if (isInputObjectType(type))
    return Object.values(type.getFields()).map((field) => [`${type.name}.${field.name}`, field]);
  if (!isObjectType(type)) return [];
  return Object.values(type.getFields()).flatMap((field): [string, Element][] => [
    [`${type.name}.${field.name}`, field],
    ...field.args.map((argument): [string, Element] => [`${type.name}.${field.name}(${argument.name}:)`, argument]),
  ]);
});
const texts = elements.filter(([, { type }]) => {
  const named = getNamedType(type);
  return isScalarType(named) && named.name === 'String';
});

/** A list of words, such as "`a`, `b` or `c`". */
const LIST = /`[a-z]\w+`(?:, `[a-z]\w+`)*,? or `[a-z]\w+`/;
/** What says that there are others. */
const OPEN = /another word|open set|…|such as|like `|`https`, or `http` on this machine/i;

/** Texts that name a few words, and have many others. */
const others: Record<string, string> = {
  'ApiToken.scopes': 'a resource is one, too',
  'ApplicationGrant.scopes': 'names of permissions are others',
};

describe('a closed set of words', () => {
  it('is an enum where an input is held to it', () => {
    const held = texts.filter(([, element]) => {
      const { oneOf, item } = constraintsOf(element);
      return oneOf !== undefined || item?.oneOf !== undefined;
    });
    expect(held.map(([name]) => name)).toEqual([]);
  });

  it('is an enum where a description lists it', () => {
    const listed = texts.filter(
      ([name, { description }]) => !(name in others) && LIST.test(description ?? '') && !OPEN.test(description ?? ''),
    );
    expect(listed.map(([name, { description }]) => `${name}: ${description}`)).toEqual([]);
    for (const name of Object.keys(others)) expect(texts.map(([text]) => text)).toContain(name);
  });

  it('has each language that is detected in a text', () => {
    expect(Object.values(eld.info().Languages).filter((code) => !(code in languageNames))).toEqual([]);
  });

  it('says what each word means', () => {
    const silent = types
      .filter(isEnumType)
      .flatMap((type) =>
        type.getValues().flatMap(({ name, description }) => (description ? [] : [`${type.name}.${name}`])),
      );
    expect(silent).toEqual([]);
  });

  it('is spelled in one way: enums with other names in REST are those that were there first', () => {
    const spelled = types.filter(isEnumType).filter(({ extensions }) => !extensions.isWords);
    expect(spelled.map(({ name }) => name).sort()).toEqual([
      'ModelOutcome',
      'RouteLimitScope',
      'RouteReason',
      'SecretVersionState',
      'SeriesMetric',
      'SeriesStep',
    ]);
  });
});

describe('a column that the database holds to a set of words', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  /** Columns that no field shows as they are, with the reason. */
  const unseen: Record<string, string> = {
    'notifications.digest': 'which digest a notification waits for',
    'files.state': 'how far the service is with the bytes of a file',
    'identity_grants.role': 'what a provider gave, beside the role of the member',
    'identity_grants.own_role': 'the role that a member has without the provider',
    'identity_providers.authority': 'the rights of whoever changed the provider last',
  };

  /** Columns that another type than that of their table shows. */
  const shownBy: Record<string, string> = { 'identity_provider_domains.proof_method': 'DomainProof' };

  it('is shown as an enum that has all of them', async () => {
    const { rows } = await app.database.pool.query<{ table: string; columns: string[]; check: string }>(
      `select c.conrelid::regclass::text as table, pg_get_constraintdef(c.oid) as check,
         array(select attname::text from pg_attribute a
           where a.attrelid = c.conrelid and a.attnum = any(c.conkey)) as columns
       from pg_constraint c where c.contype = 'c' and pg_get_constraintdef(c.oid) ~ 'ANY'`,
    );
    const sets = rows.flatMap(({ table, columns, check }) =>
      columns.flatMap((column) => {
        const list = new RegExp(`\\b"?${column}"?(?:\\)::text)? = ANY \\(\\(?ARRAY\\[([^\\]]*)\\]`).exec(check)?.[1];
        const words = [...(list ?? '').matchAll(/'([^']*)'/g)].map(([, word]) => word!);
        return words.length > 0 ? [{ name: `${table}.${column}`, table, column, words }] : [];
      }),
    );
    expect(sets.length).toBeGreaterThan(8);
    const models = modelsByTable();
    const wrong = sets.flatMap(({ name, table, column, words }) => {
      if (name in unseen) return [];
      const type = schema.getType(shownBy[name] ?? models.get(table) ?? '');
      const fields = isObjectType(type) ? Object.values(type.getFields()) : [];
      const shown = fields.find(({ extensions }) => extensions.pothosExposedField === camelCase(column));
      const set = shown && getNamedType(shown.type);
      if (!isEnumType(set)) return [`${name} is ${String(set)}`];
      const values = set.getValues().map(({ value }) => value as string);
      return words.filter((word) => !values.includes(word)).map((word) => `${name} may be ${word}`);
    });
    expect(wrong).toEqual([]);
  });
});
