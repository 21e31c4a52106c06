// Runs tests again and again in one thread, for the test runner in hot-runner.mjs, which sends the mutants.
import { setImmediate } from 'node:timers/promises';
import { inject, type RunnerTask, type RunnerTestFile, type RunnerTestSuite, TestRunner, vi } from 'vitest';
import { startTests } from 'vitest/internal/browser';
import type { Answer, Outcome, TestOutcome, Trial } from './hot-trial.ts';

/** What the instrumented code reads and writes. */
interface Switches {
  activeMutant?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  currentTestId?: string | undefined;
  mutantCoverage?: Outcome['coverage'];
}

const globals = globalThis as unknown as {
  __stryker__: Switches;
  __vitest_worker__: { config: ConstructorParameters<typeof TestRunner>[0] };
};
const switches: Switches = (globals.__stryker__ ??= {});
let run = 0;

/** What nobody has caught since the trial began: it fails a run of Vitest, though none of its tests. */
let uncaught: unknown[] = [];
for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (error: unknown) => uncaught.push(error));

type Tracer = (name: string, options: unknown, work?: unknown) => unknown;
const untraced: Tracer = (_name, options, work = options) => (work as () => unknown)();

class HotRunner extends TestRunner {
  failed: RunnerTask | undefined;
  readonly #trial: Trial;

  constructor(trial: Trial, config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config);
    this.#trial = trial;
    this.__setTraces({ $: untraced } as unknown as Parameters<TestRunner['__setTraces']>[0]);
  }

  /** A new instance of the test file, on the instances of the sources that are there. */
  override importFile(file: string): unknown {
    return import(/* @vite-ignore */ `${file}?run=${run}`);
  }

  override onCollectStart(file: RunnerTestFile): void {
    super.onCollectStart(file);
    if (this.#trial.isStatic) this.#activate();
  }

  onCollected([file]: RunnerTestFile[]): void {
    this.#activate();
    this.#hooksOf(file);
  }

  override async onBeforeRunTask(test: Parameters<TestRunner['onBeforeRunTask']>[0]): Promise<void> {
    if (this.failed && !this.#trial.isDry) test.mode = 'skip';
    await super.onBeforeRunTask(test);
  }

  override onBeforeTryTask(test: Parameters<TestRunner['onBeforeTryTask']>[0]): void {
    super.onBeforeTryTask(test);
    if (this.#trial.isDry) switches.currentTestId = idOf(test);
  }

  override onAfterRunTask(test: Parameters<TestRunner['onAfterRunTask']>[0]): void {
    this.#hooksOf(test.file);
    if (test.result?.state === 'fail') this.failed ??= test;
    super.onAfterRunTask(test);
  }

  /** What the hooks of a file reach, any of its tests may notice. */
  #hooksOf(file: RunnerTestFile | undefined): void {
    if (this.#trial.isDry && file) switches.currentTestId = idOf(file);
  }

  #activate(): void {
    switches.activeMutant = this.#trial.mutant;
    switches.hitCount = this.#trial.isDry ? undefined : 0;
    switches.hitLimit = this.#trial.hitLimit;
  }
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
const nameOf = (task: RunnerTask | RunnerTestSuite): string =>
  `${task.suite ? nameOf(task.suite) : ''} ${task.name}`.trim();
const idOf = (task: RunnerTask): string => `${task.file.filepath}#${task === task.file ? '' : nameOf(task)}`;
const messageOf = (task: RunnerTask): string => task.result?.errors?.[0]?.message ?? '';

/** What failed in a hook, or while a file was loaded. */
const brokenIn = (task: RunnerTask): RunnerTask | undefined =>
  task.result?.state === 'fail' && task.result.errors?.length
    ? task
    : 'tasks' in task
      ? task.tasks.map(brokenIn).find(Boolean)
      : undefined;

const testsIn = (task: RunnerTask): TestOutcome[] =>
  'tasks' in task
    ? task.tasks.flatMap(testsIn)
    : task.mode === 'run' || task.result
      ? [{ id: idOf(task), name: nameOf(task), ms: task.result?.duration ?? 0, state: task.result?.state ?? 'skip' }]
      : [];

async function runTests(trial: Trial): Promise<Outcome> {
  if (trial.isFresh) vi.resetModules();
  const tests: TestOutcome[] = [];
  let hits = 0;
  uncaught = [];
  for (const [file, names] of Object.entries(trial.tests)) {
    run += 1;
    const pattern = names.length > 0 ? { testNamePattern: new RegExp(`^(?:${names.map(escaped).join('|')})$`) } : {};
    const runner = new HotRunner(trial, { ...globals.__vitest_worker__.config, ...pattern });
    const [done] = (await startTests([file], runner)) as [RunnerTestFile];
    await setImmediate(); // a promise counts as rejected without a handler only after its turn
    switches.activeMutant = undefined;
    switches.currentTestId = undefined;
    hits += switches.hitCount ?? 0;
    tests.push(...testsIn(done));
    if (trial.isDry) tests.push({ id: idOf(done), name: file, ms: done.result?.duration ?? 0, state: 'pass' });
    const failed = runner.failed ?? brokenIn(done);
    if (failed) return { tests, hits, failed: { id: idOf(failed), message: messageOf(failed) } };
    if (uncaught.length > 0)
      return { tests, hits, failed: { id: idOf(done), message: `Uncaught: ${String(uncaught[0])}`, isUncaught: true } };
  }
  return { tests, hits, coverage: trial.isDry ? switches.mutantCoverage : undefined };
}

// not in a test, because tests cannot have tests in them
const channel = new BroadcastChannel(inject('channel' as never));
const post = (answer: Answer): void => channel.postMessage(answer);
await new Promise<void>((end) => {
  channel.onmessage = ({ data }: MessageEvent<{ trial: Trial } | 'end'>) => {
    if (data === 'end') return end();
    runTests(data.trial).then(
      (outcome) => post({ outcome }),
      (error: unknown) => post({ broken: error instanceof Error ? (error.stack ?? '') : String(error) }),
    );
  };
  channel.postMessage('ready');
});
channel.close();
