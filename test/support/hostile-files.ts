import type { TextKind } from '../../src/knowledge/indexing/text/text-kinds.ts';
import { docxOf, pdfOf, wordXml, zipOf } from './made-files.ts';

/** A file that is made to exhaust whoever reads it. */
export interface HostileFile {
  name: string;
  kind: TextKind;
  file: () => Buffer;
  /** Why it has no text: one of these. */
  reasons: readonly string[];
}

const MIB = 1024 * 1024;
const zeros = Buffer.alloc(64 * MIB);

/** Each is small: below 1 MiB. */
export const hostileFiles: readonly HostileFile[] = [
  {
    name: 'a PDF packed three times',
    kind: 'pdf',
    file: () => pdfOf(['x'], { deflated: 3, content: zeros }),
    reasons: ['expands', 'memory'],
  },
  {
    name: 'a PDF packed once',
    kind: 'pdf',
    file: () => pdfOf(['x'], { deflated: 1, content: zeros }),
    reasons: ['expands', 'memory'],
  },
  {
    name: 'a document that unpacks a thousandfold',
    kind: 'docx',
    file: () => docxOf([' '.repeat(30 * MIB)]),
    reasons: ['expands'],
  },
  {
    name: 'a document whose headers say that it is small',
    kind: 'docx',
    file: () => docxOf(['x'], [{ name: 'word/more.xml', data: zeros, claimedBytes: 10 }]),
    reasons: ['expands'],
  },
  {
    name: 'a document whose entries are the same bytes',
    kind: 'docx',
    file: () =>
      zipOf(
        Array.from({ length: 50 }, () => ({ name: 'word/document.xml', data: wordXml(['x'.repeat(500)]) })),
        { overlapping: true },
      ),
    reasons: ['overlaps'],
  },
  {
    name: 'ten thousand documents in one',
    kind: 'docx',
    file: () => zipOf(Array.from({ length: 10_001 }, (_, index) => ({ name: `${index}.xml`, data: Buffer.from('x') }))),
    reasons: ['entries'],
  },
  {
    name: 'entities that contain each other',
    kind: 'docx',
    file: () => {
      const levels = Array.from({ length: 20 }, (_, n) => `<!ENTITY e${n + 1} "${`&e${n};`.repeat(20)}">`).join('');
      const xml = `<!DOCTYPE d [<!ENTITY e0 "ha">${levels}]><w:document>&e20;</w:document>`;
      return docxOf(['x'], [{ name: 'word/document.xml', data: Buffer.from(xml) }]);
    },
    reasons: ['unreadable'],
  },
  { name: 'a damaged PDF', kind: 'pdf', file: () => Buffer.from('%PDF-1.7 nothing'), reasons: ['unreadable'] },
  {
    name: 'a damaged document',
    kind: 'docx',
    file: () => docxOf(['x']).subarray(10),
    reasons: ['unreadable'],
  },
];
