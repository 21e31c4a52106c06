import {
  type ASTNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
  visit,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config.ts';
import { Plan } from '../execution/plan.ts';
import { type DocumentLimits, measureDocument } from './document-size.ts';
import { checkLength, checkTokens } from './document-text.ts';

const MAX_ERRORS = 5;
/** Maximum number of cached documents, and of bytes for them and their plans together. */
const MAX_DOCUMENTS = 5_000;
const CACHE_BYTES = 16 * 1024 * 1024;
/** Approximate size of the nodes of one token. */
const BYTES_PER_TOKEN = 300;
/** Approximate size of a field of a plan. */
const BYTES_PER_FIELD = 900;
/**
 * A document whose plan would have more fields runs without a plan: planning this many takes 5 to 10 ms, and 20 ms is
 * too long.
 */
const MAX_PLANNED_FIELDS = 1_000;

type Limits = Pick<Config, 'graphqlMaxDepth' | 'graphqlMaxAliases' | 'graphqlMaxTokens' | 'graphqlIntrospection'>;

/** What is known about a document besides its nodes. */
interface Origin {
  text: string;
  tokens: number;
  /** Its validation errors; `null` before validation. */
  errors: readonly GraphQLError[] | null;
  /** Whether it ran before: a document that runs only once needs no plan. */
  hasRun: boolean;
  /** Plans of its queries by name; `null` for those that run without a plan. */
  plans: Map<string, Plan | null>;
  /** Number of fields of the plans that is accounted for. */
  fields: number;
}

/**
 * Parses and validates the documents of clients. Each is limited before it is read, measured before it is validated,
 * and cached once it is known to be valid; nothing of an invalid one is cached. Nodes have no location: locations would
 * cost several times the memory of the nodes, and each error would count lines for each of its nodes.
 */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #maxTokens: number;
  readonly #limits: DocumentLimits;
  readonly #rules: typeof specifiedRules;
  readonly #good = new LRUCache<string, DocumentNode>({ max: MAX_DOCUMENTS, maxSize: CACHE_BYTES });
  readonly #origins = new WeakMap<DocumentNode, Origin>();
  /** The documents of the service itself, with the plans of queries. */
  readonly #trusted = new WeakMap<DocumentNode, Plan | null>();
  /** The last invalid document: reporting its errors needs it again. */
  #lastBad: { text: string; document: DocumentNode | null; error?: unknown } | null = null;

  constructor(schema: GraphQLSchema, config: Limits) {
    this.#schema = schema;
    this.#maxTokens = config.graphqlMaxTokens;
    this.#limits = { maxDepth: config.graphqlMaxDepth, maxAliases: config.graphqlMaxAliases };
    this.#rules = config.graphqlIntrospection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  }

  /** What is cached: the number of documents, and the bytes that are accounted for them and their plans. */
  get cached(): { documents: number; bytes: number } {
    return { documents: this.#good.size, bytes: this.#good.calculatedSize };
  }

  /** Takes a valid document of the service itself, of one operation: no limit is for it. */
  trust(document: DocumentNode): void {
    const operation = getOperationAST(document);
    const isQuery = operation?.operation === 'query';
    this.#trusted.set(document, isQuery ? new Plan(this.#schema, document, operation) : null);
  }

  /** The plan of a trusted query, `null` for another trusted operation, `undefined` for a document of a client. */
  trustedPlanOf(document: DocumentNode): Plan | null | undefined {
    return this.#trusted.get(document);
  }

  /** @throws GraphQLError for a text that is too long or not a document */
  parse(text: string): DocumentNode {
    checkLength(text);
    const known = this.#good.get(text);
    if (known) return known;
    if (this.#lastBad?.text === text) {
      if (this.#lastBad.document) return this.#lastBad.document;
      throw this.#lastBad.error;
    }
    try {
      const tokens = checkTokens(text, this.#maxTokens);
      const document = parse(text, { noLocation: true });
      this.#origins.set(document, { text, tokens, errors: null, hasRun: false, plans: new Map(), fields: 0 });
      return document;
    } catch (error) {
      this.#lastBad = { text, document: null, error };
      throw error;
    }
  }

  /** Validates a document that was parsed here: first its size, before any rule walks over it. */
  validate(document: DocumentNode): readonly GraphQLError[] {
    const origin = this.#origins.get(document);
    if (origin?.errors) return origin.errors;
    const errors = this.#errorsOf(document);
    if (!origin) return errors;
    origin.errors = errors;
    if (errors.length > 0) this.#lastBad = { text: origin.text, document };
    else this.#keep(document, origin);
    return errors;
  }

  /** Whether a text is a valid document. */
  isGood(text: string): boolean {
    return this.errorsOf(text).length === 0;
  }

  /** What keeps a text from being a valid document. */
  errorsOf(text: string): readonly GraphQLError[] {
    try {
      return this.validate(this.parse(text));
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      throw error;
    }
  }

  /**
   * The plan of a client's query whose document ran before; `null` if it runs without one. Call {@link keepGrown} after
   * each run, because plans grow.
   */
  planOf(document: DocumentNode, operationName: string | null | undefined): Plan | null {
    const origin = this.#origins.get(document);
    if (!origin?.hasRun) {
      if (origin) origin.hasRun = true;
      return null;
    }
    const known = origin.plans.get(operationName ?? '');
    if (known !== undefined) return known;
    const operation = getOperationAST(document, operationName);
    const plan =
      operation?.operation === 'query'
        ? new Plan(this.#schema, document, operation, { maxFields: MAX_PLANNED_FIELDS })
        : null;
    origin.plans.set(operationName ?? '', plan);
    return plan;
  }

  /** Accounts for the current size of a document's plans, and gives up those that are too large. */
  keepGrown(document: DocumentNode): void {
    const origin = this.#origins.get(document);
    if (!origin) return;
    let fields = 0;
    for (const [name, plan] of origin.plans) {
      if (plan?.isTooLarge) origin.plans.set(name, null);
      else fields += plan?.size ?? 0;
    }
    if (fields !== origin.fields) {
      origin.fields = fields;
      this.#keep(document, origin);
    }
  }

  #keep(document: DocumentNode, { text, tokens, fields }: Origin): void {
    const size = 2 * text.length + BYTES_PER_TOKEN * tokens + BYTES_PER_FIELD * fields;
    this.#good.set(text, document, { size });
  }

  #errorsOf(document: DocumentNode): readonly GraphQLError[] {
    try {
      measureDocument(document, this.#limits);
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      throw error;
    }
    const options = { maxErrors: MAX_ERRORS, hideSuggestions: true };
    return this.located(document, validate(this.#schema, document, this.#rules, options));
  }

  /** The same errors with the location of their first node, for the first few of them. */
  located(document: DocumentNode, errors: readonly GraphQLError[]): readonly GraphQLError[] {
    const text = this.#origins.get(document)?.text;
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

/** Maps nodes of a document to the same nodes of its twin. */
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
