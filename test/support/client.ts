/** JSON as it comes from the service. */
export type Json = Record<string, unknown>;

export interface Response {
  status: number;
  body: Json;
}

/** Calls a running service over HTTP, as any client would: it works with every version of the service. */
export class Client {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor(base: string, headers: Record<string, string> = {}) {
    this.#base = base;
    this.#headers = headers;
  }

  /** The same service, called with an access token or an API token. */
  with(token: string, headers: Record<string, string> = {}): Client {
    return new Client(this.#base, { authorization: `Bearer ${token}`, ...headers });
  }

  /** The answer, whatever its status; the body of an empty answer is `{}`. */
  async call(method: string, path: string, body?: Json): Promise<Response> {
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: { ...this.#headers, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Json) };
  }

  /** @throws Error when the answer is not a success */
  async must(method: string, path: string, body?: Json): Promise<Json> {
    const answer = await this.call(method, path, body);
    if (answer.status < 300) return answer.body;
    throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  }

  /** Sends a form. @throws Error when the answer is not a success */
  async submit(path: string, form: FormData): Promise<Json> {
    const response = await fetch(`${this.#base}${path}`, { method: 'POST', headers: this.#headers, body: form });
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Json;
  }

  get(path: string): Promise<Json> {
    return this.must('GET', path);
  }

  post(path: string, body?: Json): Promise<Json> {
    return this.must('POST', path, body);
  }

  /** Data of a GraphQL query. @throws Error when it has errors */
  async query(query: string): Promise<Json> {
    const { data, errors } = await this.post('/graphql', { query });
    if (errors) throw new Error(`${query}: ${JSON.stringify(errors)}`);
    return data as Json;
  }
}
