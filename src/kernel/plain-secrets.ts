import { ID_FORM, kindOfId } from './ids.ts';
import { secretParts } from './secret-shapes.ts';

/*
 * The one place that says which texts of free-form data are secrets, most likely: whoever may not change the data sees
 * them masked, and an exported recipe names them instead (docs/decisions/0032, 0040).
 */

/** A text that names a secret of the vault: `secret://NAME`. */
export const SECRET_REFERENCE = /^secret:\/\/([^{}/]{1,255})$/;

const ID = new RegExp(`^${ID_FORM}$`);
const isId = (text: string): boolean => ID.test(text) && kindOfId(text) !== null;

/** What is done with texts that look like secrets. */
export interface SecretWriter {
  /** What stands in place of a secret. @param key that of the nearest object */
  write: (key: string, secret: string) => string;
  /** Hears of a text that may be a secret and stays. */
  doubt?: (key: string) => void;
}

/** A text with something in place of each part that is most likely a secret. */
export function withoutSecretParts(key: string, text: string, { write, doubt }: SecretWriter): string {
  if (SECRET_REFERENCE.test(text) || isId(text)) return text;
  let [written, at] = ['', 0];
  for (const { start, end, isSure } of secretParts(key, text)) {
    const part = text.slice(start, end);
    if (isId(part)) continue;
    if (!isSure) {
      doubt?.(key);
      continue;
    }
    written += text.slice(at, start) + write(key, part);
    at = end;
  }
  return written + text.slice(at);
}

/**
 * A copy of free-form data with something in place of each text, or part of one, that is most likely a secret.
 * @param key that of the nearest object
 */
export function withoutPlainSecrets<Value>(value: Value, writer: SecretWriter, key = ''): Value {
  const copy = (at: unknown, under: string): unknown => {
    if (typeof at === 'string') return withoutSecretParts(under, at, writer);
    if (Array.isArray(at)) return at.map((item) => copy(item, under));
    if (typeof at !== 'object' || at === null) return at;
    return Object.fromEntries(Object.entries(at).map(([name, inner]: [string, unknown]) => [name, copy(inner, name)]));
  };
  return copy(value, key) as Value;
}

/** Stands for a secret that the reader may not see. */
const MASK = '********';

/** The same data for those who may not see the secrets in it. */
export const masked = <Value>(value: Value): Value => withoutPlainSecrets(value, { write: () => MASK });
