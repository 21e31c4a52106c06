import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { withoutPlainSecrets } from '../../src/kernel/plain-secrets.ts';
import { secretParts } from '../../src/kernel/secret-shapes.ts';
import { harmlessTexts, secretCases } from './secret-corpus.ts';

/** What becomes of a text, and whether there was a doubt. */
function judged(key: string, text: string): { written: string; doubts: number } {
  let doubts = 0;
  const writer = { write: () => '▮', doubt: () => doubts++ };
  const written = (withoutPlainSecrets({ [key]: text }, writer) as Record<string, string>)[key]!;
  return { written, doubts };
}

const recipes = path.join('src', 'pipelines', 'recipes', 'built-in');

/** All texts of the built-in recipes, each with its key. */
function builtInTexts(): [string, string][] {
  const texts: [string, string][] = [];
  for (const file of readdirSync(recipes))
    JSON.parse(readFileSync(path.join(recipes, file), 'utf8'), (key, value: unknown) => {
      if (typeof value === 'string') texts.push([key, value]);
      return value;
    });
  return texts;
}

test('of the corpus at most two secrets are missed, and what has a telling form or key is replaced', () => {
  expect(secretCases.length).toBeGreaterThanOrEqual(60);
  const stays = secretCases.filter(({ key, text, secret }) => judged(key, text).written.includes(secret));
  const missed = stays.filter(({ key, text }) => judged(key, text).doubts === 0);
  expect(missed).toEqual([]);
  // only random words without a telling key stay, with a warning
  expect(stays.map(({ key }) => key)).toEqual(['note', 'reference']);
});

test('what stands around a secret stays', () => {
  expect(judged('prompt', `Use ghp_${'a1'.repeat(18)} for {{input.text}}.`).written).toBe('Use ▮ for {{input.text}}.');
  expect(judged('url', 'https://example.test/?q=1&access_token=abc123def456&limit=3').written).toBe(
    'https://example.test/?q=1&access_token=▮&limit=3',
  );
  expect(judged('body', '{"client_secret":"abc123def456","grant_type":"x"}').written).toBe(
    '{"client_secret":"▮","grant_type":"x"}',
  );
});

test('of harmless texts and of all texts of the built-in recipes at most 5 % are taken for secrets', () => {
  const texts = [...harmlessTexts, ...builtInTexts()];
  expect(texts.length).toBeGreaterThan(300);
  const alarms = texts.filter(([key, text]) => {
    const { written, doubts } = judged(key, text);
    return written !== text || doubts > 0;
  });
  expect(alarms).toEqual([]);
  expect(builtInTexts().length).toBeGreaterThan(200);
});

test('parts are apart and in their order, for any text', () => {
  const all = secretCases.map(({ text }) => text).join(' | ');
  const parts = secretParts('prompt', all);
  expect(parts.length).toBeGreaterThan(40);
  for (const [at, { start, end }] of parts.entries()) {
    expect(end).toBeGreaterThan(start);
    expect(start).toBeGreaterThanOrEqual(parts[at - 1]?.end ?? 0);
  }
});
