import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  DriverAdapterError,
  type SqlQuery,
} from '@prisma/driver-adapter-utils';
import * as engine from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { filesBelow } from './stamp.mjs';

/** A file of the Prisma schema. */
export interface SchemaFile {
  path: string;
  content: string;
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>;

const CATALOGUE_CHAR = 18; // the type "char" of PostgreSQL's catalogue, which the adapter cannot read
const BLANK_PADDED_CHAR = 1042;

class EngineAdapter extends PrismaPg {
  override async connect(): Promise<Adapter> {
    return mend(await super.connect());
  }
}

/** Prisma's adapter splits scripts at every semicolon, even in strings, and cannot read PostgreSQL's catalogue. */
function mend(adapter: Adapter): Adapter {
  const inner = adapter as unknown as { performIO(query: SqlQuery): Promise<{ fields?: { dataTypeID: number }[] }> };
  const performIO = inner.performIO.bind(adapter);
  const queryRaw = adapter.queryRaw.bind(adapter);
  const chars = new WeakMap<SqlQuery, ReadonlySet<number>>();
  inner.performIO = async (query) => {
    const result = await performIO(query);
    const found = (result.fields ?? [])
      .map((field, index) => ({ field, index }))
      .filter(({ field }) => field.dataTypeID === CATALOGUE_CHAR);
    for (const { field } of found) field.dataTypeID = BLANK_PADDED_CHAR;
    chars.set(query, new Set(found.map(({ index }) => index)));
    return result;
  };
  adapter.queryRaw = async (query) => {
    const result = await queryRaw(query);
    const columnTypes = result.columnTypes.map((type, index) =>
      chars.get(query)?.has(index) ? ColumnTypeEnum.Character : type,
    );
    return { ...result, columnTypes };
  };
  adapter.executeScript = async (script) => {
    try {
      await adapter.underlyingDriver().query(script);
    } catch (error) {
      throw asAdapterError(error);
    }
  };
  return adapter;
}

function asAdapterError(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError)) return error;
  const { code = 'XX000', severity = 'ERROR', message, detail, column, hint } = error;
  return new DriverAdapterError({ kind: 'postgres', code, severity, message, detail, column, hint });
}

/** Globals of Node that its types of this version lack. */
interface WebAssemblyApi {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: Record<string, object>) => { exports: { __wbindgen_start(): void } };
}

let isLoaded = false;

/** The package expects a bundler to load its WebAssembly, and a registry that receives panic messages. */
function load(): void {
  if (isLoaded) return;
  const { WebAssembly } = globalThis as unknown as { WebAssembly: WebAssemblyApi };
  const dir = path.dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'));
  const module = new WebAssembly.Module(readFileSync(path.join(dir, 'schema_engine_bg.wasm')));
  const { exports } = new WebAssembly.Instance(module, { './schema_engine_bg.js': engine });
  engine.__wbg_set_wasm(exports);
  Object.assign(globalThis, {
    PRISMA_WASM_PANIC_REGISTRY: { set_message: (message: string) => console.error(message) },
  });
  exports.__wbindgen_start();
  isLoaded = true;
}

/** All files of a schema folder. */
export function readSchema(dir: string): SchemaFile[] {
  return filesBelow(dir)
    .filter((file) => file.endsWith('.prisma'))
    .map((file) => ({ path: path.relative(dir, file), content: readFileSync(file, 'utf8') }));
}

/**
 * The SQL that migrates the database to the schema; empty when nothing is missing. What Prisma cannot express
 * (triggers, functions, partial and expression indexes, checks) is not compared.
 */
export async function diffToSchema(url: string, files: SchemaFile[]): Promise<string> {
  load();
  const { host, port, user, password, database } = new pg.Client({ connectionString: url });
  const adapter = new EngineAdapter({
    host,
    port,
    user,
    password: password ?? undefined,
    database,
    max: 1,
    idleTimeoutMillis: 100,
  });
  const datamodels = files.map((file): [string, string] => [file.path, file.content]);
  const instance = await engine.SchemaEngine.new(
    { datamodels },
    () => undefined,
    bindMigrationAwareSqlAdapterFactory(adapter),
  );
  try {
    const { stdout } = await instance.diff({
      from: { tag: 'schemaDatasource', files, configDir: '.' },
      to: { tag: 'schemaDatamodel', files },
      script: true,
      exitCode: null,
      filters: { externalTables: [], externalEnums: [] },
    });
    const sql = (stdout ?? '').trim();
    return sql === '-- This is an empty migration.' ? '' : sql;
  } finally {
    instance.free();
  }
}
