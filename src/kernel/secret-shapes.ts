/*
 * How secrets look. Quantifiers are bounded: texts come from strangers, and a search takes time in proportion to them.
 */

/** A part of a text that is most likely a secret, or that may be one. */
export interface SecretPart {
  start: number;
  end: number;
  /** Whether it is most likely a secret. What only may be one has a random look and nothing else. */
  isSure: boolean;
}

const either = (words: readonly string[]): string => `(?:${words.join('|')})`;
/** Names of secrets, in any writing: `apiKey`, `api-key`, `API_KEY`. */
const named = (words: string): string => either(words.split(' ').map((word) => word.replaceAll('-', '[_-]?')));

/** Keys whose texts are secrets. */
const SENSITIVE = new RegExp(
  `${named('api-key passwo?r?d passphrase secret token private-key access-key credentials? authorization cookie')}$|` +
    `${named('token secret password credential')}[_-]?value$`,
  'i',
);
/** Short names of passwords: their texts are secrets if they are one word. */
const PASSWORD = /(?:^|[_.-])(?:pass|pw|pwd|psk|otp)$|[a-z](?:Pass|Pw|Pwd)$/;
/** Keys whose texts are secrets if they look random. */
const RANDOM_UNDER =
  'key auth sig(?:nature)? salt seed session sid hmac nonce bearer jwt license hook dsn conn(?:ection)? pat value';
const SUSPICIOUS = new RegExp(`${named(RANDOM_UNDER)}$`, 'i');

/** Texts that are secrets as a whole, under any key. */
const WHOLE = [
  /^(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)[-_]\S{6,}$/,
  /^(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|AIza|hf_)[\w-]{12,}$/,
  /^eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*$/,
  /^(?:bearer|basic)\s+(?=\S*\d)\S{8,}$/i,
  /^[a-z][a-z0-9+.-]{1,30}:\/\/[^\s/@:?#]*:[^\s/@]+@\S*$/i,
  /^\s{0,10}-----BEGIN [A-Z ]{0,30}PRIVATE KEY/,
  // a connection string: the settings before the password, and it
  /^(?:[\w ]{2,40}=[^;\n]{0,200};\s?){0,20}(?:password|pwd|accountkey|sharedaccesskey)=[^;\n]{1,400}(?:;|$)/i,
];

const AROUND = '(?<![A-Za-z0-9_-])';
const END = '(?![A-Za-z0-9_-])';
const W = '[A-Za-z0-9_-]';
/** Keys of well-known services: what they begin with, and how they go on. */
const VENDORS = [
  `(?:sk|rk)-(?:live|test|proj|ant|or|svcacct|admin)-${W}{10,300}`,
  `sk-[A-Za-z0-9]{20,100}`,
  `(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,300}`,
  `whsec_[A-Za-z0-9+/=]{16,100}`,
  `gh[pousr]_[A-Za-z0-9]{16,300}`,
  `github_pat_[A-Za-z0-9_]{20,300}`,
  `gl(?:pat|dt|rt|ptt|ft|soat)-${W}{16,300}`,
  `xox[abeprs]-[A-Za-z0-9-]{10,300}`,
  `xapp-[0-9]-[A-Za-z0-9-]{10,300}`,
  `(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}`,
  `AIza${W}{30,50}`,
  `ya29\\.${W}{20,500}`,
  `GOCSPX-${W}{20,60}`,
  `hf_[A-Za-z0-9]{20,60}`,
  `gsk_[A-Za-z0-9]{20,100}`,
  `r8_[A-Za-z0-9]{20,60}`,
  `xai-[A-Za-z0-9]{20,120}`,
  `pplx-[A-Za-z0-9]{20,80}`,
  `npm_[A-Za-z0-9]{30,60}`,
  `pypi-${W}{30,400}`,
  `rubygems_[a-f0-9]{40,60}`,
  `dop_v1_[a-f0-9]{40,80}`,
  `SG\\.${W}{16,40}\\.${W}{16,80}`,
  `key-[a-f0-9]{32}`,
  `(?:AC|SK)[a-f0-9]{32}`,
  `shp(?:at|ss|ca|pa)_[a-fA-F0-9]{24,64}`,
  `sq0(?:atp|csp)-${W}{20,60}`,
  `EAAA${W}{40,300}`,
  `secret_[A-Za-z0-9]{40,60}`,
  `ntn_[A-Za-z0-9]{30,60}`,
  `lin_(?:api|oauth)_[A-Za-z0-9]{30,80}`,
  `pat[A-Za-z0-9]{14}\\.[a-f0-9]{64}`,
  `PMAK-[a-f0-9]{20,30}-[a-f0-9]{30,40}`,
  `dapi[a-f0-9]{32}(?:-\\d)?`,
  `hv[sb]\\.${W}{20,300}`,
  `[A-Za-z0-9]{14}\\.atlasv1\\.${W}{40,100}`,
  `ATATT3${W}{20,300}`,
  `NRAK-[A-Z0-9]{20,40}`,
  `phc_[A-Za-z0-9]{30,60}`,
  `sntrys_[A-Za-z0-9+/=_-]{20,300}`,
  `figd_${W}{30,80}`,
  `tfp_[A-Za-z0-9_-]{30,80}`,
  `[0-9]{8,10}:AA${W}{30,40}`,
  `[MNO][A-Za-z0-9]{23,27}\\.${W}{6}\\.${W}{27,40}`,
  `pat_${W}{20,100}`,
  `eyJ${W}{8,4000}\\.eyJ${W}{8,8000}\\.${W}{0,2000}`,
];

const PEM = 'PRIVATE KEY(?: BLOCK)?-----';
const BODY = '(?:[^-]|-(?!----)){1,16000}';
/** Addresses that let whoever knows them write. */
const HOOKS = either([
  'hooks\\.slack\\.com/(?:services|workflows)',
  '(?:ptb\\.|canary\\.)?discord(?:app)?\\.com/api/webhooks',
  '[a-z0-9-]{1,60}\\.webhook\\.office\\.com/webhookb2',
]);
const QUERY = named(
  'access-token auth-token refresh-token id-token token api-key client-secret secret password passwd pwd sig ' +
    'signature x-amz-signature x-amz-security-token x-goog-signature sas',
);
const ASSIGNED = named(
  'api-key access-key account-key client-secret secret-key private-key auth-token access-token refresh-token ' +
    'passwo?r?d passphrase pwd secret token',
);

/** Secrets within other texts, each as the group of its form. */
const WITHIN = [
  new RegExp(`${AROUND}(${VENDORS.join('|')})${END}`, 'g'),
  new RegExp(`(-----BEGIN [A-Z ]{0,30}${PEM}${BODY}(?:-----END [A-Z ]{0,30}${PEM})?)`, 'g'),
  // addresses with a password, or that are a secret themselves
  /([a-z][a-z0-9+.-]{1,30}:\/\/[^\s/@:?#"'<>]{0,200}:[^\s/@"'<>]{1,200}@[^\s"'<>]{0,1000})/gi,
  new RegExp(`(https://${HOOKS}/[^\\s"'<>{}]{8,400})`, 'gi'),
  new RegExp(`[?&#]${QUERY}=([^\\s&#"'<>{}]{6,2000})`, 'gi'),
  /\b(?:bearer|basic|token)\s{1,3}((?=[^\s"',;]{0,200}\d)[A-Za-z0-9_~+/.=-]{12,4000})/gi,
  // assignments in texts of other languages: JSON, shell, YAML
  new RegExp(`${ASSIGNED}\\\\{0,2}["']?\\s{0,3}[:=]\\s{0,3}\\\\{0,2}["']?([^\\s"'\\\\,;&{}<>()]{6,400})`, 'gi'),
];
/** What a word after `Bearer`, or an assignment, must have to be none of a language. */
const RANDOM_ENOUGH = /\d|[^A-Za-z\d\s.:!?,_-]/;

const TEMPLATE = /\{\{[^{}]+\}\}/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Words, paths, UUIDs, times and versions may have a random look, and are no secrets. */
const HARMLESS =
  /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\d.:TZ+-]+|\/.*|[a-z]+(?:[-_.](?:[a-z]+|\d{1,4}))*)$/i;
/** A word that somebody did not choose: of letters in both cases and digits, or a long hexadecimal one. */
const RANDOM = /(?<![\w/+.=-])[A-Za-z0-9_+/=-]{20,500}(?![\w/+.=-])/g;

/** The Shannon entropy of the characters of a text, in bits for each. */
export function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  const length = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return [...counts.values()].reduce((sum, count) => sum - (count / length) * Math.log2(count / length), 0);
}

/** Whether a word looks random. */
function looksRandom(word: string, leastLength: number): boolean {
  if (word.length < leastLength || HARMLESS.test(word)) return false;
  if (/^[0-9a-f]+$/i.test(word)) return word.length >= 32 && /\d/.test(word) && /[a-f]/i.test(word);
  const kinds = [/[a-z]/, /[A-Z]/, /\d/].filter((kind) => kind.test(word)).length;
  return kinds >= (leastLength < 20 ? 2 : 3) && /\d/.test(word) && entropyOf(word) >= 3.2;
}

/** Whether the whole text is a secret: by the key that it stands under, or by its form. */
function isWhole(key: string, text: string): boolean {
  if (TEMPLATE.test(text)) return false;
  if (SENSITIVE.test(key)) return true;
  if (PASSWORD.test(key) && !/\s/.test(text)) return true;
  if (SUSPICIOUS.test(key) && (looksRandom(text, /value$/i.test(key) ? 20 : 16) || UUID.test(text))) return true;
  return WHOLE.some((shape) => shape.test(text));
}

/**
 * The parts of a text that look like secrets, in their order and apart from each other. @param key that of the nearest
 * object
 */
export function secretParts(key: string, text: string): SecretPart[] {
  if (text === '') return [];
  if (isWhole(key, text)) return [{ start: 0, end: text.length, isSure: true }];
  const sure = WITHIN.flatMap((shape, at) =>
    [...text.matchAll(shape)].flatMap((match): SecretPart[] => {
      const secret = match[1]!;
      const start = match.index + match[0].lastIndexOf(secret);
      const isNamed = at >= WITHIN.length - 2;
      if (TEMPLATE.test(match[0]) || (isNamed && !RANDOM_ENOUGH.test(secret))) return [];
      return [{ start, end: start + secret.length, isSure: true }];
    }),
  );
  const doubtful = [...text.matchAll(RANDOM)]
    .filter(([word]) => looksRandom(word, 24))
    .map(({ 0: word, index }): SecretPart => ({ start: index, end: index + word.length, isSure: false }));
  return apart(sure, doubtful);
}

/** Parts that do not overlap: of two that do, the earlier and longer one, and a doubtful one after all sure ones. */
function apart(sure: readonly SecretPart[], doubtful: readonly SecretPart[]): SecretPart[] {
  const kept: SecretPart[] = [];
  for (const part of sure.toSorted((a, b) => a.start - b.start || b.end - a.end))
    if (part.start >= (kept.at(-1)?.end ?? 0)) kept.push(part);
  let next = 0;
  const free = doubtful.filter(({ start, end }) => {
    while (next < kept.length && kept[next]!.end <= start) next++;
    return next === kept.length || end <= kept[next]!.start;
  });
  return [...kept, ...free].sort((a, b) => a.start - b.start);
}
