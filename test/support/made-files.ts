import { crc32, deflateRawSync, deflateSync } from 'node:zlib';

/** A PDF with a page for each text. @param options how often the pages are packed, and what they have instead of it */
export function pdfOf(pages: readonly string[], options: { deflated?: number; content?: Buffer } = {}): Buffer {
  const times = options.deflated ?? 0;
  const objects: Buffer[] = [
    Buffer.from('<</Type/Catalog/Pages 2 0 R>>'),
    Buffer.from(
      `<</Type/Pages/Count ${pages.length}/Kids[${pages.map((_, index) => `${4 + index * 2} 0 R`).join(' ')}]>>`,
    ),
    Buffer.from('<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>'),
  ];
  for (const [index, text] of pages.entries()) {
    const shown = options.content ?? Buffer.from(`BT /F1 12 Tf 50 700 Td (${text.replace(/[()\\]/g, '\\$&')}) Tj ET`);
    let data = shown;
    for (let time = 0; time < times; time += 1) data = deflateSync(data);
    const filter = times > 0 ? `/Filter[${'/FlateDecode'.repeat(times)}]` : '';
    objects.push(
      Buffer.from(
        `<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents ${5 + index * 2} 0 R` +
          '/Resources<</Font<</F1 3 0 R>>>>>>',
      ),
      Buffer.concat([Buffer.from(`<</Length ${data.length}${filter}>>\nstream\n`), data, Buffer.from('\nendstream')]),
    );
  }
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n')];
  const offsets: number[] = [];
  let at = parts[0]!.length;
  for (const [index, object] of objects.entries()) {
    const part = Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), object, Buffer.from('\nendobj\n')]);
    offsets.push(at);
    parts.push(part);
    at += part.length;
  }
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  parts.push(
    Buffer.from(
      `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}` +
        `trailer\n<</Size ${objects.length + 1}/Root 1 0 R>>\nstartxref\n${at}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(parts);
}

/** An entry of a ZIP. */
export interface ZipEntry {
  name: string;
  data: Buffer;
  /** What the headers say of the size, when that is a lie. */
  claimedBytes?: number;
}

/** A ZIP of deflated entries. @param overlapping all entries of the directory name the data of the first */
export function zipOf(entries: readonly ZipEntry[], { overlapping = false } = {}): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const [index, { name, data, claimedBytes }] of entries.entries()) {
    const packed = deflateRawSync(data);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(claimedBytes ?? data.length, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(overlapping ? 0 : at, 10);
    central.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, tail, Buffer.from(name));
    if (overlapping && index > 0) continue;
    const head = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, Buffer.from(name), packed]);
    local.push(head);
    at += head.length;
  }
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(Buffer.concat(central).length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...local, ...central, end]);
}

const TYPES =
  '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">' +
  '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>' +
  '<Override PartName="/word/document.xml" ContentType=' +
  '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>';
const RELATIONS =
  '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type=' +
  '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>' +
  '</Relationships>';

/** The XML of a Word document's text. */
export const wordXml = (paragraphs: readonly string[]): Buffer =>
  Buffer.from(
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>' +
      paragraphs.map((text) => `<w:p><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`).join('') +
      '</w:body></w:document>',
  );

/** A Word document. @param more entries besides its own */
export const docxOf = (paragraphs: readonly string[], more: readonly ZipEntry[] = []): Buffer =>
  zipOf([
    { name: '[Content_Types].xml', data: Buffer.from(TYPES) },
    { name: '_rels/.rels', data: Buffer.from(RELATIONS) },
    { name: 'word/document.xml', data: wordXml(paragraphs) },
    ...more,
  ]);
