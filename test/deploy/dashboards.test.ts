import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { projectRoot } from '../../src/paths.ts';
import { startOwnApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { register } from '../support/person.ts';
import { evaluated, type Sample, selectedBy } from '../support/promql.ts';
import { waitUntil } from '../support/wait.ts';

const fileOf = (name: string) => readFileSync(path.join(projectRoot, 'docs', 'operate', name), 'utf8');

interface Panel {
  id: number;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets: { expr: string; legendFormat: string }[];
}
const dashboard = JSON.parse(fileOf('grafana.json')) as {
  uid: string;
  __inputs: { name: string; pluginId: string }[];
  templating: { list: { name: string; query: { query: string } }[] };
  panels: Panel[];
};
interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
}
const { groups } = parse(fileOf('alerts.yaml')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** Metrics of nodes with Redis, replicas or workers: their tests have them. */
const CONDITIONAL = {
  platform_redis_up: [],
  platform_database_replica_in_use: ['replica'],
  platform_worker_deaths_total: [],
};

/** What Prometheus adds to everything that it scrapes. */
const SCRAPED = ['job', 'instance'];

let app: TestApp;
/** The labels of the samples of each metric. */
const labelsOf = new Map<string, Set<string>>();
beforeAll(async () => {
  app = await startOwnApp();
  for (const [metric, labels] of Object.entries(CONDITIONAL)) labelsOf.set(metric, new Set([...SCRAPED, ...labels]));
  const ann = await register(app);
  await callsOf(app).post('/v1/auth/login', { username: ann.username, password: 'not that one' });
  await ann.ask('{ me { username } }');
  await app.services.outbound.request({ url: 'https://169.254.169.254/' }).catch(() => undefined);
  const body = await waitUntil(
    async () => {
      const metrics = (await callsOf(app).get('/metrics')).body;
      return /^platform_nodes\{/m.test(metrics) ? metrics : undefined;
    },
    { what: 'the first heartbeat of the node' },
  );
  for (const [, name = '', labels = ''] of body.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/gm)) {
    const known = labelsOf.get(name) ?? new Set(SCRAPED);
    for (const [, label = ''] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(label);
    labelsOf.set(name, known);
  }
});
afterAll(() => app.close());

/** What a query wants and `/metrics` does not have. */
function missingIn(query: string, more: readonly string[] = []): string[] {
  const selected = selectedBy(query);
  expect(selected.length, query).toBeGreaterThan(0);
  return selected.flatMap(({ metric, labels }) => {
    const known = labelsOf.get(metric);
    if (!known) return [metric];
    return [...labels, ...more].filter((label) => !known.has(label)).map((label) => `${metric}{${label}}`);
  });
}

describe('the reader of PromQL', () => {
  it.each([
    ['a', [{ metric: 'a', labels: [] }]],
    [
      'sum(rate(a{x="b{c}",y=~"d|e"}[5m])) / b > 0.5',
      [
        { metric: 'a', labels: ['x', 'y'] },
        { metric: 'b', labels: [] },
      ],
    ],
    ['sum by (s) (max by (t, s) (a{x!="1"}))', [{ metric: 'a', labels: ['x', 't', 's', 's'] }]],
    [
      'histogram_quantile(0.95, sum by (le) (rate(a_bucket[$__rate_interval]))) or vector(0)',
      [{ metric: 'a_bucket', labels: ['le'] }],
    ],
    [
      'topk(5, sum by (r) (a)) + absent(b)',
      [
        { metric: 'a', labels: ['r'] },
        { metric: 'b', labels: [] },
      ],
    ],
  ])('finds what is selected: %s', (query, selected) => {
    expect(selectedBy(query)).toEqual(selected);
  });

  it.each([
    ['a', [1, 2, 4]],
    ['a > 1', [2, 4]],
    ['sum(a)', [7]],
    ['max by (x) (a)', [2, 4]],
    ['count(sum by (x) (a)) > 2', []],
    ['none', []],
  ])('comes to what Prometheus would: %s', (query, values) => {
    const samples: Sample[] = [
      { metric: 'a', labels: { x: '1', y: '1' }, value: 1 },
      { metric: 'a', labels: { x: '1', y: '2' }, value: 2 },
      { metric: 'a', labels: { y: '1' }, value: 4 },
      { metric: 'b', labels: {}, value: 8 },
    ];
    expect(evaluated(query, samples).map(({ value }) => value)).toEqual(values);
  });

  it('notices a metric and a label that are not there', () => {
    expect(missingIn('sum by (stats) (platform_http_requests_total) + no_such_total')).toEqual([
      'platform_http_requests_total{stats}',
      'no_such_total',
    ]);
  });
});

describe('the dashboard', () => {
  it.each(dashboard.panels.map(({ title, targets }) => [title, targets] as const))(
    'has metrics and labels that there are: %s',
    (_title, targets) => {
      for (const { expr, legendFormat } of targets) {
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
        expect(missingIn(expr, shown)).toEqual([]);
        // a legend shows what the query has left
        const grouped = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ');
        if (grouped) expect(grouped).toEqual(expect.arrayContaining(shown));
      }
    },
  );

  it('asks for its source, and chooses nodes by metrics that there are', () => {
    expect(dashboard.__inputs).toMatchObject([{ name: 'DS_PROMETHEUS', pluginId: 'prometheus' }]);
    for (const { query } of dashboard.templating.list) {
      const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(query.query) ?? [];
      expect(missingIn(selector, [label])).toEqual([]);
    }
  });

  it('has panels of different names that do not overlap', () => {
    const { panels } = dashboard;
    for (const key of ['id', 'title'] as const)
      expect(new Set(panels.map((panel) => panel[key])).size).toBe(panels.length);
    const taken = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    );
    expect(new Set(taken).size).toBe(taken.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });
});

describe('the alerts', () => {
  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    'have metrics, labels and a way out: %s',
    (_alert, rule) => {
      const { expr, labels, annotations } = rule;
      const said = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!);
      expect(missingIn(expr, said)).toEqual([]);
      expect(['critical', 'warning', 'info']).toContain(labels.severity);
      expect(annotations.summary.length).toBeGreaterThan(10);
      expect(annotations.runbook.length).toBeGreaterThan(60);
    },
  );

  it('tell nodes of several versions from several installations in one Prometheus', () => {
    const { expr } = rules.find(({ alert }) => alert === 'PlatformVersionsMixed')!;
    // each node answers for all of its installation
    const said = (job: string, instance: string, version: string) => ({
      metric: 'platform_nodes',
      labels: { job, instance, version },
      value: 1,
    });
    const apart = [said('east', 'a', '1.0.0'), said('east', 'b', '1.0.0'), said('west', 'c', '2.0.0')];
    expect(evaluated(expr, apart)).toEqual([]);
    const mixed = [said('west', 'c', '1.9.0'), said('west', 'd', '1.9.0'), said('west', 'd', '2.0.0')];
    expect(evaluated(expr, [...apart, ...mixed])).toEqual([{ labels: { job: 'west' }, value: 2 }]);
  });

  it('have different names', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });
});
