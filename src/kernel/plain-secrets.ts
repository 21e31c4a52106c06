import { kindOfId } from './ids.ts';

/*
 * The one place that says which texts of free-form data are secrets, most likely: whoever may not change the data sees
 * them masked, and an exported recipe names them instead (docs/decisions/0032).
 */

/** Keys whose texts are secrets. */
const SENSITIVE =
  /(?:api[_-]?key|passwo?r?d|passphrase|secret|token|private[_-]?key|credentials?|authorization|cookie)$/i;
/** Texts that are secrets under any key: keys of well-known services, signed tokens, addresses with a password. */
const SHAPES = [
  /^(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)[-_]\S{6,}$/,
  /^(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|AIza|hf_)[\w-]{12,}$/,
  /^eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*$/,
  /^(?:bearer|basic)\s+(?=\S*\d)\S{8,}$/i,
  /^[a-z][a-z0-9+.-]{1,30}:\/\/[^\s/@:]*:[^\s/@]+@/i,
  /^\s{0,10}-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----/,
];
const TEMPLATE = /\{\{[^{}]+\}\}/;

/** A text that names a secret of the vault: `secret://NAME`. */
export const SECRET_REFERENCE = /^secret:\/\/([^{}/]{1,255})$/;

/** Whether a text is most likely a secret itself, and neither a template nor a reference. */
const isPlainSecret = (key: string, text: string): boolean =>
  text !== '' &&
  (SENSITIVE.test(key) || SHAPES.some((shape) => shape.test(text))) &&
  !TEMPLATE.test(text) &&
  !SECRET_REFERENCE.test(text) &&
  kindOfId(text) === null;

/**
 * A copy of free-form data with something in place of each text that is most likely a secret. @param key that of the
 * nearest object
 */
export function withoutPlainSecrets<Value>(
  value: Value,
  write: (key: string, text: string) => string,
  key = '',
): Value {
  const copy = (at: unknown, under: string): unknown => {
    if (typeof at === 'string') return isPlainSecret(under, at) ? write(under, at) : at;
    if (Array.isArray(at)) return at.map((item) => copy(item, under));
    if (typeof at !== 'object' || at === null) return at;
    return Object.fromEntries(Object.entries(at).map(([name, inner]: [string, unknown]) => [name, copy(inner, name)]));
  };
  return copy(value, key) as Value;
}

/** Stands for a secret that the reader may not see. */
const MASK = '********';

/** The same data for those who may not see the secrets in it. */
export const masked = <Value>(value: Value): Value => withoutPlainSecrets(value, () => MASK);
