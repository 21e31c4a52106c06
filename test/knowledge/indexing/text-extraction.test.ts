// own process: measures the memory of the process
import { afterAll, describe, expect, test } from 'vitest';
import type { ExtractionError } from '../../../src/knowledge/indexing/text/extraction-error.ts';
import { TextExtraction } from '../../../src/knowledge/indexing/text/text-extraction.ts';
import { type TextKind, textKindOf } from '../../../src/knowledge/indexing/text/text-kinds.ts';
import { limits } from '../../../src/knowledge/indexing/text/text-limits.ts';
import { hostileFiles } from '../../support/hostile-files.ts';
import { docxOf, pdfOf } from '../../support/made-files.ts';

const extraction = new TextExtraction();
afterAll(() => extraction.close());

const MIB = 1024 * 1024;

async function textOf(kind: TextKind, content: string | Buffer, isWhole = true): Promise<string> {
  return (await extraction.extract({ kind, bytes: Uint8Array.from(Buffer.from(content)), isWhole })).text;
}

/** Why a file has no text. */
async function refusal(kind: TextKind, content: Buffer, from = extraction): Promise<string> {
  const work = from.extract({ kind, bytes: Uint8Array.from(content), isWhole: true });
  return work.then(
    ({ text }) => `text of ${text.length} characters`,
    (error: ExtractionError) => error.reason,
  );
}

test('finds the kind of a media type', () => {
  expect(
    Object.fromEntries(
      [
        'text/plain; charset=utf-8',
        'text/markdown',
        'TEXT/HTML',
        'text/csv',
        'application/json',
        'application/vnd.api+json',
        'image/svg+xml',
        'application/pdf',
        'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
        'image/png',
        'application/zip',
        'constructor',
      ].map((type) => [type, textKindOf(type)]),
    ),
  ).toEqual({
    'text/plain; charset=utf-8': 'plain',
    'text/markdown': 'plain',
    'TEXT/HTML': 'html',
    'text/csv': 'plain',
    'application/json': 'json',
    'application/vnd.api+json': 'plain',
    'image/svg+xml': null,
    'application/pdf': 'pdf',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
    'image/png': null,
    'application/zip': null,
    constructor: null,
  });
});

describe('takes the text out of', () => {
  test('plain text in any encoding that says so, as the database can store it', async () => {
    expect(await textOf('plain', 'Grüße\r\naus \0Köln')).toBe('Grüße\naus  Köln');
    expect(await textOf('plain', Buffer.from('\ufeffGrüße', 'utf16le'))).toBe('Grüße');
    expect(await textOf('plain', Buffer.from('Grüße', 'latin1'))).toBe('Grüße');
    expect(await textOf('plain', Buffer.from('Grü').subarray(0, 3), false)).toBe('Gr');
  });

  test('HTML as a reader sees it', async () => {
    const html =
      '<!doctype html><html><head><title>Tea &amp; cake</title><style>p { color: red }</style></head><body>' +
      '<script>if (1 < 2) document.write("<p>never</p>")</script><h1>One<br>two</h1><p>three <b>fo</b>ur&nbsp;five' +
      '<p>six<!-- hidden --><table><tr><td>a</td><td>b</td></tr></table><a href="x" title="no">link</a>, 3 < 4';
    expect(await textOf('html', html)).toBe('Tea & cake\nOne\ntwo\nthree four five\nsix\na b\nlink, 3 < 4');
  });

  test('JSON as lines of names and values', async () => {
    expect(await textOf('json', '{"na\\u0069ve": "caf\\u00e9 \\"x\\"", "list": [1, true, {"deep": null}]}')).toBe(
      'naive: café "x"\nlist: 1\ntrue\ndeep: null\n',
    );
    expect(await textOf('json', '{"cut": "off he')).toBe('cut: off he\n');
  });

  test('PDF, packed and not', async () => {
    expect(await textOf('pdf', pdfOf(['The first page', 'the second (and last)']))).toBe(
      'The first page\n\nthe second (and last)',
    );
    expect(await textOf('pdf', pdfOf(['Packed twice'], { deflated: 2 }))).toBe('Packed twice');
  });

  test('Word documents', async () => {
    expect(await textOf('docx', docxOf(['First paragraph', 'Zweiter Absatz &amp; mehr']))).toBe(
      'First paragraph\n\nZweiter Absatz & mehr\n\n',
    );
  });
});

describe('keeps to its limits:', () => {
  test('cuts the output between code points', async () => {
    const text = await textOf('plain', `x${'€'.repeat(MIB)}`);
    expect([Buffer.byteLength(text), text.slice(0, 2), text.slice(-1)]).toEqual([2 * MIB - 1, 'x€', '€']);
  });

  test('reads the first 500 pages', async () => {
    const patient = new TextExtraction({ timeMs: 120_000, growthBytes: 1024 * MIB });
    const bytes = Uint8Array.from(pdfOf(Array.from({ length: 600 }, (_, index) => `page ${index + 1}`)));
    const { text } = await patient.extract({ kind: 'pdf', bytes, isWhole: true });
    await patient.close();
    expect(text.split('\n\n')).toHaveLength(limits.pages);
    expect(text.endsWith('page 500')).toBe(true);
  });

  test.each(hostileFiles)('$name', async ({ kind, file, reasons }) => {
    expect(reasons).toContain(await refusal(kind, file()));
    // the next file is none the worse
    expect(await textOf('plain', 'fine')).toBe('fine');
  });

  test('depth of HTML and JSON costs one pass', async () => {
    expect(await textOf('html', `${'<div>'.repeat(300_000)}deep`)).toBe('deep');
    expect(await textOf('json', `${'['.repeat(1_000_000)}"deep"`)).toBe('deep\n');
  });

  test('time and memory end the work of one file alone', async () => {
    const slow = new TextExtraction({ timeMs: 0 });
    const small = new TextExtraction({ growthBytes: -1_000 * MIB });
    const pages = pdfOf(Array.from({ length: 400 }, () => 'x'));
    expect(await refusal('pdf', pages, slow)).toBe('timeout');
    expect(await refusal('pdf', pages, small)).toBe('memory');
    await Promise.all([slow.close(), small.close()]);
    await expect(slow.extract({ kind: 'plain', bytes: new Uint8Array(1), isWhole: true })).rejects.toThrow(
      'Reading the file failed.',
    );
  });

  test('what the service itself takes is not counted', async () => {
    const pages = pdfOf(Array.from({ length: 40 }, () => 'A lark rises. '.repeat(20)));
    const reading = textOf('pdf', pages);
    // several times what a file may take; written to, so that it is really there
    const held = Array.from({ length: 40 }, () => Buffer.alloc(16 * MIB, 1));
    expect((await reading).split('\n\n')).toHaveLength(40);
    expect(held).toHaveLength(40);
  });

  test('many files wait for each other', async () => {
    const words = Array.from({ length: 10 }, (_, index) => `word${index}`);
    expect(await Promise.all(words.map((word) => textOf('plain', word)))).toEqual(words);
  });
});
