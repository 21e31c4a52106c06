import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isUnionType,
} from 'graphql';
import { closestWord } from '../kernel/closest-word.ts';
import { asksFirst, isOpen, looksSecret } from './open-operations.ts';

/** How many words of a search count. */
const MAX_WORDS = 12;
const LONGEST_DESCRIPTION = 200;
/** Values of an enum that are named; there are few with more. */
const MAX_VALUES = 60;
const ROOTS = ['Query', 'Mutation'] as const;
const KINDS = { Query: 'query', Mutation: 'mutation' } as const;

type Kind = 'query' | 'mutation' | 'type';

interface Entry {
  kind: Kind;
  name: string;
  /** Its words, and those of its description. */
  words: readonly string[];
  described: string;
  line: string;
}

/** Finds operations and types of the schema by words, and says in a few lines what they take and answer. */
export class SchemaSearch {
  readonly #schema: GraphQLSchema;
  #entries: readonly Entry[] | null = null;

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** The best matches, best first, one a line. @param isReadOnly leaves mutations out */
  search(text: string, { limit, isReadOnly }: { limit: number; isReadOnly: boolean }): string {
    this.#entries ??= entriesOf(this.#schema);
    const asked = wordsOf(text).slice(0, MAX_WORDS);
    const found = this.#entries
      .filter(({ kind }) => !isReadOnly || kind !== 'mutation')
      .map((entry) => ({ entry, score: scoreOf(entry, asked) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || (a.entry.name < b.entry.name ? -1 : 1));
    const lines = found.slice(0, limit).map(({ entry }) => entry.line);
    if (lines.length === 0) return 'Nothing matches. Try other words: secrets, deployments, workspaces, members.';
    const more = found.length - lines.length;
    return [...lines, ...(more > 0 ? [`[${more} more: search for more words, or with a larger limit.]`] : [])].join(
      '\n',
    );
  }

  /** What an operation takes and answers, or a type has; `null` for an unknown name. */
  describe(name: string, isReadOnly: boolean): string | null {
    for (const root of ROOTS) {
      const field = this.#schema.getRootType(KINDS[root] as never)?.getFields()[name];
      if (!field || !isOpen(root, name) || (isReadOnly && root === 'Mutation')) continue;
      return operationText(KINDS[root], field);
    }
    const type = this.#schema.getType(name);
    return type && !isRoot(type) && !name.startsWith('__') ? typeText(type, { withDescriptions: true }) : null;
  }

  /** What a wrong name was most likely meant to be. */
  closest(name: string): string | null {
    this.#entries ??= entriesOf(this.#schema);
    return closestWord(
      name,
      this.#entries.map((entry) => entry.name),
    );
  }
}

const isRoot = ({ name }: GraphQLNamedType): boolean => ['Query', 'Mutation', 'Subscription'].includes(name);

const wordsOf = (text: string): string[] =>
  text
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word.length > 1)
    .map((word) => (word.length > 3 && word.endsWith('s') ? word.slice(0, -1) : word));

function scoreOf({ kind, words, described }: Entry, asked: readonly string[]): number {
  let score = 0;
  let matched = 0;
  for (const word of asked) {
    const inName = words.includes(word) ? 6 : words.some((own) => own.startsWith(word)) ? 3 : 0;
    const points = inName + (described.includes(word) ? 1 : 0);
    if (points > 0) matched++;
    score += points;
  }
  if (score === 0) return 0;
  // what has all words comes before what has one of them often, and short names before long ones
  return score * matched + (kind === 'type' ? 0 : 2) + 1 / (1 + words.length);
}

function entriesOf(schema: GraphQLSchema): Entry[] {
  const operations = ROOTS.flatMap((root) =>
    Object.values(schema.getRootType(KINDS[root] as never)?.getFields() ?? {})
      .filter(({ name }) => isOpen(root, name))
      .map((field) => operationEntry(KINDS[root], field)),
  );
  const types = Object.values(schema.getTypeMap())
    .filter((type) => !type.name.startsWith('__') && !isRoot(type))
    .filter((type) => isObjectType(type) || isInputObjectType(type) || isEnumType(type))
    .filter(({ name }) => !/(?:Connection|Edge)$/.test(name))
    .map((type) => typeEntry(type));
  return [...operations, ...types];
}

function operationEntry(kind: 'query' | 'mutation', { name, args, type, description }: GraphQLField<unknown, unknown>) {
  const given = args.map(argumentText).join(', ');
  const line = `${kind} ${name}${given && `(${given})`}: ${String(type)} # ${firstSentence(description)}`;
  return entry(kind, name, description, line);
}

const typeEntry = (type: GraphQLNamedType): Entry =>
  entry('type', type.name, type.description, `${kindOf(type)} ${type.name} # ${firstSentence(type.description)}`);

const entry = (kind: Kind, name: string, description: string | null | undefined, line: string): Entry => ({
  kind,
  name,
  words: wordsOf(name),
  described: (description ?? '').toLowerCase(),
  line,
});

const kindOf = (type: GraphQLNamedType): string =>
  isInputObjectType(type) ? 'input' : isEnumType(type) ? 'enum' : isInterfaceType(type) ? 'interface' : 'type';

function firstSentence(text: string | null | undefined): string {
  const [first = ''] = (text ?? '').replaceAll('\n', ' ').split(/(?<=\.) /, 1);
  return first.length > LONGEST_DESCRIPTION ? `${first.slice(0, LONGEST_DESCRIPTION)}…` : first;
}

const note = (text: string | null | undefined): string => (text ? ` # ${firstSentence(text)}` : '');

function operationText(kind: 'query' | 'mutation', field: GraphQLField<unknown, unknown>): string {
  const args = field.args.map((arg) => `  ${argumentText(arg)}${note(arg.description)}`);
  const given = args.length > 0 ? `(\n${args.join('\n')}\n)` : '';
  const asks = kind === 'mutation' && asksFirst(field.name) ? '\nIt asks for a confirmation first.' : '';
  const inputs = field.args
    .map((arg) => getNamedType(arg.type))
    .filter((type) => isInputObjectType(type) || isEnumType(type));
  const parts = [
    `${kind} ${field.name}${given}: ${String(field.type)}`,
    `${field.description ?? ''}${asks}`,
    ...[...new Set(inputs)].map((type) => typeText(type, { withDescriptions: true })),
    typeText(getNamedType(field.type), { withDescriptions: false }),
  ];
  return parts.filter(Boolean).join('\n\n');
}

const argumentText = ({ name, type, defaultValue }: GraphQLArgument): string =>
  `${name}: ${String(type)}${defaultValue === undefined ? '' : ` = ${JSON.stringify(defaultValue)}`}`;

function typeText(type: GraphQLNamedType, { withDescriptions }: { withDescriptions: boolean }): string {
  const about = (text: string | null | undefined) => (withDescriptions ? note(text) : '');
  const start = `${kindOf(type)} ${type.name}`;
  if (isEnumType(type)) {
    const values = type.getValues();
    const more = values.length > MAX_VALUES ? ' …' : '';
    return `${start} { ${values
      .slice(0, MAX_VALUES)
      .map(({ name }) => name)
      .join(' ')}${more} }`;
  }
  if (isUnionType(type)) return `union ${type.name} = ${type.getTypes().map(String).join(' | ')}`;
  if (isInputObjectType(type) || isObjectType(type) || isInterfaceType(type)) {
    const fields = (Object.values(type.getFields()) as FieldOrInput[])
      .filter(({ name }) => isInputObjectType(type) || !looksSecret(type.name, name))
      .map((field) => `  ${fieldText(field)}${about(field.description)}`);
    return `${start}${about(type.description)} {\n${fields.join('\n')}\n}`;
  }
  return `scalar ${type.name}${about(type.description)}`;
}

/** A field of an object or of an input. */
interface FieldOrInput {
  name: string;
  type: unknown;
  description?: string | null | undefined;
  args?: readonly GraphQLArgument[];
}

function fieldText(field: FieldOrInput): string {
  const given = (field.args ?? []).map(argumentText).join(', ');
  return `${field.name}${given && `(${given})`}: ${String(field.type)}`;
}
