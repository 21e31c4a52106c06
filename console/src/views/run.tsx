import { type CSSProperties, type ReactNode, useEffect, useState } from 'react';
import { RunDocument, type RunQuery } from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { Dialog } from '../ground/dialog';
import { usePlace } from '../ground/place';
import { CopyButton, Loading, Problem } from '../ground/problem';
import { count, Time } from '../ground/time';
import { t } from '../texts';
import { type StageTime, stageTimes } from './run-stages';

type Execution = RunQuery['execution'];

const tagOf = { done: 'ok', running: 'warn', failed: 'bad', waiting: '', 'left out': '' } as const;

/** A run as a waterfall: its stages below each other, from when to when, as its runner reports them. */
export function Run({ executionId, onClose }: { executionId: string; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const { data, error } = useAnswer(RunDocument, { orgId, workspaceId, executionId });
  const execution = data?.execution;
  return (
    <Dialog title={t.runs.one(executionId)} onClose={onClose} isWide>
      <Problem error={error} />
      {!execution && !error && <Loading />}
      {execution && (
        <>
          <Facts execution={execution} />
          {execution.totalStages > 0 && <Waterfall execution={execution} />}
          <p className="quiet">{t.runs.hint}</p>
        </>
      )}
    </Dialog>
  );
}

function Facts({ execution }: { execution: Execution }) {
  const { status, error, isTimedOut, startedAt, endedAt, tokenUsage, augmentation, createdByUser, activity } =
    execution;
  const traceId = activity.nodes.find((record) => record.traceId)?.traceId;
  const kind = { completed: 'ok', failed: 'bad', running: 'warn' }[status];
  const facts: [string, ReactNode][] = [
    [t.apps.pipeline, augmentation?.name ?? t.none],
    [t.runs.began, <Time key="began" at={startedAt} />],
    [t.runs.ended, endedAt ? <Time key="ended" at={endedAt} /> : '–'],
    [t.apps.tokens, t.runs.tokens(count(tokenUsage.total), count(tokenUsage.input), count(tokenUsage.output))],
    [t.who, createdByUser?.username ?? '–'],
  ];
  return (
    <>
      <p role="status">
        <span className={`tag ${kind}`}>{isTimedOut ? t.apps.timedOut : t.apps.status[status]}</span>
      </p>
      {error && <Problem message={error} />}
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {traceId && <CopyButton text={traceId} label={t.problem.trace(traceId)} />}
    </>
  );
}

/** The time, as long as something runs. */
function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}

function Waterfall({ execution }: { execution: Execution }) {
  const now = useNow(execution.status === 'running');
  const times = stageTimes({ ...execution, reports: execution.activity.nodes });
  const start = Date.parse(execution.startedAt);
  const whole = Math.max(1, ...times.map(({ from, to }) => (from === null ? 0 : (to ?? now) - start)));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached by keyboard
    <section className="wide-table" tabIndex={0} aria-label={t.runs.waterfall}>
      <table className="waterfall">
        <thead>
          <tr>
            <th scope="col">{t.runs.stage}</th>
            <th scope="col">{t.status}</th>
            <th scope="col">{t.runs.start}</th>
            <th scope="col">{t.runs.duration}</th>
            <td aria-hidden="true" />
          </tr>
        </thead>
        <tbody>
          {times.map((time) => (
            <Stage
              key={time.position}
              time={time}
              stage={execution.augmentation?.stages[time.position - 1]}
              start={start}
              now={now}
              whole={whole}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}

type StageOfPipeline = NonNullable<Execution['augmentation']>['stages'][number];

function Stage({
  time: { position, status, from, to, together },
  stage,
  start,
  now,
  whole,
}: {
  time: StageTime;
  stage: StageOfPipeline | undefined;
  start: number;
  now: number;
  whole: number;
}) {
  const length = from === null ? null : (to ?? now) - from;
  const bar = from !== null && length !== null && { left: (from - start) / whole, width: length / whole };
  const style = bar && ({ '--left': bar.left, '--width': bar.width } as CSSProperties);
  return (
    <tr>
      <th scope="row">
        {stage?.name ?? t.runs.stageAt(position)}
        {stage && <small className="quiet">{stage.steps.map(({ name }) => name).join(' · ')}</small>}
      </th>
      <td>
        <span className={`tag ${tagOf[status]}`}>{t.runs.status[status]}</span>
      </td>
      <td>{from === null ? '–' : `+${t.seconds(Math.max(0, from - start) / 1_000)}`}</td>
      <td>
        {length === null ? '–' : t.seconds(Math.max(0, length) / 1_000)}
        {together > 1 && <small className="quiet">{t.runs.together(together)}</small>}
      </td>
      <td aria-hidden="true" className="track">
        {style && <span className={`bar ${tagOf[status]} ${together > 1 ? 'together' : ''}`} style={style} />}
      </td>
    </tr>
  );
}
