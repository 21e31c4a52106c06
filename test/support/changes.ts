import { Changes, type ChangesDeps } from '../../src/data/changes.ts';
import type { TestApp } from './app.ts';

/** A write path over the database of an app. Nobody hears of its commits, unless `more` says who. */
export const changesOver = ({ database, services }: TestApp, more: Partial<ChangesDeps> = {}): Changes =>
  new Changes({
    database,
    sql: services.sql,
    jobs: services.jobQueue,
    notify: () => null,
    assertsLockOrder: true,
    onCommit: () => undefined,
    ...more,
  });
