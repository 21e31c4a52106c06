import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { configVariables } from '../../src/config.ts';
import { projectRoot } from '../../src/paths.ts';

const read = (file: string) => readFileSync(path.join(projectRoot, file), 'utf8');
const known = new Set([...configVariables.map(({ name }) => name), 'NODE_ENV']);

interface ComposeService {
  image?: string;
  environment?: Record<string, string>;
  profiles?: string[];
  depends_on?: string[] | Record<string, unknown>;
}
const compose = parse(read('compose.yaml'), { merge: true }) as {
  services: Record<string, ComposeService>;
  networks: { default: { ipam: { config: [{ subnet: string }] } } };
};

/** The settings that a file gives the service. */
const settings: Record<string, () => string[]> = {
  Dockerfile: () => [...read('Dockerfile').matchAll(/^ENV (.*)$/gm)].flatMap(([, line]) => namesIn(line!)),
  'compose.yaml': () => Object.keys(compose.services.node!.environment!),
  'deploy/systemd/platform.service': () =>
    [...read('deploy/systemd/platform.service').matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) => namesIn(line!)),
  'deploy/helm/values.yaml': () => {
    const text = read('deploy/helm/values.yaml');
    const named = [...text.matchAll(/^# .*$/gm)].flatMap(
      ([line]) => line.match(/\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/g) ?? [],
    );
    return [...Object.keys((parse(text) as { settings: object }).settings), ...named];
  },
  'deploy/helm/templates/deployment.yaml': () =>
    [...read('deploy/helm/templates/deployment.yaml').matchAll(/\{ name: ([A-Z_]+), value/g)].map(([, name]) => name!),
};
const namesIn = (line: string) => [...line.matchAll(/(?:^| )([A-Z][A-Z0-9_]*)=/g)].map(([, name]) => name!);

describe('the settings of', () => {
  test.each(Object.entries(settings))('%s are settings of the service', (_, names) => {
    expect(names().length).toBeGreaterThan(1);
    expect(names().filter((name) => !known.has(name))).toEqual([]);
  });
});

test('each node of compose.yaml differs by its profile alone, and waits for services that are there', () => {
  const { node, node2, node3 } = compose.services;
  for (const other of [node2, node3])
    expect({ ...other, profiles: undefined }).toEqual({ ...node, ports: undefined, profiles: undefined });
  for (const service of Object.values(compose.services)) {
    const names = Array.isArray(service.depends_on) ? service.depends_on : Object.keys(service.depends_on ?? {});
    for (const name of names) expect(compose.services).toHaveProperty(name);
  }
});

test('with deploy/nodes.env the nodes of compose.yaml reach services that are there', () => {
  const lines = read('deploy/nodes.env').split('\n');
  const given = new Map(
    lines.filter((line) => /^[A-Z]/.test(line)).map((line) => line.split(/=(.*)/) as [string, string]),
  );
  for (const name of ['DATABASE_URL', 'DATABASE_DIRECT_URL', 'DATABASE_READ_URLS']) {
    expect(compose.services.node!.environment![name]).toContain(`\${${name}:-`);
    const { hostname, password } = new URL(given.get(name)!);
    expect(compose.services).toHaveProperty(hostname);
    expect(password).toBe(given.get('POSTGRES_PASSWORD'));
  }
});

test('the nodes of compose.yaml believe their proxy, which is in their network', () => {
  const [{ subnet }] = compose.networks.default.ipam.config;
  expect(compose.services.node!.environment!.TRUSTED_PROXIES).toBe(`\${TRUSTED_PROXIES:-${subnet}}`);
});

test('an image has what a release has: the build sees all that it takes, and nothing that is made', () => {
  const ignored = read('.dockerignore').trim().split('\n');
  expect(ignored).toEqual(expect.arrayContaining(['.git', 'node_modules', 'dist', '.data']));
  for (const needed of ['src', 'rest', 'public', 'docs', 'prisma', 'scripts', 'package-lock.json'])
    expect(ignored).not.toContain(needed);
});
