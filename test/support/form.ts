/** The file of a form. */
export interface FilePart {
  name?: string;
  content: Buffer | string;
  type?: string;
}

/** A text that says what it is. */
export interface TypedText {
  text: string;
  type: string;
}

/** A part of a form: a text, or a file. */
export type FormPart = readonly [name: string, value: string | TypedText | FilePart];

const BOUNDARY = '----form-of-the-tests';

/** The type of a body that {@link formOf} makes. */
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** A form, in this order. Names are written as they are: hostile ones too. */
export function formOf(parts: readonly FormPart[], boundary = BOUNDARY): Buffer {
  const encoded = parts.map(([name, value]) => {
    const { fileName, type, content } = partOf(value);
    const file = fileName === undefined ? '' : `; filename="${fileName}"`;
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n${type}\r\n`;
    return Buffer.concat([Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')]);
  });
  return Buffer.concat([...encoded, Buffer.from(`--${boundary}--\r\n`)]);
}

function partOf(value: FormPart[1]): { fileName?: string; type: string; content: Buffer | string } {
  if (typeof value === 'string') return { type: '', content: value };
  if ('text' in value) return { type: typeLine(value.type), content: value.text };
  const { name: fileName = 'file.bin', type = 'application/octet-stream', content } = value;
  return { fileName, type: typeLine(type), content };
}

const typeLine = (type: string): string => `content-type: ${type}\r\n`;
