import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { outcomeOf } from '../data/activity.ts';
import type { Services } from '../graphql/context.ts';
import type { SessionCaller } from '../identity/oauth/authorization-server.ts';
import { type FactorPageFacts, factorsPage } from '../identity/pages/factor-pages.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import { ApiError, InputError, unauthenticated } from '../kernel/errors.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';
import { formPageHeaders } from './account-pages.ts';
import type { PageSessions } from './page-sessions.ts';

interface FactorPageOptions {
  services: Pick<Services, 'factors' | 'passkeys'>;
  sessions: PageSessions;
  /** Has forms without files read. */
  acceptForms: (scope: FastifyInstance) => void;
  /** The path of the address of the service, without a slash at its end. */
  base: () => string;
}

const PATH = '/account/factors';
/** What the forms of the page are for. */
export const FACTORS = 'factors';
const MAX_FORM = 8_192;
const MAX_NAME = 255;
const MAX_PASSWORD = 1_024;
const MAX_CODE = 40;

type Shown = Partial<Omit<FactorPageFacts, 'factors' | 'passkeys' | 'formToken'>>;

/** Lets people see, add, prove and remove their second factors, without a script but for passkeys. */
export function addFactorPages(server: FastifyInstance, options: FactorPageOptions): void {
  const pages = new FactorPages(options);
  server.get(PATH, (request, reply) => pages.show(request, reply));
  void server.register(async (scope) => {
    options.acceptForms(scope);
    scope.post(PATH, { bodyLimit: MAX_FORM }, (request, reply) => pages.change(request, reply));
  });
}

class FactorPages {
  readonly #options: FactorPageOptions;

  constructor(options: FactorPageOptions) {
    this.#options = options;
  }

  async show(request: FastifyRequest, reply: FastifyReply) {
    const caller = await this.#options.sessions.callerOf(request);
    const to = `${this.#options.base()}/account/sign-in?return_to=${PATH}`;
    if (!caller) return reply.code(303).header('location', to).send();
    return this.#send(request, reply, caller, {});
  }

  /** A form of the page: one thing is done, and the page shows what has come of it. */
  async change(request: FastifyRequest, reply: FastifyReply) {
    const { sessions } = this.#options;
    const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    const caller = await sessions.callerOf(request);
    if (!caller) throw unauthenticated();
    sessions.demandOwn(request, FACTORS, fields.get('form_token'));
    const [action = '', id = ''] = (fields.get('do') ?? '').split(' ');
    let shown: Shown | null;
    try {
      shown = await this.#do(caller, action, id, fields).catch(throwCallerError);
    } catch (error) {
      if (!(error instanceof ApiError) && !(error instanceof InputError)) throw error;
      reply.code(outcomeOf(error).statusCode);
      return this.#send(request, reply, caller, { problem: problemOf(error), isBegun: action === 'confirm' });
    }
    if (shown) return this.#send(request, reply, caller, shown);
    return reply.code(303).header('location', `${this.#options.base()}${PATH}`).send();
  }

  /** @returns what is shown this once; `null` to show the page as it is now */
  async #do(caller: SessionCaller, action: string, id: string, fields: URLSearchParams): Promise<Shown | null> {
    const { factors, passkeys } = this.#options.services;
    switch (action) {
      case 'enrol': {
        const password = textOf(fields, 'current_password', MAX_PASSWORD);
        return { enrolment: await factors.enrolTotp(caller, password) };
      }
      case 'confirm':
        return { recoveryCodes: await factors.confirmTotp(caller, textOf(fields, 'code', MAX_CODE).trim()) };
      case 'renew_codes':
        return { recoveryCodes: await factors.renewRecoveryCodes(caller) };
      case 'prove':
        await factors.prove(caller, { code: textOf(fields, 'code', MAX_CODE) });
        return null;
      case 'remove_totp':
        await factors.removeTotp(caller);
        return null;
      case 'rename_passkey':
        await passkeys.rename(caller, id, textOf(fields, 'name', MAX_NAME).trim() || 'Passkey');
        return null;
      case 'remove_passkey':
        await passkeys.remove(caller, id);
        return null;
      default:
        throw badForm();
    }
  }

  async #send(request: FastifyRequest, reply: FastifyReply, caller: SessionCaller, shown: Shown) {
    const { services, sessions } = this.#options;
    const [factors, passkeys] = await Promise.all([
      services.factors.view(caller),
      services.passkeys.list(caller),
    ]).catch(throwCallerError);
    const formToken = sessions.formToken(request, FACTORS);
    const text = factorsPage({ ...shown, factors, passkeys, formToken });
    return reply.headers(formPageHeaders).type('text/html; charset=utf-8').send(text);
  }
}

const badForm = () => new ApiError('INVALID_REQUEST', { reason: 'form_fields' });

/** A text of a form that can be stored and is not endless. */
function textOf(fields: URLSearchParams, name: string, longest: number): string {
  const text = fields.get(name) ?? '';
  if (text.length > longest || isUnstorable(text)) throw badForm();
  return text;
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

const problemOf = (error: ApiError | InputError): string =>
  error instanceof InputError
    ? error.issues.map(({ msg }) => sentence(msg.replace('Value error, ', ''))).join(' ')
    : error.message;
