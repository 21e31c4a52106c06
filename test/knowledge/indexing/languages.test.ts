import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { newArtifact, shelfOf } from '../artifacts/artifacts.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Found {
  results: { artifact: { name: string }; score: number; matched_chunk: string }[];
  total_results: number;
}

async function found(person: Person, query: string): Promise<Found> {
  const { status, body } = await person.call<Found>('POST', `${shelfOf(person)}/query`, { query });
  expect(status, query).toBe(200);
  return body;
}

const namesOf = ({ results }: Found) => results.map(({ artifact }) => artifact.name);
const namesFor = async (person: Person, query: string) => namesOf(await found(person, query));

/** Somebody with these artifacts, all indexed. */
async function withTexts(texts: Readonly<Record<string, string>>): Promise<Person> {
  const person = await register(app, { name: 'ann' });
  for (const [name, content] of Object.entries(texts)) await newArtifact(person, { name, content });
  await app.jobsDone();
  return person;
}

const unspaced = {
  zh: '北京的天气今天很好，适合去公园散步。',
  ja: '東京タワーは高い。猫が好きです。',
  ko: '서울특별시의 인구는 약 천만 명이다.',
  th: 'ประเทศไทยมีอากาศร้อนตลอดปี',
};

describe('text of scripts without spaces', () => {
  test.each([
    ['北京', 'zh'],
    ['天气', 'zh'],
    ['公园', 'zh'],
    ['北京 公园', 'zh'],
    ['东边北京市', 'zh'],
    ['東京', 'ja'],
    ['タワー', 'ja'],
    ['ﾀﾜｰ', 'ja'],
    ['猫', 'ja'],
    ['서울', 'ko'],
    ['서울특별시', 'ko'],
    ['인구', 'ko'],
    ['อากาศ', 'th'],
    ['ประเทศไทย', 'th'],
  ])('is found by %s', async (query, name) => {
    const ann = await withTexts(unspaced);
    expect((await namesFor(ann, query))[0]).toBe(name);
  });

  test('is found by operators, as a phrase', async () => {
    const ann = await withTexts({ one: '北京的天气今天很好', two: '天气在北京变化', three: '猫' });
    expect(await namesFor(ann, '"北京的天气"')).toEqual(['one']);
    expect(await namesFor(ann, '天气 -今天')).toEqual(['two']);
    expect((await namesFor(ann, '今天 OR 变化')).sort()).toEqual(['one', 'two']);
    expect(await namesFor(ann, '天气 OR 猫')).toHaveLength(3);
  });

  test('is found by names, tags and what is not indexed yet', async () => {
    const ann = await register(app, { name: 'ann' });
    await newArtifact(ann, { name: '季度报告', tags: ['风力发电'] });
    expect(await namesFor(ann, '报告')).toEqual(['季度报告']);
    expect(await namesFor(ann, '发电')).toEqual(['季度报告']);
  });

  test('shows the part around the hit', async () => {
    const filler = '这里没有什么可看的。'.repeat(300);
    const ann = await withTexts({ long: `${filler}北京烤鸭非常有名。${filler}` });
    const { results } = await found(ann, '烤鸭');
    expect(results[0]!.matched_chunk).toContain('北京烤鸭非常有名');
    expect(results[0]!.matched_chunk.length).toBeLessThanOrEqual(500);
  });
});

test.each([
  ['German', 'Die Versicherung übernahm die Kosten für alle beschädigten Häuser.', ['Haus beschädigt', 'häusern']],
  ['French', 'Les chevaux se reposent après la longue course du dimanche matin.', ['chevaux', 'reposer', 'courses']],
  ['Spanish', 'Las facturas de los clientes se pagaron dentro de treinta días.', ['factura', 'pagar']],
  ['Russian', 'Расписание поездов меняется каждую осень на всех вокзалах города.', ['поезд', 'расписания', 'вокзал']],
  ['Arabic', 'يلعب الولد في الحديقة كل يوم بعد المدرسة مع أصدقائه.', ['ولد', 'حديقة']],
])('%s words are found in other forms', async (_language, content, queries) => {
  const ann = await withTexts({ it: content, other: 'An unrelated text about nothing in particular, in English.' });
  for (const query of queries) expect((await namesFor(ann, query))[0], query).toBe('it');
});

test('English is found in its forms beside other languages, and words that say nothing find nothing', async () => {
  const ann = await withTexts({
    ...unspaced,
    en: 'The instruments need a calibration twice a year, and nobody knows why.',
    pl: 'Faktury należy opłacić w ciągu trzydziestu dni od dnia wystawienia.',
    de: 'Die Heizung wird im Herbst gewartet, bevor es draußen kalt wird.',
  });
  expect(await namesFor(ann, 'how is an instrument calibrated')).toEqual(['en']);
  expect(await namesFor(ann, 'calibraiton')).toEqual(['en']);
  expect(await namesFor(ann, 'die Heizungen')).toEqual(['de']);
  expect(await namesFor(ann, 'faktury')).toEqual(['pl']);
});

describe('an exact part of three characters or more', () => {
  const content = 'Set the flag --verbose_mode=2 before the refrigerator starts; it is written in C++ (see a/b).';
  test.each(['frige', 'verbose_m', '--verbose', 'C++', '++ (', '=2 b', 'the', 'e r', 'a/b', ' flag --verb', content])(
    'is found: %s',
    async (query) => {
      const ann = await withTexts({ it: content, no: 'Nothing of that kind.' });
      expect((await namesFor(ann, query))[0]).toBe('it');
    },
  );

  test('is found in names, whatever characters it has', async () => {
    const ann = await register(app, { name: 'ann' });
    await newArtifact(ann, { name: 'Report_50%_final' });
    await newArtifact(ann, { name: 'Report-50x-final' });
    for (const query of ['t_50', '50%_', 'ORT_50%'])
      expect(await namesFor(ann, query), query).toEqual(['Report_50%_final']);
  });

  test('is found wherever a long text is cut', async () => {
    const numbers = Array.from({ length: 3_000 }, (_, index) => index.toString(36).padStart(4, 'z'));
    const han = Array.from({ length: 4_000 }, (_, index) => String.fromCodePoint(0x4e00 + index)).join('');
    const ann = await withTexts({ numbers: numbers.join(''), spaced: numbers.join(' '), han });
    for (let at = 37; at < 11_000; at += 457) {
      const part = numbers.join('').slice(at, at + 32);
      expect(await namesFor(ann, part), part).toContain('numbers');
    }
    for (let at = 11; at < 3_900; at += 211) expect((await namesFor(ann, han.slice(at, at + 20)))[0]).toBe('han');
  });
});
