import { closeSync, openSync, unlinkSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { components } from 'platform-management-client';
import { countOf } from '../arguments.ts';
import { UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { show, table, tell } from '../output.ts';
import { type Choice, type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const TOKENS = '/v1/orgs/{org_id}/api-tokens';

type Token = components['schemas']['ApiToken'];

async function tokensOf(bench: Workbench): Promise<Token[]> {
  const { data } = await bench.client.rest.GET(TOKENS, { params: { path: { org_id: await bench.org() } } });
  return data.tokens;
}

const isLive = ({ revoked_at, expires_at }: Token): boolean =>
  revoked_at === null && (expires_at === null || Date.parse(expires_at) > Date.now());

async function list(bench: Workbench, isAll: boolean): Promise<void> {
  const found = (await tokensOf(bench)).filter((token) => isAll || isLive(token));
  show(bench, found, () =>
    table(
      ['ID', 'NAME', 'BEGINS WITH', 'EXPIRES', 'LAST USED', 'REVOKED'],
      found.map((one) => [one.token_id, one.name, one.prefix, one.expires_at, one.last_used_at, one.revoked_at]),
    ),
  );
}

interface CreateOptions {
  scopes?: string[];
  permissions?: string[];
  workspaces?: string[];
  environments?: string[];
  expiresInDays?: number;
  output?: string;
  showToken?: boolean;
}

/** The text of a token is shown once. JSON, which scripts log, has it only if that is asked for. */
async function create(bench: Workbench, given: string | undefined, options: CreateOptions): Promise<void> {
  const { output, showToken = false } = options;
  if (bench.isJson && output === undefined && !showToken)
    throw new UsageError('Missing: --output or --show-token: the token is shown once, and JSON leaves it out');
  bench.demand('org', { '<name>': given });
  const name = given ?? (await bench.ask('<name>', 'Name of the token'));
  const org_id = await bench.org();
  const keep = output === undefined ? null : newFile(output);
  let isKept = false;
  try {
    const { data } = await bench.client.rest.POST(TOKENS, {
      params: { path: { org_id } },
      body: bodyOf(name, options),
    });
    const { token_id } = data.token;
    try {
      keep?.write(`${data.plaintext_token}\n`);
      isKept = true;
    } catch (error) {
      // nobody has its text
      await bench.client.rest.DELETE(`${TOKENS}/{token_id}`, { params: { path: { org_id, token_id } } });
      throw error;
    }
    if (bench.isJson) {
      const texts = { plaintext_token: data.plaintext_token, refresh_token_plaintext: data.refresh_token_plaintext };
      return show(bench, { ...data.token, ...(showToken && texts) }, () => '');
    }
    tell(bench, `Created the token ${data.token.name}: ${token_id}`);
    // alone on stdout, for TOKEN=$(platform tokens create …)
    bench.around.stdout.write(`${output ?? data.plaintext_token}\n`);
  } catch (error) {
    if (!isKept) keep?.remove();
    throw error;
  } finally {
    keep?.close();
  }
}

const bodyOf = (name: string, options: CreateOptions): components['schemas']['CreateApiTokenInput'] => ({
  name,
  ...(options.scopes && { scopes: options.scopes }),
  ...(options.permissions && { permissions: options.permissions }),
  ...(options.workspaces && { workspace_ids: options.workspaces }),
  ...(options.environments && { environment_ids: options.environments }),
  ...(options.expiresInDays !== undefined && { expires_in_days: options.expiresInDays }),
});

/** A file that only its owner may read, made before there is a token: none is lost to a file that cannot be written. */
function newFile(file: string): { write: (text: string) => void; close: () => void; remove: () => void } {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'wx', 0o600);
  } catch (error) {
    throw new UsageError(`${file} cannot be made: ${(error as Error).message}`);
  }
  return {
    write: (text) => writeFileSync(descriptor, text),
    close: () => closeSync(descriptor),
    remove: () => unlinkSync(file),
  };
}

async function revoke(bench: Workbench, given: string | undefined): Promise<void> {
  bench.demand('org', { '<token>': given });
  const choices = async (): Promise<Choice[]> =>
    (await tokensOf(bench)).filter(isLive).map(({ token_id: value, name: label, prefix }) => ({
      value,
      label,
      slug: prefix,
    }));
  const path = {
    org_id: await bench.org(),
    token_id: await bench.find(given, { option: '<token>', noun: 'token', choices }),
  };
  await bench.client.rest.DELETE(`${TOKENS}/{token_id}`, { params: { path } });
  show(bench, { token_id: path.token_id }, () => `Revoked the token ${path.token_id}.`);
}

/** Adds `tokens`. */
export function addTokenCommands(program: Command, around: Surroundings): void {
  const tokens = program.command('tokens').description('your API tokens');
  withExamples(
    tokens
      .command('list')
      .description('list your API tokens that work')
      .option('--all', 'revoked and expired ones, too')
      .action((options: { all?: boolean }, command: Command) =>
        list(workbenchOf(command, around), options.all ?? false),
      ),
    'platform tokens list',
  );
  withExamples(
    tokens
      .command('create [name]')
      .description('create an API token; its text is shown once')
      .option('--scopes <scope...>', 'such as read or secret:read')
      .option('--permissions <permission...>', 'such as deployment:create')
      .option('--workspaces <id...>', 'only these workspaces')
      .option('--environments <id...>', 'only these environments')
      .option('--expires-in-days <n>', 'default: 90', countOf)
      .option('-o, --output <file>', 'write the token to a new file, which only you may read')
      .option('--show-token', 'with --json: the token in the JSON, with its refresh token')
      .action((name: string | undefined, options: CreateOptions, command: Command) =>
        create(workbenchOf(command, around), name, options),
      ),
    'platform tokens create ci --scopes read --permissions deployment:create -o token.txt',
  );
  withExamples(
    tokens
      .command('revoke [token]')
      .description('revoke a token, which is named by its identifier, name or beginning')
      .action((token: string | undefined, _options, command: Command) => revoke(workbenchOf(command, around), token)),
    'platform tokens revoke ci',
  );
}
