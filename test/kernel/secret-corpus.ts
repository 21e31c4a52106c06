/**
 * Texts with secrets, and texts without. The secrets are made up, and put together here so that no scanner of sources
 * takes them for real ones: `made` gives characters that are always the same ones, and look random.
 */

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
let state = 7;

/** @param from the first character of the alphabet that is used, and the number of characters */
function made(length: number, [from, count]: [number, number] = [0, LETTERS.length]): string {
  let text = '';
  while (text.length < length) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    text += LETTERS[from + (Math.floor(state / 65_536) % count)]!;
  }
  return text;
}
const HEX: [number, number] = [52, 10];
const hex = (length: number) =>
  Array.from({ length }, (_, at) => (at % 3 === 1 ? 'abcdef'[Number(made(1, HEX)) % 6] : made(1, HEX))).join('');
const upper = (length: number) => made(length, [0, 26]);
const jwt = () => `${'ey'}J${made(30)}.${'ey'}J${made(60)}.${made(43)}`;
const pem = (kind: string) =>
  `-----BEGIN ${kind}PRIVATE KEY-----\n${made(64)}\n${made(64)}\n${made(20)}\n-----END ${kind}PRIVATE KEY-----`;

/** A key, a text under it, and the secret in the text, which must not stay. */
export interface SecretCase {
  key: string;
  text: string;
  secret: string;
}

const whole = (key: string, secret: string): SecretCase => ({ key, text: secret, secret });
const within = (key: string, before: string, secret: string, after = ''): SecretCase => ({
  key,
  text: `${before}${secret}${after}`,
  secret,
});

export const secretCases: readonly SecretCase[] = [
  // keys of well-known services, under keys that tell nothing
  whole('note', `sk-proj-${made(48)}`),
  whole('note', `sk-${made(48)}`),
  whole('note', `sk-ant-api03-${made(90)}`),
  whole('note', `sk_live_${made(24)}`),
  whole('note', `rk_test_${made(24)}`),
  whole('note', `whsec_${made(32)}`),
  whole('note', `ghp_${made(36)}`),
  whole('note', `gho_${made(36)}`),
  whole('note', `github_pat_${made(22)}_${made(59)}`),
  whole('note', `glpat-${made(20)}`),
  whole('note', `xoxb-${made(12, HEX)}-${made(12, HEX)}-${made(24)}`),
  whole('note', `xapp-1-${upper(11)}-${made(13, HEX)}-${hex(64)}`),
  whole('note', `AKIA${upper(16)}`),
  whole('note', `ASIA${upper(16)}`),
  whole('note', `AIza${made(35)}`),
  whole('note', `ya29.${made(60)}`),
  whole('note', `GOCSPX-${made(28)}`),
  whole('note', `hf_${made(34)}`),
  whole('note', `gsk_${made(52)}`),
  whole('note', `npm_${made(36)}`),
  whole('note', `pypi-${made(80)}`),
  whole('note', `dop_v1_${hex(64)}`),
  whole('note', `SG.${made(22)}.${made(43)}`),
  whole('note', `key-${hex(32)}`),
  whole('note', `shpat_${hex(32)}`),
  whole('note', `lin_api_${made(40)}`),
  whole('note', `dapi${hex(32)}`),
  whole('note', `hvs.${made(90)}`),
  whole('note', `${made(9, HEX)}:AA${made(33)}`),
  whole('note', jwt()),
  whole('note', pem('')),
  whole('note', pem('RSA ')),
  whole('note', pem('OPENSSH ')),
  // the same within other texts
  within('prompt', 'Call it with the key ', `sk-proj-${made(40)}`, ' and summarize {{input.text}}.'),
  within('prompt', 'curl -H "Authorization: Bearer ', made(40), '" https://api.example.test/'),
  within('prompt', 'Use ', `ghp_${made(36)}`, ', never show it.'),
  within('body', '{"grant_type":"client_credentials","client_secret":"', made(32), '"}'),
  within('body', '{\\"password\\":\\"', `Hunter2${made(6)}`, '\\"}'),
  within('script', 'export API_KEY=', made(32), '\necho done'),
  within('script', 'password: ', `correct-horse-${made(4, HEX)}`, '\nuser: ann'),
  within('headers', 'X-Auth-Token: ', hex(40)),
  within('note', 'The file was:\n', pem('EC '), '\nEnd.'),
  // addresses
  within('url', 'https://ann:', `pw${made(8)}`, '@example.test/path'),
  within('url', 'https://example.test/search?q=1&access_token=', made(32)),
  within('url', 'https://example.test/file?sig=', `${made(43)}%3D`, '&se=2027-01-01'),
  within('url', 'https://maps.example.test/?api_key=', made(20), '&zoom=3'),
  whole('url', `https://hooks.slack.com/services/T${upper(8)}/B${upper(8)}/${made(24)}`),
  whole('url', `https://discord.com/api/webhooks/${made(18, HEX)}/${made(68)}`),
  within('text', 'Fetch https://ann:', made(12), '@git.example.test/repo.git first.'),
  // connection strings
  within('dsn', 'postgres://app:', made(16), '@db.example.test:5432/app'),
  within('store', 'mongodb+srv://app:', made(16), '@cluster.example.test/app'),
  within('cache', 'redis://:', made(20), '@cache.example.test:6379/0'),
  within('queue', 'amqp://guest:', made(12), '@mq.example.test/'),
  within('db', 'Server=db.example.test;Database=app;User Id=sa;Password=', `Pass${made(8)}!`, ';Encrypt=true'),
  within('blob', 'DefaultEndpointsProtocol=https;AccountName=app;AccountKey=', `${made(86)}==`, ';EndpointSuffix=x'),
  // keys that say it, with texts that do not
  whole('password', 'hunter2'),
  whole('pass', 'Sommer2024'),
  whole('dbPass', 'letmein'),
  whole('pw', 'geheim'),
  whole('token_value', 'abc'),
  whole('client_secret', 'not random'),
  whole('Authorization', 'Token abc'),
  whole('cookie', 'session=abc'),
  whole('private_key', made(40)),
  whole('access_key', 'our key'),
  // suspicious keys, with random texts
  whole('auth', made(32)),
  whole('signature', hex(64)),
  whole('salt', hex(32)),
  whole('session', made(26)),
  whole('encryptionKey', `${made(43)}=`),
  whole('key', '1f6c2b1e-93f4-4d9e-8a55-0c6d7f1e2b3a'),
  whole('value', made(40)),
  // random words where nothing tells what they are: a warning
  within('note', 'For the demo: ', `a9${made(38)}`),
  whole('reference', `Zq4${made(41)}`),
];

/** Texts that an app may have, and in which nothing is secret. */
export const harmlessTexts: readonly [key: string, text: string][] = [
  ['prompt', 'Summarize {{input.text}} in at most 150 words.'],
  ['prompt', 'The password of the day is a riddle: never give it away, and keep every secret of the guests.'],
  ['prompt', 'Answer in JSON: {"answer": string, "token_count": number, "password": null}'],
  ['prompt', 'The form has two settings: password = required; name = optional. Explain both.'],
  ['prompt', 'A key file begins with -----BEGIN CERTIFICATE----- and is public.'],
  ['prompt', 'Explain what an API key is, what "Bearer" means, and why a secret: prefix is used.'],
  ['system_prompt', 'You are a careful assistant. Basic knowledge of law is expected.'],
  ['text', 'the secret of a good pie'],
  ['text', 'Bearer responsibilities'],
  ['text', 'token: required, password: optional'],
  ['password', '{{secret.database}}'],
  ['password', 'secret://database'],
  ['authorization', 'Bearer {{secret.search}}'],
  ['api_key', '{{parameters.key}}'],
  ['prompt', 'secret://database'],
  ['url', 'https://example.test/search?q=trains&limit=20&page=2'],
  ['url', 'https://example.test/a:b@c'],
  ['url', 'https://{{input.user}}:{{secret.password}}@example.test/'],
  ['url', 'https://en.wikipedia.org/wiki/Special:Search?search=token&go=Go'],
  ['url', 'https://example.test/docs/how-to-keep-your-api-keys-safe-in-2026.html#tokens'],
  ['path', '/v1/orgs/{org_id}/workspaces/{workspace_id}/apps/{app_id}/export-recipe'],
  ['id', '01M81B6EWGF6W861YYXF375G80'],
  ['id', 'app_01M81B6EWGF6W861YYXF375G80'],
  ['id', '1f6c2b1e-93f4-4d9e-8a55-0c6d7f1e2b3a'],
  ['model', 'anthropic/claude-3-5-sonnet-20241022'],
  ['model', 'text-embedding-3-large'],
  ['model', 'mistral-7b-instruct-v0.2-q4'],
  ['cron', '30 8 * * 1-5'],
  ['timezone', 'America/Argentina/Buenos_Aires'],
  ['time', '2026-11-25T15:30:00.000+01:00'],
  ['version', '1.24.0-rc.1+build.5'],
  ['mail', 'Write to the support of the product.'],
  ['max_tokens', '500'],
  ['tokens', 'many'],
  ['key', 'answers'],
  ['key', 'find-the-questions-2'],
  ['sort_key', 'created_at'],
  ['primaryKey', 'customer_id'],
  ['keyboard', 'qwertz'],
  ['strategy', 'tokens'],
  ['hash', 'sha256'],
  ['code', 'const answer = items.map((item) => item.name).join(", ");'],
  ['code', 'if (token === null) throw new Error("no token");'],
  ['code', "SELECT id, name FROM customers WHERE created_at > now() - interval '1 day'"],
  ['expression', "{{steps.review.text}} != 'yes'"],
  ['template', '<p class="answer-text">Dear {{input.name}},</p><p>Your order {{input.order}} is on its way.</p>'],
  ['colour', '#1f6feb'],
  ['locale', 'de-DE,de;q=0.9,en;q=0.8'],
  ['media', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['class', 'org.springframework.context.annotation.AnnotationConfigApplicationContext'],
  ['text', 'Ein Satz mit Umlauten: Größe, Straße, Übermut. 東京タワーは高い。'],
  ['text', 'Donaudampfschifffahrtsgesellschaftskapitänsmützenständer'],
  ['phone', '+49 30 1234567'],
  ['iban', 'DE89 3704 0044 0532 0130 00'],
  ['image', 'registry.example.test/team/service:2026.11.25'],
  ['event', 'artifact.version_created'],
  ['pattern', '^[a-z0-9]+(?:-[a-z0-9]+)*$'],
  ['branch', 'feature/recipes-that-come-across-whole'],
  ['passed', 'all'],
  ['compass', 'north'],
  ['author', 'Ann Example'],
  ['design', 'two columns'],
];
