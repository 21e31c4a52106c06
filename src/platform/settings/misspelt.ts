import { fileVariable } from './setting-files.ts';

/**
 * How names begin that are meant for this service, whatever follows. Words that many programs use (`APP_`, `LOG_`,
 * `DATA_`, `NODE_` …) are not among them.
 */
export const OWN_PREFIXES: readonly string[] = [
  'ACCESS_TOKEN_',
  'CORS_',
  'DATABASE_',
  'GRAPHQL_',
  'MAX_STORAGE_',
  'MAX_STREAMS_',
  'MAX_TOKENS_',
  'MAX_UPLOAD_',
  'OUTBOUND_',
  'RATE_LIMIT_',
  'REFRESH_TOKEN_',
  'S3_',
  'SMTP_',
  'SSO_',
];

/**
 * What tells that a group is set up as it is meant: beside it, others of the prefix are what a hosting platform adds on
 * its own (`DATABASE_HOST`, `SMTP_PASSWORD`), and what was meant has its effect without them.
 */
const SET_UP_BY: ReadonlyMap<string, string> = new Map([
  ['CORS_', 'CORS_ORIGINS'],
  ['DATABASE_', 'DATABASE_URL'],
  ['S3_', 'S3_BUCKET'],
  ['SMTP_', 'SMTP_URL'],
]);

/** Names of other programs that are one letter from one of ours. */
const OTHERS = new Set(['API_URL', 'API_SECRET', 'APP_URI', 'APP_URLS']);

/** What Kubernetes and Docker add for a service that is called like one of our prefixes: `DATABASE_PORT=tcp://…`. */
const isServiceLink = (name: string, value: string): boolean =>
  /_SERVICE_(HOST|PORT(_\w+)?)$/.test(name) ||
  /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name) ||
  /^(tcp|udp|sctp):\/\//.test(value);

/** How many letters may differ: the shorter a name is, the more names of others are like it. */
const toleranceOf = ({ length }: string): number => (length >= 12 ? MOST_SLIPS : length >= 6 ? 1 : 0);
const MOST_SLIPS = 2;

/** Sentences about variables that are no settings. */
export interface Misspelt {
  /** The service must not start with these. */
  problems: string[];
  /** These are probably of others. */
  warnings: string[];
}

/**
 * One sentence for each variable that was probably meant as a setting: it begins like ours, or differs in a letter or
 * two. An empty one counts as unset.
 * @param variables the names of the settings
 * @param foreign names that the operator says are of other programs
 */
export function misspeltVariables(
  env: NodeJS.ProcessEnv,
  variables: readonly string[],
  foreign: readonly string[],
): Misspelt {
  const known = new Set([...variables, ...variables.map(fileVariable), ...foreign, ...OTHERS]);
  const found: Misspelt = { problems: [], warnings: [] };
  for (const [name, value] of Object.entries(env)) {
    if (!value || known.has(name) || isServiceLink(name, value)) continue;
    const slip = slipOf(name, variables);
    const meant = slip ?? kinOf(name, variables);
    if (meant === undefined) continue;
    const setUpBy = slip === undefined ? setUpBeside(name, env) : undefined;
    if (setUpBy) found.warnings.push(`${name} is not a setting and has no effect beside ${setUpBy}. ${REMEDY}`);
    else found.problems.push(`${name} is not a setting. Did you mean ${meant}? ${REMEDY}`);
  }
  return found;
}

const REMEDY = 'If it belongs to another program, name it in FOREIGN_VARIABLES.';

/** The setting that says that the group of a variable is set up. */
function setUpBeside(name: string, env: NodeJS.ProcessEnv): string | undefined {
  const setting = [...SET_UP_BY].find(([prefix]) => name.startsWith(prefix))?.[1];
  return setting && [setting, fileVariable(setting)].find((variable) => env[variable]);
}

/** The stem of a name, and what a setting is called that is given the same way: itself or by a file. */
function formOf(name: string): { stem: string; full: (variable: string) => string } {
  const suffix = fileVariable('');
  if (!name.endsWith(suffix)) return { stem: name, full: (variable) => variable };
  return { stem: name.slice(0, -suffix.length), full: fileVariable };
}

/** The setting from which a name differs in a letter or two. */
function slipOf(name: string, variables: readonly string[]): string | undefined {
  const { stem, full } = formOf(name);
  const near = nearest(stem, variables, MOST_SLIPS);
  if (near && isSlip(stem, near.variable, near.distance)) return full(near.variable);
  // `DATABASE_URL_FIEL`
  const nearFile = nearest(name, variables.map(fileVariable), 1);
  if (nearFile && nearFile.variable.length >= 12) return nearFile.variable;
  return undefined;
}

/** The setting of the same prefix that is most like it. */
function kinOf(name: string, variables: readonly string[]): string | undefined {
  const { stem, full } = formOf(name);
  const prefix = OWN_PREFIXES.find((own) => name.startsWith(own));
  if (prefix === undefined) return undefined;
  const own = variables.filter((variable) => variable.startsWith(prefix));
  const most = Math.max(...own.map((variable) => commonWords(stem, variable)));
  return full(
    nearest(
      stem,
      own.filter((variable) => commonWords(stem, variable) === most),
    )!.variable,
  );
}

const commonWords = (a: string, b: string): number => {
  const words = new Set(a.split('_'));
  return b.split('_').filter((word) => words.has(word)).length;
};

function isSlip(name: string, variable: string, distance: number): boolean {
  const tolerance = toleranceOf(variable);
  return tolerance > 0 ? distance <= tolerance : distance === 1 && isSwapped(name, variable);
}

/** Whether they have the same letters, as `PROT` and `PORT`. */
const isSwapped = (a: string, b: string): boolean => [...a].sort().join('') === [...b].sort().join('');

function nearest(
  name: string,
  variables: readonly string[],
  most = Infinity,
): { variable: string; distance: number } | undefined {
  return variables
    .map((variable) => ({ variable, distance: distanceBetween(name.toUpperCase(), variable, most) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance)[0];
}

/**
 * Letters that were added, left out, replaced or swapped with their neighbour (Damerau and Levenshtein).
 * @param most beyond it, the answer is `Infinity`: each start compares each variable with each setting
 */
export function distanceBetween(a: string, b: string, most = Infinity): number {
  if (Math.abs(a.length - b.length) > most) return Infinity;
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  let leastBefore = 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let least = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, rows[i - 2]![j - 2]! + 1);
      row.push(least);
    }
    rows.push(row);
    // the next row follows from this one, or by a swap from the one before
    const least = Math.min(...row);
    if (least > most && leastBefore + 1 > most) return Infinity;
    leastBefore = least;
  }
  const distance = rows[a.length]![b.length]!;
  return distance > most ? Infinity : distance;
}
