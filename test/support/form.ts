/** The file of a form. */
export interface FilePart {
  name?: string;
  content: Buffer | string;
  type?: string;
}

/** A part of a form: a text, or a file. */
export type FormPart = readonly [name: string, value: string | FilePart];

const BOUNDARY = '----form-of-the-tests';

/** The type of a body that {@link formOf} makes. */
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** A form, in this order. Names are written as they are: hostile ones too. */
export function formOf(parts: readonly FormPart[], boundary = BOUNDARY): Buffer {
  const encoded = parts.map(([name, value]) => {
    const isFile = typeof value !== 'string';
    const fileName = isFile ? `; filename="${value.name ?? 'file.bin'}"` : '';
    const type = isFile ? `content-type: ${value.type ?? 'application/octet-stream'}\r\n` : '';
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${fileName}\r\n${type}\r\n`;
    return Buffer.concat([Buffer.from(head), Buffer.from(isFile ? value.content : value), Buffer.from('\r\n')]);
  });
  return Buffer.concat([...encoded, Buffer.from(`--${boundary}--\r\n`)]);
}
