import { isIP } from 'node:net';
import { z } from 'zod';

/** One environment variable: how its text is parsed, and how an error describes it. */
export interface Setting<T> {
  readonly variable: string;
  readonly schema: z.ZodType<T, string>;
  /** Completes the sentence "`NAME` must be …". */
  readonly mustBe: string;
  /** Text used when the variable is unset or empty; absent = the setting is then `undefined`. */
  readonly default?: string;
  /** The default in words for the documentation, if `default` is not suitable. */
  readonly defaultText?: string;
  readonly description: string;
  /** The value never appears in an error. */
  readonly secret?: boolean;
}

/** A kind of value: what it must be, and how it is parsed. */
export interface SettingKind<T> {
  readonly mustBe: string;
  readonly schema: z.ZodType<T, string>;
}

type Details = Pick<Setting<unknown>, 'default' | 'defaultText' | 'secret'>;
type WithDefault<T> = Setting<T> & { readonly default: string };

/** A variable, what it must be, and what it is for. */
export function setting<T>(
  variable: string,
  kind: SettingKind<T>,
  description: string,
  details: Details & { default: string },
): WithDefault<T>;
export function setting<T>(variable: string, kind: SettingKind<T>, description: string, details?: Details): Setting<T>;
export function setting<T>(
  variable: string,
  kind: SettingKind<T>,
  description: string,
  details: Details = {},
): Setting<T> {
  return { variable, ...kind, description, ...details };
}

/** One of these words. */
export const oneOf = (words: readonly string[]): SettingKind<string> => ({
  mustBe: `one of ${words.join(', ')}`,
  schema: z.string().refine((value) => words.includes(value)),
});

/** Any text that is not empty. */
export const text: SettingKind<string> = { mustBe: 'text', schema: z.string() };

/** A decimal integer within inclusive bounds. */
export function integer(min: number, max: number): SettingKind<number> {
  const schema = z
    .string()
    .regex(/^-?\d{1,15}$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max);
  return { mustBe: `an integer from ${min} to ${max}`, schema };
}

/** A number from 1, or `auto`. */
export function count(max: number, auto: () => number): SettingKind<number> {
  const schema = z
    .string()
    .transform((value) => (value === 'auto' ? Math.min(auto(), max) : /^\d{1,6}$/.test(value) ? Number(value) : 0))
    .refine((value) => value >= 1 && value <= max);
  return { mustBe: `an integer from 1 to ${max}, or auto`, schema };
}

/** true/false, 1/0, yes/no, on/off in any case. */
export const flag: SettingKind<boolean> = {
  mustBe: 'one of true, false, 1, 0, yes, no, on, off',
  schema: z.stringbool({ truthy: ['true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'] }),
};

/** One of a closed set of words. */
export function choice<const T extends string>(values: readonly T[]): SettingKind<T> {
  return {
    mustBe: `one of ${values.join(', ')}`,
    schema: z.enum(values as readonly [T, ...T[]]) as z.ZodType<T, string>,
  };
}

/** An absolute URL with one of the schemes; a single slash at the end is dropped. */
export function url(...schemes: string[]): SettingKind<string> {
  const schema = z
    .string()
    .refine((value) => URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1)))
    .transform((value) => value.replace(/\/$/, ''));
  return { mustBe: `a URL that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`, schema };
}

/** An address of mail, or an absolute URL. */
export const contact: SettingKind<string> = {
  mustBe: 'a mail address, or a URL that starts with http:// or https://',
  schema: z.union([z.email(), url('http', 'https').schema]),
};

/** Comma-separated items, trimmed; each must pass `check`. */
export function list(mustBe: string, check: (item: string) => boolean): SettingKind<string[]> {
  const schema = z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    )
    .refine((items) => items.every(check));
  return { mustBe, schema };
}

/** A key of 256 bits, with the name by which sealed data refers to it. */
export interface NamedKey {
  readonly id: string;
  readonly key: Buffer;
}

const NAMED_KEY = /^([A-Za-z0-9_-]{1,64}):([A-Za-z0-9_-]{43}=?|[A-Za-z0-9+/]{43}=?)$/;

/** `new:…,old:…`: names and keys of 32 bytes in base64 or base64url. */
export const namedKeys: SettingKind<NamedKey[]> = {
  mustBe: 'keys like id:key between commas, each key 32 bytes in base64 or base64url, each id once',
  schema: z.string().transform((value, context) => {
    const keys = value.split(',').flatMap((item): NamedKey[] => {
      const [, id, key] = NAMED_KEY.exec(item.trim()) ?? [];
      return id && key ? [{ id, key: Buffer.from(key, 'base64') }] : []; // reads both alphabets
    });
    const isRight = keys.length === value.split(',').length && new Set(keys.map(({ id }) => id)).size === keys.length;
    if (!isRight) context.addIssue('not a list of named keys');
    return keys;
  }),
};

/** `10.0.0.0/8`, `::1` or `192.0.2.7`: an address, optionally with a prefix length. */
export function isAddressRange(item: string): boolean {
  const [address = '', bits, ...rest] = item.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** `https://app.example.com`: scheme and authority, nothing after them; or `*`. */
export function isOrigin(item: string): boolean {
  return (
    item === '*' || (URL.canParse(item) && /^https?:$/.test(new URL(item).protocol) && new URL(item).origin === item)
  );
}
