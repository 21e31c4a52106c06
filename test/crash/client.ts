/** How a request ended, as far as its sender knows. */
export type Outcome =
  /** The promise: it is kept, whatever happens next. */
  | { is: 'acknowledged'; body: Record<string, unknown> }
  /**
   * It was on its way when the answer failed to come, or the answer is that nobody knows: it happened as a whole or not
   * at all.
   */
  | { is: 'in flight' }
  /** Nobody was there to take it: it did not happen. */
  | { is: 'not sent' };

const nobodyThere = (error: unknown) =>
  error instanceof Error && (error.cause as { code?: string } | undefined)?.code === 'ECONNREFUSED';

/** Somebody who sends requests to a service that may die, and knows which of them were promised. */
export class Client {
  /** Answers that were neither a success nor a refusal in the promised shape. */
  readonly strange: string[] = [];
  readonly orgId: string;
  readonly workspaceId: string;
  readonly refreshToken: string;
  readonly userId: string;
  /** Where the service is: it comes back elsewhere. */
  url: string;
  readonly headers: { authorization: string };

  private constructor(url: string, body: SignIn) {
    this.url = url;
    this.orgId = body.user.settings.current_org_id;
    this.workspaceId = body.user.default_workspace_id;
    this.refreshToken = body.refresh_token;
    this.userId = body.user.user_id;
    this.headers = { authorization: `Bearer ${body.access_token}` };
  }

  static async register(url: string): Promise<Client> {
    const account = { email: 'writer@example.test', username: 'writer', password: 'writes a lot' };
    return new Client(url, await signedIn(`${url}/v1/auth/register`, account));
  }

  static async signIn(url: string, account: { username: string; password: string }): Promise<Client> {
    return new Client(url, await signedIn(`${url}/v1/auth/login`, account));
  }

  async send(method: string, path: string, body?: object): Promise<Outcome> {
    try {
      const response = await fetch(this.url + path, {
        method,
        headers: { ...this.headers, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
        signal: AbortSignal.timeout(20_000),
      });
      const answer = (await response.json()) as Record<string, unknown>;
      if (response.ok) return { is: 'acknowledged', body: answer };
      if (response.status !== 503 || answer.error !== 'SERVICE_UNAVAILABLE')
        this.strange.push(`${method} ${path} ${response.status} ${JSON.stringify(answer)}`);
      return { is: 'in flight' };
    } catch (error) {
      return { is: nobodyThere(error) ? 'not sent' : 'in flight' };
    }
  }
}

async function signedIn(url: string, account: object): Promise<SignIn> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(account) });
  return (await response.json()) as SignIn;
}

interface SignIn {
  access_token: string;
  refresh_token: string;
  user: { user_id: string; default_workspace_id: string; settings: { current_org_id: string } };
}
