// A test runner of Stryker. Stryker's own one for Vitest starts a thread for each mutant and loads the tests there:
// one to two seconds, where the tests take milliseconds. This one keeps a thread, and loads the modules anew only
// where that matters:
// - for code that runs while a module is loaded,
// - for a mutant that no test noticed: a cache may have hidden it,
// - where the tests then fail without the mutant as well: a mutant left something behind.
import path from 'node:path';
import { createVitest } from 'vitest/node';
import { coveringTests } from './covering-tests.mjs';

/**
 * @typedef {import('./hot-trial.ts').Trial} Trial
 * @typedef {import('./hot-trial.ts').Outcome} Outcome
 * @typedef {import('./hot-trial.ts').Answer} Answer
 * @typedef {{ testFilter?: string[], activeMutant: { id: string }, sandboxFileName: string, hitLimit?: number,
 * mutantActivation: string }} Options
 */

/** The whole service cannot be loaded twice in a thread: the thread is replaced instead. */
const CAN_RELOAD = process.env.MUTANT_STAGE === 'light';
const NO_LIMIT = Number.POSITIVE_INFINITY;

/**
 * Many mutants make a test wait for an answer that never comes. A light test takes milliseconds, so that this is known
 * long before Stryker would end the whole process and start one that has to load everything again.
 */
const TIME_LIMITS = CAN_RELOAD ? { testTimeout: 10_000, hookTimeout: 20_000 } : {};

/** @param {string} id */
const fileIn = (id) => path.resolve(id.slice(0, id.indexOf('#')));

/**
 * `path/of.test.ts#name` of several tests, as names by absolute path. Without a name it is what the hooks of a file
 * reach: all of its tests are meant.
 * @param {readonly string[]} ids
 */
function byFile(ids) {
  /** @type {Record<string, string[]>} */
  const tests = {};
  for (const id of ids) {
    const at = id.indexOf('#');
    (tests[fileIn(id)] ??= []).push(id.slice(at + 1));
  }
  for (const [file, names] of Object.entries(tests)) if (names.includes('')) tests[file] = [];
  return tests;
}

/**
 * The test that is named like the source first: it notices most, and a trial ends with the first test that fails.
 * @param {Record<string, string[]>} tests
 * @param {string} source
 */
function ownFirst(tests, source) {
  const isOther = (/** @type {string} */ file) => path.basename(file, '.test.ts') !== path.basename(source, '.ts');
  return Object.fromEntries(Object.entries(tests).toSorted(([a], [b]) => Number(isOther(a)) - Number(isOther(b))));
}

/** @param {string} id with an absolute path */
const relativeId = (id) => `${path.relative(process.cwd(), fileIn(id))}${id.slice(id.indexOf('#'))}`;

class HotRunner {
  /** @type {{ channel: BroadcastChannel, end: () => Promise<void> } | undefined} */
  #hot;
  /** @type {(answer: Answer) => void} */
  #answer = () => undefined;
  #threads = 0;
  /** Also of the process that takes over after a mutant that ran for ever: that one has no dry run. */
  #files = (process.env.MUTANT_TESTS ?? '').split(',').filter(Boolean);
  #isSpoilt = false;

  capabilities() {
    return { reloadEnvironment: true };
  }

  async dryRun() {
    if (this.#files.length === 0) return { status: 'complete', tests: [], mutantCoverage: { static: {}, perTest: {} } };
    const all = Object.fromEntries(this.#files.map((file) => [path.resolve(file), []]));
    const { tests, coverage, failed } = await this.#try({ tests: all, isDry: true });
    const again = CAN_RELOAD && !failed ? await this.#try({ tests: all, isFresh: true }) : undefined;
    const wrong = failed ?? again?.failed;
    if (wrong) return { status: 'error', errorMessage: `Without any mutant: ${wrong.id}: ${wrong.message}` };
    return {
      status: 'complete',
      tests: tests.map(({ id, name, ms }) => ({
        id: relativeId(id),
        name,
        timeSpentMs: ms,
        status: 0,
        fileName: fileIn(id),
      })),
      mutantCoverage: {
        static: coverage?.static ?? {},
        perTest: Object.fromEntries(
          Object.entries(coverage?.perTest ?? {}).map(([id, counts]) => [relativeId(id), counts]),
        ),
      },
    };
  }

  /** @param {Options} options */
  async mutantRun({ testFilter, activeMutant, sandboxFileName, hitLimit = NO_LIMIT, mutantActivation }) {
    const isStatic = mutantActivation === 'static';
    const own = this.#testsOf(sandboxFileName);
    const chosen = isStatic || !testFilter?.length ? own : byFile(testFilter.filter((id) => fileIn(id) in own));
    const tests = ownFirst(chosen, sandboxFileName);
    if (Object.keys(tests).length === 0) return { status: 'survived', nrOfTests: 0 };
    const trial = { tests, mutant: activeMutant.id, hitLimit };
    const isFresh = isStatic || this.#isSpoilt;
    this.#isSpoilt = isStatic;
    let outcome = await this.#try({ ...trial, isFresh, isStatic });
    if (!isFresh && !(await this.#isExact(outcome))) outcome = await this.#try({ ...trial, isFresh: true });
    const { failed, hits } = outcome;
    if (hits > hitLimit) return { status: 'timeout', reason: `${hits} hits` };
    const nrOfTests = outcome.tests.length;
    if (!failed) return { status: 'survived', nrOfTests };
    return { status: 'killed', failureMessage: failed.message, killedBy: [relativeId(failed.id)], nrOfTests };
  }

  dispose() {
    return this.#end();
  }

  /**
   * All tests that a source file is judged by, of those of this run.
   * @param {string} file
   */
  #testsOf(file) {
    const source = path.relative(process.cwd(), file).replaceAll(path.sep, '/');
    const covering = coveringTests(source)[CAN_RELOAD ? 'light' : 'whole'];
    return Object.fromEntries(
      covering.filter((test) => this.#files.includes(test)).map((test) => [path.resolve(test), []]),
    );
  }

  /**
   * A cache may have hidden the mutant from the tests, or an earlier mutant may have left something behind.
   * @param {Outcome} outcome
   */
  async #isExact({ failed }) {
    if (!failed) return !CAN_RELOAD;
    if (failed.isUncaught) return false; // it may be a late one of the mutant before
    const left = await this.#try({ tests: { [fileIn(failed.id)]: [] } });
    return !left.failed;
  }

  /**
   * @param {Trial} trial
   * @returns {Promise<Outcome>}
   */
  async #try({ isFresh = false, ...trial }) {
    if (isFresh && !CAN_RELOAD) await this.#end();
    this.#hot ??= await this.#start();
    /** @type {Promise<Outcome>} */
    const answered = new Promise((resolve, reject) => {
      this.#answer = (answer) => ('outcome' in answer ? resolve(answer.outcome) : reject(new Error(answer.broken)));
    });
    this.#hot.channel.postMessage({ trial: { ...trial, isFresh: isFresh && CAN_RELOAD } });
    return await answered;
  }

  async #start() {
    const name = `mutants-${process.pid}-${++this.#threads}`;
    const channel = new BroadcastChannel(name);
    const vitest = await createVitest('test', {
      config: 'vitest.mutants.config.ts',
      include: ['scripts/mutants/hot-tests.ts'],
      pool: 'threads',
      maxWorkers: 1,
      ...TIME_LIMITS,
      watch: false,
      reporters: [],
      onConsoleLog: () => false,
    });
    vitest.provide(/** @type {never} */ ('channel'), /** @type {never} */ (name));
    /** @type {Promise<boolean>} */
    const ready = new Promise((resolve) => {
      channel.onmessage = (/** @type {{ data: 'ready' | Answer }} */ { data }) =>
        data === 'ready' ? resolve(true) : this.#answer(data);
    });
    const run = vitest.start();
    const isReady = await Promise.race([ready, run.then(() => false)]);
    if (!isReady) throw new Error(`The thread of the tests ended at once: ${[...vitest.state.errorsSet].join()}`);
    const end = async () => {
      channel.postMessage('end');
      await run;
      channel.close();
      await vitest.close();
    };
    return { channel, end };
  }

  async #end() {
    const hot = this.#hot;
    this.#hot = undefined;
    await hot?.end();
  }
}

/** What Stryker loads. */
export const strykerPlugins = [{ kind: 'TestRunner', name: 'hot', factory: () => new HotRunner() }];
