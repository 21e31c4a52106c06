/** One run of tests. Without a mutant the tests judge the thread: whether mutants left something behind in it. */
export interface Trial {
  /** Names of tests by the absolute path of their file; all of a file for none. */
  tests: Record<string, string[]>;
  mutant?: string;
  /** How often the mutant may be reached before it counts as an endless loop. */
  hitLimit?: number;
  /** All modules are loaded anew, and with `isStatic` the mutant is in what they do meanwhile. */
  isFresh?: boolean;
  isStatic?: boolean;
  /** Without any mutant, to see what each test covers. */
  isDry?: boolean;
}

export interface TestOutcome {
  /** `path#name` */
  id: string;
  name: string;
  ms: number;
  state: string;
}

export interface Outcome {
  tests: TestOutcome[];
  hits: number;
  /** The first test that failed; with `isUncaught` the file in whose tests an error went uncaught. */
  failed?: { id: string; message: string; isUncaught?: true };
  /** How often mutants were reached, by test and while modules were loaded; of a dry run. */
  coverage?: { static: Record<string, number>; perTest: Record<string, Record<string, number>> } | undefined;
}

export type Answer = { outcome: Outcome } | { broken: string };
