// The last step of a build: checks, with the compiled code, the operation documents against the schema and the built-in
// recipes. The digests of what passed go beside the service, which then starts without checking the same files again.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './stamp.mjs';

/**
 * @param {string} module its path in `dist`
 * @returns {Promise<unknown>}
 */
const built = (module) => import(pathToFileURL(path.join(root, 'dist', module)).href);

/** @type {Record<string, string>} */
const digests = {};
/** @param {string} what */
const noted = (what) => (/** @type {string} */ digest) => {
  digests[what] = digest;
  return false; // not known yet: it is checked
};

try {
  const { compileOperations } = /** @type {typeof import('../rest/compile.ts')} */ (await built('rest/compile.js'));
  const { schema } = /** @type {typeof import('../src/wiring/schema.ts')} */ (await built('src/wiring/schema.js'));
  const { buildChecksFile, operationsDir } = /** @type {typeof import('../src/paths.ts')} */ (
    await built('src/paths.js')
  );
  const { builtInRecipesDir, readBuiltInRecipes } =
    /** @type {typeof import('../src/pipelines/recipes/built-in-recipes.ts')} */ (
      await built('src/pipelines/recipes/built-in-recipes.js')
    );
  compileOperations(schema, operationsDir, noted('operations'));
  readBuiltInRecipes(builtInRecipesDir, noted('recipes'));
  writeFileSync(buildChecksFile, `${JSON.stringify(digests, null, 2)}\n`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
