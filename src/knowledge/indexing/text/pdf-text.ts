import { getDocumentProxy } from 'unpdf';
import { ExtractionError } from './extraction-error.ts';
import { KeptText } from './kept-text.ts';
import { limits } from './text-limits.ts';

/** The text of the first pages, page by page: nothing is asked for all pages at once. */
export async function pdfText(bytes: Uint8Array): Promise<KeptText> {
  const text = new KeptText();
  const document = await opened(bytes);
  const pages = Math.min(document.numPages, limits.pages);
  for (let number = 1; number <= pages && !text.isFull; number += 1) {
    const page = await document.getPage(number);
    if (number > 1) text.add('\n\n');
    const reader = page.streamTextContent().getReader();
    for (let part = await reader.read(); !part.done && !text.isFull; part = await reader.read())
      for (const item of (part.value as TextPart).items) text.add(`${item.str ?? ''}${item.hasEOL ? '\n' : ''}`);
    await reader.cancel();
    page.cleanup();
  }
  await document.destroy();
  return text;
}

interface TextPart {
  items: { str?: string; hasEOL?: boolean }[];
}

async function opened(bytes: Uint8Array) {
  try {
    return await getDocumentProxy(bytes, {
      disableFontFace: true,
      useSystemFonts: false,
      useWorkerFetch: false,
      // pictures are not decoded
      maxImageSize: 0,
      verbosity: 0,
    });
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException') throw new ExtractionError('encrypted');
    throw error;
  }
}
