// Imports of files inside packages that are no public API, and the modules that may have them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './stamp.mjs';

/**
 * What a package documents although it does not list what it exports, and what a single module is made for.
 * `from`: how the path of the module begins.
 */
const EXCEPTIONS = [
  { from: '', module: 'ajv/dist/2020.js', why: 'the documented address of JSON Schema 2020-12' },
  {
    from: 'src/identity/sso/saml/saml-xml.',
    module: '@node-saml/node-saml/lib/xml.js',
    why: 'reads, decrypts and verifies parts of messages, which the public API does not',
  },
];

const INSIDE = /^((?:@[^/]+\/)?[^@./:][^/:]*)\/./;

/** @param {string} name of a package @returns {boolean} whether Node refuses what the package does not export */
function listsExports(name) {
  const file = path.join(root, 'node_modules', name, 'package.json');
  return 'exports' in JSON.parse(readFileSync(file, 'utf8'));
}

/**
 * @param {{ source: string, module: string }[]} imports
 * @param {(name: string) => boolean} [isSafe] whether all that can be imported of a package is public
 * @returns {string[]} those that are forbidden
 */
export const forbiddenDeepImports = (imports, isSafe = listsExports) =>
  imports
    .filter(({ source, module }) => {
      const name = INSIDE.exec(module)?.[1];
      if (name === undefined || isSafe(name)) return false;
      return !EXCEPTIONS.some((known) => known.module === module && source.startsWith(known.from));
    })
    .map(({ source, module }) => `private-api: ${source} → ${module}`);
