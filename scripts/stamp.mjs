import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of package.json. */
export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/**
 * All files below a path, sorted; the path itself if it is a file; nothing if it does not exist.
 * @param {string} start
 * @returns {string[]}
 */
export function filesBelow(start) {
  if (!existsSync(start)) return [];
  if (statSync(start).isFile()) return [start];
  return readdirSync(start, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
}

/**
 * Hash of the names and contents of files, given as paths relative to the root.
 * @param {readonly string[]} inputs files or folders
 * @returns {string}
 */
export function hashOf(inputs) {
  const hash = createHash('sha256');
  for (const file of inputs.flatMap((input) => filesBelow(path.join(root, input)))) {
    hash
      .update(`${path.relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return hash.digest('hex');
}

/**
 * What is made of files, given as paths relative to the root.
 * @typedef {{ name: string, inputs: readonly string[], outputs: readonly string[] }} Made
 */

/** @param {string} name */
const stampOf = (name) => path.join(root, 'node_modules', '.cache', 'stamps', name);

/**
 * Whether it was made of these very inputs and all outputs are still there.
 * @param {Made} made
 * @param {string} [hash] of the inputs
 * @returns {boolean}
 */
export function isCurrent({ name, inputs, outputs }, hash = hashOf(inputs)) {
  const stamp = stampOf(name);
  return (
    existsSync(stamp) &&
    readFileSync(stamp, 'utf8') === hash &&
    outputs.every((output) => existsSync(path.join(root, output)))
  );
}

/**
 * Is told what is done, like "compiling", before it is.
 * @typedef {(step: string) => void} OnStep
 */

/**
 * Runs `make` unless its outputs are current.
 * @param {Made & { make: () => void, doing: string }} step
 * @param {OnStep} [onStep]
 * @returns {boolean} whether it ran
 */
export function makeIfChanged({ make, doing, ...made }, onStep = () => undefined) {
  const hash = hashOf(made.inputs);
  if (isCurrent(made, hash)) return false;
  onStep(doing);
  const stamp = stampOf(made.name);
  rmSync(stamp, { force: true }); // so that a `make` that fails half-way never counts as done
  make();
  mkdirSync(path.dirname(stamp), { recursive: true });
  writeFileSync(stamp, hash);
  return true;
}
