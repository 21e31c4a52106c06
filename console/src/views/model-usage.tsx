import { type ModelsQuery, ModelUsageDocument, type ModelUsageQuery } from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { Figure } from '../ground/figure';
import { useFilters } from '../ground/filters';
import { usePlace } from '../ground/place';
import { Loading, Problem } from '../ground/problem';
import { brief, count, exact, timeZone } from '../ground/time';
import { t } from '../texts';
import { Chart, useTurn } from './analytics-charts';
import { type Offer, type Range, rangeOf, SpanChoice, type SpanFilter, useTurns } from './span-choice';

type Model = ModelsQuery['logicalModels']['nodes'][number];
type Target = Model['targets'][number];
type Point = ModelUsageQuery['modelUsage']['points'][number];
type Filter = SpanFilter | 'model' | 'target';
type Search = Partial<Record<Filter, string>>;

/** Without a year: usage is kept for 90 days. */
const offer: Offer = { usual: 'month', spans: ['day', 'week', 'month', 'quarter'], keptDays: 90 };

/** What stands for a target in the address: its account, whose id has no blank, and its name there. */
const keyOf = ({ providerAccountId, modelName }: Pick<Target, 'providerAccountId' | 'modelName'>) =>
  `${providerAccountId} ${modelName}`;

/** What is asked for: all models, one, or a target of one. */
function askedOf({ model, target }: Search) {
  if (!model) return {};
  const at = target?.indexOf(' ') ?? -1;
  if (!target || at <= 0) return { logicalModelId: model };
  return { logicalModelId: model, providerAccountId: target.slice(0, at), modelName: target.slice(at + 1) };
}

/** What this workspace used of its models over time: requests, tokens, cost. */
export function ModelUsage({ models }: { models: readonly Model[] }) {
  const [search, change] = useFilters<Filter>();
  const { end, turn } = useTurns();
  const range = rangeOf(search, end, offer);
  return (
    <section aria-labelledby="usage">
      <header className="toolbar">
        <h2 id="usage" className="grow">
          {t.models.usage}
        </h2>
        <SpanChoice search={search} end={end} offer={offer} onChange={change} />
        <Choices models={models} search={search} onChange={change} />
      </header>
      <p className="quiet">
        {t.models.usageHint} {t.analytics.zone(timeZone())}
      </p>
      {range ? <Numbers range={range} search={search} turn={turn} /> : <Problem message={t.analytics.wrongDates} />}
    </section>
  );
}

/** Of which model, and of which of its targets. What is gone may still be in the address. */
function Choices({
  models,
  search: { model = '', target = '' },
  onChange,
}: {
  models: readonly Model[];
  search: Search;
  onChange: (changes: Search) => void;
}) {
  const chosen = models.find(({ logicalModelId }) => logicalModelId === model);
  const targets = chosen?.targets ?? [];
  const isGone = target !== '' && !targets.some((one) => keyOf(one) === target);
  return (
    <>
      <label>
        {t.models.usageOf}{' '}
        <select value={model} onChange={(event) => onChange({ model: event.target.value, target: '' })}>
          <option value="">{t.models.allModels}</option>
          {models.map(({ logicalModelId, name }) => (
            <option key={logicalModelId} value={logicalModelId}>
              {name}
            </option>
          ))}
          {model && !chosen && <option value={model}>{model}</option>}
        </select>
      </label>
      {model && (targets.length > 0 || isGone) && (
        <label>
          {t.models.target}{' '}
          <select value={target} onChange={(event) => onChange({ target: event.target.value })}>
            <option value="">{t.models.allTargets}</option>
            {targets.map((one) => (
              <option key={keyOf(one)} value={keyOf(one)}>
                {`${one.modelName} (${one.account?.name ?? one.providerAccountId})`}
              </option>
            ))}
            {isGone && <option value={target}>{target.slice(target.indexOf(' ') + 1)}</option>}
          </select>
        </label>
      )}
    </>
  );
}

function Numbers({ range: { step, from, to }, search, turn }: { range: Range; search: Search; turn: number }) {
  const { orgId, workspaceId } = usePlace();
  const between = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  const asked = { orgId, workspaceId, ...askedOf(search), step, ...between, tz: timeZone() };
  const { data, error, isLoading, again } = useAnswer(ModelUsageDocument, asked);
  useTurn(turn, again);
  const points = data?.modelUsage.points;
  if (isLoading) return <Loading />;
  if (!points) return <Problem error={error} />;
  const sums = sumsOf(points);
  return (
    <>
      <Problem error={error} />
      {sums.requests === 0 ? (
        <p className="quiet">{t.models.usageNone}</p>
      ) : (
        <>
          <dl className="numbers">
            <Figure label={t.models.requests} value={brief(sums.requests)} />
            <Figure label={t.models.errors} value={brief(sums.errors)} />
            <Figure label={t.models.tokensIn} value={brief(sums.inputTokens)} />
            <Figure label={t.models.tokensOut} value={brief(sums.outputTokens)} />
            <Figure label={t.models.totalCost} value={exact(sums.cost)} />
          </dl>
          <Charts points={points} step={step} />
        </>
      )}
    </>
  );
}

type Quantity = Exclude<keyof Point, 'timestamp'>;

const numbersOf = (points: readonly Point[], name: Quantity): number[] => points.map((point) => Number(point[name]));

function sumsOf(points: readonly Point[]): Record<Quantity, number> {
  const sum = (name: Quantity) => numbersOf(points, name).reduce((all, one) => all + one, 0);
  return {
    requests: sum('requests'),
    errors: sum('errors'),
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    cost: sum('cost'),
  };
}

function Charts({ points, step }: { points: readonly Point[]; step: Range['step'] }) {
  const line = (name: Quantity, label: string) => ({ label, values: numbersOf(points, name) });
  const common = {
    step,
    times: points.map(({ timestamp }) => timestamp),
    error: undefined,
    isLoading: false,
    Heading: 'h3' as const,
  };
  return (
    <div className="plots">
      <Chart
        {...common}
        label={t.models.requestsOverTime}
        name="model-requests"
        lines={[line('requests', t.models.requests), line('errors', t.models.errors)]}
        show={count}
      />
      <Chart
        {...common}
        label={t.models.tokens}
        name="model-tokens"
        lines={[line('inputTokens', t.models.tokensIn), line('outputTokens', t.models.tokensOut)]}
        show={count}
      />
      <Chart
        {...common}
        label={t.models.totalCost}
        name="model-cost"
        lines={[line('cost', t.models.totalCost)]}
        show={exact}
      />
    </div>
  );
}
