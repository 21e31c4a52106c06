import {
  GraphQLInt,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isLeafType,
  isListType,
  isNonNullType,
  type ResponsePath,
  responsePathAsArray,
} from 'graphql';

/** Random numbers that follow from a seed. */
export class Chance {
  #state: number;

  constructor(seed: number | string) {
    let hash = 2_166_136_261;
    for (const letter of String(seed)) hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619);
    this.#state = hash;
  }

  /** From 0 to 1, without 1. */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** True so often: in `share` of all calls. */
  is(share: number): boolean {
    return this.next() < share;
  }

  one<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
}

interface Waiting {
  promise: Promise<unknown>;
  settle: () => void;
}

/**
 * What one execution waits for: promises that settle after some microtasks, in a later turn of the event loop, or many
 * at once, as those of a data loader. Two executions that ask for the same in the same order get it in the same order.
 */
export class Clock {
  readonly seed: string;
  /** In some executions little fails, and much is answered; in others much fails. */
  readonly #failures: number;
  #pending = 0;
  readonly #batch = new Map<string, Waiting>();

  constructor(seed: string) {
    this.seed = seed;
    this.#failures = new Chance(`failures of ${seed}`).one([0.1, 0.5, 1, 2]);
  }

  /** True in `share` of all cases, more or less often according to how much fails in this execution. */
  fails(chance: Chance, share: number): boolean {
    return chance.is(share * this.#failures);
  }

  /** Whether something has not settled yet. */
  get isWaiting(): boolean {
    return this.#pending > 0;
  }

  /** The result of `make`, later: it may throw. */
  later(chance: Chance, make: () => unknown): Promise<unknown> {
    const way = chance.below(4);
    if (way < 2) return this.#counted(this.#ticks(chance.below(7)).then(make));
    if (way === 2) return this.#counted(new Promise<void>((resolve) => setImmediate(resolve)).then(make));
    return this.#loaded(String(chance.below(12)), make);
  }

  #ticks(count: number): Promise<void> {
    return count === 0 ? Promise.resolve() : Promise.resolve().then(() => this.#ticks(count - 1));
  }

  /** Those of a turn settle together, and those of one key are the same. */
  #loaded(key: string, make: () => unknown): Promise<unknown> {
    const known = this.#batch.get(key);
    if (known) return known.promise;
    if (this.#batch.size === 0)
      setImmediate(() => {
        const waiting = [...this.#batch.values()];
        this.#batch.clear();
        for (const { settle } of waiting) settle();
      });
    const { promise, resolve, reject } = withResolvers();
    const settle = () => {
      try {
        resolve(make());
      } catch (error) {
        reject(error);
      }
    };
    const counted = this.#counted(promise);
    this.#batch.set(key, { promise: counted, settle });
    return counted;
  }

  #counted(promise: Promise<unknown>): Promise<unknown> {
    this.#pending++;
    // whoever gets the promise has to handle its rejection
    return promise.finally(() => {
      this.#pending--;
    });
  }
}

function withResolvers() {
  let resolve!: (value: unknown) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<unknown>((onResolved, onRejected) => {
    resolve = onResolved;
    reject = onRejected;
  });
  return { promise, resolve, reject };
}

const COLUMNS = ['c0', 'c1', 'c2'];
const OBJECTS = ['A', 'B', 'C', 'D'];

/** What a field or an item is: at once or later, a value or a failure. */
function given(chance: Chance, clock: Clock, type: GraphQLOutputType, what: string): unknown {
  const make = () => {
    if (clock.fails(chance, 0.05)) throw new Error(`${what} fails`);
    return valueFor(chance, clock, type, what);
  };
  return chance.is(0.5) ? make() : clock.later(chance, make);
}

function valueFor(chance: Chance, clock: Clock, type: GraphQLOutputType, what: string): unknown {
  if (isNonNullType(type)) return clock.fails(chance, 0.03) ? null : valueFor(chance, clock, type.ofType, what);
  if (chance.is(0.06)) return chance.one([null, undefined]);
  if (clock.fails(chance, 0.03)) return new Error(`${what} is an error`);
  if (isListType(type)) return listOf(chance, clock, type.ofType, what);
  if (isLeafType(type))
    return clock.fails(chance, 0.05) ? { isNo: 'leaf' } : type === GraphQLInt ? chance.below(9) : what;
  const isWrong = clock.fails(chance, 0.05);
  const name = isAbstractType(type) ? (isWrong ? 'Unknown' : chance.one(OBJECTS.slice(1, 3))) : type.name;
  return new Source(chance, clock, name, what);
}

function listOf(chance: Chance, clock: Clock, type: GraphQLOutputType, what: string): unknown {
  if (clock.fails(chance, 0.03)) return chance.one([5, {}, 'text']);
  const count = chance.below(4);
  const item = (n: number) => {
    const itemChance = new Chance(`${chance.next()}`);
    try {
      return given(itemChance, clock, type, `${what}.${n}`);
    } catch (error) {
      return error;
    }
  };
  const items = function* () {
    for (let n = 0; n < count; n++) yield item(n);
  };
  const form = chance.below(10);
  if (form === 0) return items();
  return form === 1 ? new Set(items()) : [...items()];
}

/** An object with columns, some of which are promises or functions. */
class Source {
  readonly typeName: string;
  readonly what: string;
  readonly chance: Chance;
  readonly clock: Clock;
  [column: string]: unknown;

  constructor(chance: Chance, clock: Clock, typeName: string, what: string) {
    this.typeName = typeName;
    this.what = what;
    this.chance = new Chance(`${what}${chance.next()}`);
    this.clock = clock;
    for (const column of COLUMNS) {
      const own = new Chance(`${what}${column}${chance.next()}`);
      const make = () => given(own, clock, GraphQLString, `${what}.${column}`);
      this[column] = chance.is(0.85) ? valueFor(own, clock, GraphQLString, `${what}.${column}`) : make;
    }
  }
}

const sourceOf = (value: unknown): Source | null => (value instanceof Source ? value : null);

function typeOf(value: unknown): unknown {
  const source = sourceOf(value);
  if (!source) return undefined;
  const chance = new Chance(`type of ${source.what}, ${source.typeName}`);
  if (source.clock.fails(chance, 0.05)) throw new Error(`no type for ${source.typeName}`);
  return chance.is(0.7) ? source.typeName : source.clock.later(chance, () => source.typeName);
}

function isOfType(value: unknown): boolean | Promise<boolean> {
  const source = sourceOf(value);
  const chance = new Chance(`whether ${source?.what}`);
  const is = () => {
    if (source?.clock.fails(chance, 0.05)) throw new Error('it cannot be told');
    return source !== null && !source.clock.fails(chance, 0.05);
  };
  return source && chance.is(0.3) ? (source.clock.later(chance, is) as Promise<boolean>) : is();
}

const pathText = (path: ResponsePath) => responsePathAsArray(path).join('.');

function resolve(_source: unknown, _args: object, clock: Clock, info: GraphQLResolveInfo): unknown {
  const path = pathText(info.path);
  return given(new Chance(`${clock.seed}/${path}`), clock, info.returnType, path);
}

function wrapped(chance: Chance, type: GraphQLOutputType, depth = 0): GraphQLOutputType {
  const inner: GraphQLOutputType =
    depth < 2 && chance.is(0.3) ? new GraphQLList(wrapped(chance, type, depth + 1)) : type;
  return chance.is(0.5) ? new GraphQLNonNull(inner as never) : inner;
}

/** A schema of objects, an interface and a union, whose fields lead anywhere. Its context is a {@link Clock}. */
export function randomSchema(seed: string): GraphQLSchema {
  const chance = new Chance(seed);
  const columns = Object.fromEntries(
    COLUMNS.map((name, n) => [name, { type: n ? GraphQLString : new GraphQLNonNull(GraphQLString) }]),
  );
  const Named = new GraphQLInterfaceType({ name: 'Named', fields: columns, resolveType: typeOf as never });
  const objects: GraphQLObjectType[] = OBJECTS.map(
    (name, n) =>
      new GraphQLObjectType({
        name,
        interfaces: n < 3 ? [Named] : [],
        ...(chance.is(0.3) ? { isTypeOf: isOfType } : {}),
        fields: () => ({ ...columns, ...fields() }),
      }),
  );
  const Any = new GraphQLUnionType({ name: 'Any', types: objects.slice(1), resolveType: typeOf as never });
  const all = [...objects, ...objects, Named, Any, GraphQLString, GraphQLInt];
  const fields = () =>
    Object.fromEntries(
      Array.from({ length: 5 }, (_, n) => [`f${n}`, { type: wrapped(chance, chance.one(all)), resolve }]),
    );
  const query = new GraphQLObjectType({ name: 'Query', fields });
  return new GraphQLSchema({ query, types: objects });
}

/** A valid query of such a schema. */
export function randomQuery(schema: GraphQLSchema, seed: string): string {
  const chance = new Chance(seed);
  const objects = OBJECTS.map((name) => schema.getType(name) as GraphQLObjectType);
  let aliases = 0;
  const selection = (type: GraphQLOutputType, depth: number): string => {
    const named = getNamedType(type);
    if (!isCompositeType(named)) return '';
    if (!('getFields' in named)) {
      const possible = objects.filter((object) => schema.isSubType(named as GraphQLUnionType, object));
      const object = chance.one(possible);
      return `{ __typename ... on ${object.name} ${selection(object, depth)} }`;
    }
    const fields = Object.values(named.getFields());
    const offered = depth > 0 ? fields : fields.filter((field) => isLeafType(getNamedType(field.type)));
    const chosen = Array.from({ length: 1 + chance.below(4) }, () => {
      const field = offered.length > 0 ? chance.one(offered) : null;
      if (!field) return '__typename';
      const alias = chance.is(0.3) ? '' : `a${aliases++}: `;
      return `${alias}${field.name} ${selection(field.type, depth - 1)}`;
    });
    return `{ ${chosen.join(' ')} }`;
  };
  return selection(schema.getQueryType()!, 2 + chance.below(2));
}
