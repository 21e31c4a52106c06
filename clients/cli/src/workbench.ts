import { confirm, isCancel, password, select, text } from '@clack/prompts';
import type { Command } from 'commander';
import { Client, type Credentials, Grant, NotFoundError, Session, type TokenPair } from 'platform-management-client';
import { MeDocument } from 'platform-management-client/documents';
import { UsageError } from './failures.ts';
import { type Kept, type Profile, Profiles, type SignIn } from './profiles.ts';
import { visible } from './visible.ts';

/** Options that every command accepts. */
export interface Globals {
  profile?: string;
  url?: string;
  token?: string;
  org?: string;
  workspace?: string;
  namespace?: string;
  json?: boolean;
}

/** Where a command runs. */
export interface Surroundings {
  env: NodeJS.ProcessEnv;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
}

export interface Choice {
  /** The identifier. */
  value: string;
  /** The name that people know. */
  label: string;
  /** Another name, such as a slug. */
  slug?: string;
}

/** What somebody in a terminal is asked for. */
export interface Question {
  /** What a script would have given. */
  option: string;
  noun: string;
  choices: () => Promise<Choice[]>;
}

type PlaceKind = 'org' | 'workspace' | 'namespace';

/** What a command works with: the client, and the place. An option wins over a variable, and that over the profile. */
export class Workbench {
  readonly profiles: Profiles;
  readonly profileName: string;
  readonly around: Surroundings;
  readonly isJson: boolean;
  #globals: Globals;
  readonly #profile: Profile | undefined;
  #client: Client | undefined;
  #signIn: SignIn | undefined;

  constructor(globals: Globals, around: Surroundings) {
    const { env } = around;
    this.around = around;
    this.#globals = globals;
    this.isJson = globals.json ?? false;
    this.profiles = new Profiles(env);
    this.profileName = globals.profile || env.PLATFORM_PROFILE || this.profiles.current;
    this.#profile = this.profiles.get(this.profileName);
  }

  /** Whether somebody can be asked. */
  get isInteractive(): boolean {
    return !this.isJson && (this.around.stdin.isTTY ?? false) && (this.around.stdout.isTTY ?? false);
  }

  get url(): string {
    const url = this.#globals.url || this.around.env.PLATFORM_URL || this.#profile?.url;
    if (url && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
      throw new UsageError(`The address of the service is no http or https URL: ${url}`);
    if (!url) throw new UsageError('Missing: --url, the address of the service. Or sign in: platform login');
    return url;
  }

  /** The address of a service to sign in at, which somebody in a terminal is asked for. */
  async address(): Promise<string> {
    const isKnown = this.#globals.url || this.around.env.PLATFORM_URL || this.#profile?.url;
    if (!isKnown && this.isInteractive)
      this.#globals = { ...this.#globals, url: await this.ask('--url', 'Address of the service') };
    return this.url;
  }

  /** How the caller is signed in: what `whoami` says. */
  get source(): 'option' | 'environment' | 'profile' | 'none' {
    if (this.#globals.token) return 'option';
    if (this.around.env.PLATFORM_TOKEN) return 'environment';
    return Object.keys(this.#signInOfProfile).length > 0 ? 'profile' : 'none';
  }

  /** The token that is used, if one was given. A session and a grant have tokens that change. */
  get token(): string | undefined {
    return this.#globals.token || this.around.env.PLATFORM_TOKEN || this.#signInOfProfile.token;
  }

  /** Where the sign-in of the profile is kept. */
  get kept(): Kept['kept'] | null {
    if (this.source !== 'profile') return null;
    return this.profiles.get(this.profileName)?.keyring ? 'keyring' : 'file';
  }

  get client(): Client {
    this.#client ??= new Client({ url: this.url, ...this.#credentials() });
    return this.#client;
  }

  async org(): Promise<string> {
    const choices = () => this.organizations();
    return this.given('org') || this.choose({ option: '--org', noun: 'organization', choices });
  }

  async workspace(): Promise<{ org_id: string; workspace_id: string }> {
    const org_id = await this.org();
    const choices = () => this.workspaces(org_id);
    const given = this.given('workspace');
    return {
      org_id,
      workspace_id: given || (await this.choose({ option: '--workspace', noun: 'workspace', choices })),
    };
  }

  async namespace(): Promise<{ org_id: string; workspace_id: string; namespace_id: string }> {
    return { ...(await this.workspace()), namespace_id: this.given('namespace') || 'default' };
  }

  /** What an option, a variable or the profile says of the place. */
  given(kind: PlaceKind): string | undefined {
    return this.#globals[kind] || this.around.env[`PLATFORM_${kind.toUpperCase()}`] || this.#profile?.[kind];
  }

  /** Where nobody can be asked: all that is missing at once. @throws UsageError that names it */
  demand(place: 'org' | 'workspace', options: Record<string, unknown>): void {
    if (!this.url || this.isInteractive) return;
    const places = place === 'org' ? (['org'] as const) : (['org', 'workspace'] as const);
    const missing = [
      ...places.filter((kind) => !this.given(kind)).map((kind) => `--${kind}`),
      ...Object.entries(options).flatMap(([option, value]) => (value === undefined ? [option] : [])),
    ];
    if (missing.length > 0) throw new UsageError(`Missing: ${missing.join(', ')}`);
  }

  async organizations(): Promise<Choice[]> {
    const { me } = await this.client.query(MeDocument, {});
    return me.organizations.nodes.map(({ id, name }) => ({ value: id, label: name }));
  }

  async workspaces(org_id: string): Promise<Choice[]> {
    const choices: Choice[] = [];
    for await (const { workspace_id, name } of this.client.list('/v1/orgs/{org_id}/workspaces', { path: { org_id } }))
      choices.push({ value: workspace_id, label: name });
    return choices;
  }

  /** Keeps where the caller works. */
  remember(place: Pick<Profile, 'org' | 'workspace' | 'namespace'>): void {
    if (!this.#profile) throw new UsageError('There is no profile to keep it in. Sign in first: platform login');
    this.profiles.update(this.profileName, place);
  }

  /** One of what there is: the only one, or what somebody chooses. @throws UsageError where nobody can be asked */
  async choose({ option, noun, choices }: Question): Promise<string> {
    // without an address, the place does not matter yet
    if (!this.isInteractive && this.url) throw new UsageError(`Missing: ${option}`);
    return this.pick({ option, noun, choices });
  }

  /** What somebody chooses, without a service. @throws UsageError where nobody can be asked */
  async pick({ option, noun, choices }: Question): Promise<string> {
    if (!this.isInteractive) throw new UsageError(`Missing: ${option}`);
    // names are of other people
    const options = (await choices()).map(({ value, label }) => ({ value, label: visible(label) }));
    if (options.length === 0) throw new UsageError(`There is no ${noun} that you may use.`);
    if (options.length === 1) return options[0]!.value;
    const { stdin: input, stdout: output } = this.around;
    const answer = await select({ message: `Which ${noun}?`, options, input, output });
    if (isCancel(answer)) throw new UsageError(`Missing: ${option}`);
    return answer;
  }

  /**
   * The identifier of what is meant by an identifier, a slug or a name; without any, what somebody chooses.
   * @throws NotFoundError, and UsageError for a name that several have
   */
  async find(given: string | undefined, question: Question): Promise<string> {
    if (given === undefined) return this.choose(question);
    const options = await question.choices();
    const byId = options.find(({ value, slug }) => value === given || slug === given);
    if (byId) return byId.value;
    const named = options.filter(({ label }) => label === given);
    if (named.length > 1)
      throw new UsageError(`Several have the name '${given}': ${named.map(({ value }) => value).join(', ')}`);
    if (named[0]) return named[0].value;
    const message = `There is no ${question.noun} '${given}'.`;
    throw new NotFoundError({ status: 404, code: 'RESOURCE_NOT_FOUND', message });
  }

  /** What somebody types. @throws UsageError where nobody can be asked */
  async ask(option: string, message: string, { isSecret = false } = {}): Promise<string> {
    if (!this.isInteractive) throw new UsageError(`Missing: ${option}`);
    const { stdin: input, stdout: output } = this.around;
    const answer = await (isSecret ? password : text)({ message, input, output });
    if (isCancel(answer) || !answer) throw new UsageError(`Missing: ${option}`);
    return answer;
  }

  /** Asks for a yes. @throws UsageError where nobody can be asked; `details` are for programs */
  async confirm(message: string, details: object): Promise<boolean> {
    if (!this.isInteractive) throw new UsageError(`Missing: --yes. ${message}`, details);
    const { stdin: input, stdout: output } = this.around;
    return (await confirm({ message, input, output })) === true;
  }

  /** The profile, if it is one of the service that is called: no other gets its tokens. */
  get #ownProfile(): Profile | undefined {
    return this.#profile && new URL(this.#profile.url).href === new URL(this.url).href ? this.#profile : undefined;
  }

  #credentials(): { credentials?: string | Credentials } {
    const given = this.#globals.token || this.around.env.PLATFORM_TOKEN;
    return given ? { credentials: given } : this.credentialsOf(this.url, this.#signInOfProfile);
  }

  /** How the profile is signed in at the service that is called. @throws KeyringError */
  get #signInOfProfile(): SignIn {
    if (!this.#ownProfile) return {};
    if (!this.#signIn) {
      if (this.profiles.move(this.profileName))
        this.#note(`The sign-in of the profile '${this.profileName}' is in the keyring from now on.`);
      this.#signIn = this.profiles.signIn(this.profileName);
    }
    return this.#signIn;
  }

  /** What a sign-in of the profile is at its service. New tokens are kept. */
  credentialsOf(url: string, { token, session, grant }: SignIn): { credentials?: string | Credentials } {
    if (token) return { credentials: token };
    if (session) {
      const onTokens: SessionOptions['onTokens'] = (tokens) => this.#renew({ session: stored(tokens) });
      return { credentials: new Session({ url, tokens: left(session), onTokens }) };
    }
    if (!grant) return {};
    const { client_id } = grant;
    const onTokens: GrantOptions['onTokens'] = (tokens) => this.#renew({ grant: { ...stored(tokens), client_id } });
    return { credentials: new Grant({ url, clientId: client_id, tokens: left(grant), onTokens }) };
  }

  /** Keeps a new sign-in, and says where if that is not the keyring. */
  keep(profile: Profile, wantsKeyring: boolean): Kept['kept'] {
    const { kept, reason } = this.profiles.set(this.profileName, profile, wantsKeyring);
    if (reason !== undefined) this.#noteFile(reason);
    return kept;
  }

  #renew(signIn: SignIn): void {
    const reason = this.profiles.renew(this.profileName, signIn)?.reason;
    if (reason !== undefined) this.#noteFile(reason);
  }

  #noteFile(reason: string): void {
    this.#note(`No keyring: ${reason}. The sign-in is in ${this.profiles.file}, which only you may read.`);
  }

  /** Says something to people. Programs expect errors there, and nothing else. */
  #note(line: string): void {
    if (!this.isJson) this.around.stderr.write(`${visible(line)}\n`);
  }
}

type SessionOptions = ConstructorParameters<typeof Session>[0];
type GrantOptions = ConstructorParameters<typeof Grant>[0];

/** Tokens with the time of their expiry: a later command does not know when they were given. */
export const stored = <Tokens extends TokenPair>(tokens: Tokens): Tokens & { expires_at: number } => ({
  ...tokens,
  expires_at: Date.now() + tokens.expires_in * 1_000,
});

/** Stored tokens with what is left of their time. */
const left = <Tokens extends TokenPair & { expires_at: number }>(tokens: Tokens): Tokens => ({
  ...tokens,
  expires_in: Math.floor((tokens.expires_at - Date.now()) / 1_000),
});

/** The workbench of the command that runs. */
export const workbenchOf = (command: Command, around: Surroundings): Workbench =>
  new Workbench(command.optsWithGlobals<Globals>(), around);
