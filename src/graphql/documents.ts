import {
  type ASTNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
  visit,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config.ts';
import { type DocumentLimits, measureDocument } from './document-size.ts';
import { checkLength, checkTokens } from './document-text.ts';

const MAX_ERRORS = 5;
/** Bytes that the kept documents may take together. */
const CACHE_BYTES = 16 * 1024 * 1024;
/** What the nodes of one token take, roughly. */
const BYTES_PER_TOKEN = 300;

type Limits = Pick<Config, 'graphqlMaxDepth' | 'graphqlMaxAliases' | 'graphqlMaxTokens' | 'graphqlIntrospection'>;

/**
 * Parses and validates the documents of clients. Each is bounded before it is read, measured before it is validated, and kept once it is
 * known to be good; of a bad one nothing is kept. Nodes carry no place in the text: it would cost several times their own memory, and
 * each error would count lines for each of its nodes.
 */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #maxTokens: number;
  readonly #limits: DocumentLimits;
  readonly #rules: typeof specifiedRules;
  readonly #good = new LRUCache<string, DocumentNode>({ maxSize: CACHE_BYTES });
  readonly #texts = new WeakMap<DocumentNode, { text: string; tokens: number; isGood: boolean }>();

  constructor(schema: GraphQLSchema, config: Limits) {
    this.#schema = schema;
    this.#maxTokens = config.graphqlMaxTokens;
    this.#limits = { maxDepth: config.graphqlMaxDepth, maxAliases: config.graphqlMaxAliases };
    this.#rules = config.graphqlIntrospection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  }

  /** @throws GraphQLError for a text that is too long, or no document */
  parse(text: string): DocumentNode {
    checkLength(text);
    const known = this.#good.get(text);
    if (known) return known;
    const tokens = checkTokens(text, this.#maxTokens);
    const document = parse(text, { noLocation: true });
    this.#texts.set(document, { text, tokens, isGood: false });
    return document;
  }

  /** What is wrong with a document that was parsed here: its size first, before any rule walks over it. */
  validate(document: DocumentNode): readonly GraphQLError[] {
    const origin = this.#texts.get(document);
    if (origin?.isGood) return [];
    try {
      measureDocument(document, this.#limits);
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      throw error;
    }
    const options = { maxErrors: MAX_ERRORS, hideSuggestions: true };
    const errors = validate(this.#schema, document, this.#rules, options);
    if (errors.length > 0 || !origin) return this.located(document, errors);
    origin.isGood = true;
    this.#good.set(origin.text, document, { size: 2 * origin.text.length + BYTES_PER_TOKEN * origin.tokens });
    return errors;
  }

  /** The same errors with the place of their first node, for the first few of them. */
  located(document: DocumentNode, errors: readonly GraphQLError[]): readonly GraphQLError[] {
    const text = this.#texts.get(document)?.text;
    if (text === undefined || !errors.some(({ nodes }) => nodes?.length)) return errors;
    const wanted = new Set(errors.slice(0, MAX_ERRORS).flatMap(({ nodes }) => nodes?.slice(0, 1) ?? []));
    const places = placesOf(document, parse(text), wanted);
    return errors.map((error) => {
      const place = error.nodes?.[0] && places.get(error.nodes[0]);
      if (!place) return error;
      const { path, originalError, extensions } = error;
      return new GraphQLError(error.message, { nodes: [place], path, originalError, extensions });
    });
  }
}

/** For nodes of a document the same nodes of its twin. */
function placesOf(document: DocumentNode, twin: DocumentNode, wanted: ReadonlySet<ASTNode>): Map<ASTNode, ASTNode> {
  const order: number[] = [];
  const nodes: ASTNode[] = [];
  let at = 0;
  visit(document, {
    enter(node) {
      if (wanted.has(node)) {
        order.push(at);
        nodes.push(node);
      }
      at++;
    },
  });
  const places = new Map<ASTNode, ASTNode>();
  at = 0;
  visit(twin, {
    enter(node) {
      if (order[places.size] === at) places.set(nodes[places.size]!, node);
      at++;
    },
  });
  return places;
}
