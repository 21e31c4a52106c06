import mammoth from 'mammoth';
import { KeptText } from './kept-text.ts';
import { unpackedXml } from './zip-text.ts';

/** The paragraphs of a Word document. */
export async function docxText(bytes: Uint8Array): Promise<KeptText> {
  const buffer = unpackedXml(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const { value } = await mammoth.extractRawText({ buffer });
  const text = new KeptText();
  text.add(value);
  return text;
}
