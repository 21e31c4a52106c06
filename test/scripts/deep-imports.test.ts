import { expect, it } from 'vitest';
import { forbiddenDeepImports } from '../../scripts/deep-imports.mjs';

const XML = '@node-saml/node-saml/lib/xml.js';

it.each([
  ['src/a.ts', 'graphql/jsutils/inspect.js'],
  ['src/identity/sso/saml/decryption.ts', XML],
  ['src/platform/postgres/database.ts', 'undici/lib/core/symbols.js'],
])('forbids %s to import %s', (source, module) => {
  expect(forbiddenDeepImports([{ source, module }])).toEqual([`private-api: ${source} → ${module}`]);
});

it.each([
  ['src/identity/sso/saml/saml-xml.ts', XML],
  ['src/a.ts', 'ajv/dist/2020.js'],
  ['src/a.ts', 'graphql'],
  ['src/a.ts', '@node-saml/node-saml'],
  ['src/a.ts', 'node:fs/promises'],
  ['src/a.ts', '../kernel/ids.ts'],
  // the package itself says what can be imported
  ['src/a.ts', 'gpt-tokenizer/encoding/o200k_base'],
])('allows %s to import %s', (source, module) => {
  expect(forbiddenDeepImports([{ source, module }])).toEqual([]);
});
