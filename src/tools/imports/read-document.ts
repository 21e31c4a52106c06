import { isJsonObject } from '../../kernel/json-object.ts';
import { entryNames } from '../tools/placeholders.ts';
import { addressOf, serversOf } from './base-address.ts';
import { securityOf } from './credentials-of.ts';
import { DocumentFault, parsedDocument } from './document-text.ts';
import { Gaps } from './gaps.ts';
import type { ReadDocument, ReadOperation, ReadTask } from './import-plan.ts';
import { type ActionContext, actionOf, type FoundOperation } from './operation-action.ts';
import { at, cut, DocumentReferences, Gap, type JsonPart, type LocatedPart, within } from './references.ts';
import { plainName, UniqueNames } from './unique-names.ts';

const METHODS = ['get', 'put', 'post', 'delete', 'head', 'patch'];
const OTHER_METHODS = ['options', 'trace', 'query'];
const MAX_OPERATIONS = 20_000;
const MAX_KEY = 500;
const MAX_NAME = 100;

/** Reads an OpenAPI document. Its size, its references and its schemas are bounded. @throws DocumentFault */
export function readDocument(task: ReadTask): ReadDocument {
  const { text, documentUrl, baseUrl, keys, search, most } = task;
  const root = parsedDocument(text);
  const format = formatOf(root);
  const references = new DocumentReferences(root);
  const gaps = new Gaps();
  const found = operationsOf(root, references, gaps);
  const servers = serversOf(root, '', documentUrl);
  if (baseUrl === null) for (const gap of servers?.gaps ?? []) gaps.add(gap, null);
  const addresses = servers?.addresses ?? (documentUrl === null ? [] : [new URL('/', documentUrl).origin]);
  const base = baseUrl === null ? (addresses[0] ?? null) : addressOf(baseUrl, null);
  const security = securityOf(
    root,
    references,
    found.map(({ value }) => value),
    documentUrl,
  );
  for (const gap of security.gaps) gaps.add(gap, null);
  if (at(root, 'webhooks') !== undefined)
    gaps.add(new Gap('unsupported', '/webhooks', 'Webhooks are no actions.'), null);
  const names = namesOf(found);
  const wanted = wantedOf(found, { keys, search, most });
  const context = {
    references,
    placements: placementsOf(security.credentialSchema),
    reserved: [...task.reserved, ...entryNames(security.credentialSchema)],
  };
  const operations = wanted.read.map((operation): ReadOperation => {
    const add = (gap: Gap) => gaps.add(gap, operation.key);
    return {
      operation: operation.key,
      place: operation.place,
      operationId: cut(at(operation.value, 'operationId'), 255),
      summary: cut(at(operation.value, 'summary'), 255),
      isDeprecated: at(operation.value, 'deprecated') === true,
      action: taken(operation, names.get(operation.key)!, {
        base,
        documentUrl,
        isFixed: baseUrl !== null,
        security,
        context: { ...context, gap: add },
      }),
    };
  });
  const info = isJsonObject(at(root, 'info')) ? (at(root, 'info') as JsonPart) : {};
  return {
    format,
    title: cut(at(info, 'title'), 255) ?? 'OpenAPI',
    description: cut(at(info, 'description'), 4_000),
    version: cut(at(info, 'version'), 255),
    baseUrl: base,
    servers: addresses,
    credentialSchema: security.credentialSchema,
    authorization: null,
    isListed: true,
    total: found.length,
    matching: wanted.matching,
    operations,
    gaps: gaps.listed,
    gapCount: gaps.count,
  };
}

function formatOf(root: JsonPart): string {
  const format = at(root, 'openapi');
  if (typeof format === 'string' && /^3\.[01]\.\d+(?:-[\w.]+)?$/.test(format)) return format.slice(0, 20);
  if (at(root, 'swagger') !== undefined) throw new DocumentFault('it is of Swagger 2.0: convert it to OpenAPI 3 first');
  throw new DocumentFault('it is no OpenAPI document of the versions 3.0 and 3.1');
}

/** All operations, in the order of the document. */
function operationsOf(root: JsonPart, references: DocumentReferences, gaps: Gaps): FoundOperation[] {
  const paths = at(root, 'paths');
  const found: FoundOperation[] = [];
  for (const [path, given] of isJsonObject(paths) ? Object.entries(paths) : []) {
    if (path.startsWith('x-')) continue;
    const pathItem = resolvedItem(references, given, within('/paths', path), gaps);
    if (!pathItem) continue;
    for (const method of OTHER_METHODS)
      if (at(pathItem.value, method) !== undefined)
        gaps.add(
          new Gap('unsupported', within(pathItem.place, method), `An action has no method ${method.toUpperCase()}.`),
          null,
        );
    for (const method of METHODS) {
      const value = at(pathItem.value, method);
      if (value === undefined) continue;
      const place = within(pathItem.place, method);
      const key = `${method.toUpperCase()} ${path}`;
      if (!isJsonObject(value)) gaps.add(new Gap('invalid', place, 'It is no object.'), null);
      else if (key.length > MAX_KEY || !key.isWellFormed() || key.includes('\u0000'))
        gaps.add(
          new Gap('unsafe_address', place, `The path is not plain text of at most ${MAX_KEY} characters.`),
          null,
        );
      else found.push({ key, method: method.toUpperCase(), path, value, place, pathItem });
      if (found.length > MAX_OPERATIONS) throw new DocumentFault(`it has more than ${MAX_OPERATIONS} operations`);
    }
  }
  return found;
}

function resolvedItem(references: DocumentReferences, given: unknown, place: string, gaps: Gaps): LocatedPart | null {
  try {
    return references.resolved(given, place);
  } catch (error) {
    if (!(error instanceof Gap)) throw error;
    gaps.add(error, null);
    return null;
  }
}

/** The name of the action of each operation: the same, whatever is chosen. */
function namesOf(found: readonly FoundOperation[]): Map<string, string> {
  const taken = new UniqueNames();
  return new Map(
    found.map(({ key, method, path, value }) => {
      const id = at(value, 'operationId');
      const text =
        typeof id === 'string' && id.trim() !== '' ? id : `${method.toLowerCase()}${path.replaceAll(/[{}]/g, '')}`;
      return [key, taken.take(plainName(text.slice(0, MAX_NAME)).replace(/_+$/, ''))];
    }),
  );
}

function wantedOf(
  found: readonly FoundOperation[],
  { keys, search, most }: Pick<ReadTask, 'keys' | 'search' | 'most'>,
) {
  const named = new Set(keys);
  const words = search?.toLowerCase() ?? '';
  let matching = 0;
  const read = found.filter((operation) => {
    const doesMatch = words === '' || textsOf(operation).some((text) => text.toLowerCase().includes(words));
    if (doesMatch) matching += 1;
    return named.has(operation.key) || (doesMatch && matching <= most);
  });
  return { read, matching };
}

const textsOf = ({ key, value }: FoundOperation): string[] =>
  [key, at(value, 'operationId'), at(value, 'summary'), at(value, 'tags')]
    .flat()
    .filter((text): text is string => typeof text === 'string');

/** Where credentials go, as `header x-api-key`. */
const placementsOf = (credentials: readonly JsonPart[]): Set<string> =>
  new Set(
    credentials.flatMap(({ placement }) => {
      if (!isJsonObject(placement)) return [];
      const name = String(placement.name);
      return [placement.in === 'header' ? `header ${name.toLowerCase()}` : `query ${name}`];
    }),
  );

interface Taking {
  base: string | null;
  documentUrl: string | null;
  /** Whether the caller has said where all operations are. */
  isFixed: boolean;
  security: ReturnType<typeof securityOf>;
  context: ActionContext;
}

function taken(operation: FoundOperation, name: string, taking: Taking): Record<string, unknown> | null {
  const { base, security, context } = taking;
  try {
    const refusal = security.refusalOf(operation.value, operation.place);
    if (refusal) throw refusal;
    if (base === null)
      throw new Gap('invalid', '/servers', 'The document does not say where it is: give the base address.');
    return actionOf(operation, name, ownBase(operation, base, taking), context);
  } catch (error) {
    if (!(error instanceof Gap)) throw error;
    context.gap(error);
    return null;
  }
}

/** The address of an operation, whose server may have another path than those of others. @throws Gap */
function ownBase({ value, place, pathItem }: FoundOperation, base: string, { documentUrl, isFixed }: Taking): string {
  if (isFixed) return base;
  const own = serversOf(value, place, documentUrl) ?? serversOf(pathItem.value, pathItem.place, documentUrl);
  if (!own) return base;
  const same = own.addresses.find((address) => new URL(address).origin === new URL(base).origin);
  if (same !== undefined) return same;
  throw new Gap('other_host', within(place, 'servers'), 'Its server is on another host than that of the document.');
}
