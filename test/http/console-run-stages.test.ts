import { expect, test } from 'vitest';
import { type KnownRun, stageTimes } from '../../console/src/views/run-stages.ts';

const at = (second: number) => new Date(1_000 * second).toISOString();
const run = (given: Partial<KnownRun>, ...reports: [second: number, stagesCompleted: number][]): KnownRun => ({
  status: 'running',
  startedAt: at(10),
  endedAt: null,
  updatedAt: at(reports.at(-1)?.[0] ?? 10),
  stagesCompleted: reports.at(-1)?.[1] ?? 0,
  totalStages: 3,
  reports: reports.map(([second, stagesCompleted]) => ({ timestamp: at(second), stagesCompleted })).reverse(),
  ...given,
});
/** From and to in seconds, and the status. */
const shown = (known: KnownRun) =>
  stageTimes(known).map(({ from, to, status }) => [from && from / 1_000, to && to / 1_000, status]);

test('a stage lasts from the end of the one before to the report that counts it', () => {
  expect(shown(run({}, [10, 0], [12, 1], [15, 2]))).toEqual([
    [10, 12, 'done'],
    [12, 15, 'done'],
    [15, null, 'running'],
  ]);
  const ended = { status: 'completed', endedAt: at(17) } as const;
  expect(shown(run(ended, [10, 0], [12, 1], [15, 2], [18, 3]))).toEqual([
    [10, 12, 'done'],
    [12, 15, 'done'],
    [15, 17, 'done'],
  ]);
});

test('the stage at which a run failed ends with it, and those after it did not run', () => {
  expect(shown(run({ status: 'failed', endedAt: at(19) }, [12, 1], [20, 1]))).toEqual([
    [10, 12, 'done'],
    [12, 19, 'failed'],
    [null, null, 'left out'],
  ]);
});

test('what one report counts is known of all its stages together', () => {
  const times = stageTimes(run({ status: 'completed', endedAt: at(20) }, [20, 3]));
  expect(times.map(({ together }) => together)).toEqual([3, 3, 3]);
  expect(shown(run({}, [13, 2]))).toEqual([
    [10, 13, 'done'],
    [10, 13, 'done'],
    [13, null, 'running'],
  ]);
});

test('without reports that the reader may see, what the run says of itself is all that is known', () => {
  expect(shown(run({ stagesCompleted: 2, updatedAt: at(30) }))).toEqual([
    [10, 30, 'done'],
    [10, 30, 'done'],
    [30, null, 'running'],
  ]);
});

test('clocks that differ make no stage end before it began', () => {
  expect(shown(run({ startedAt: at(60) }, [12, 1], [15, 2]))).toEqual([
    [60, 60, 'done'],
    [60, 60, 'done'],
    [60, null, 'running'],
  ]);
  expect(shown(run({ status: 'completed', endedAt: at(61), startedAt: at(60) }, [12, 1]))).toEqual([
    [60, 60, 'done'],
    [null, null, 'left out'],
    [null, null, 'left out'],
  ]);
});
