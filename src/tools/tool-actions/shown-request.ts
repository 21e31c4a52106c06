import type { OutboundRequest } from '../../platform/outbound/outbound.ts';
import { type ActionRequestParts, requestFor, UnusableAction } from '../tool-instances/action-request.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { namesIn } from '../tools/placeholders.ts';
import { parametersIn } from './action-arguments.ts';
import { MASK, type Redactor } from './redactor.ts';

/** What would be sent, with dots in place of all that is secret. */
export interface ShownRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | null;
}

const MAX_BODY = 64 * 1024;

/** Whether a parameter must not be shown. */
const isHidden = ({ sensitive, type }: ToolAction): boolean => sensitive === true || type === 'secret';

/** The values of a call that must not be shown. */
export const hiddenValues = ({ action, parameters }: ActionRequestParts): unknown[] =>
  parametersIn(action).flatMap((parameter) =>
    isHidden(parameter) && Object.hasOwn(parameters, parameter.name) ? [parameters[parameter.name]] : [],
  );

const allMasked = (values: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.keys(values).map((name) => [name, MASK]));

/** The parts of a request with a mask in place of each secret. */
function masked(parts: ActionRequestParts): ActionRequestParts {
  const hidden = new Set(
    parametersIn(parts.action)
      .filter(isHidden)
      .map(({ name }) => name),
  );
  return {
    ...parts,
    parameters: Object.fromEntries(
      Object.entries(parts.parameters).map(([name, value]) => [name, hidden.has(name) ? MASK : value]),
    ),
    secrets: allMasked(parts.secrets),
    credentials: parts.credentials.map(({ placement }) => ({ placement, value: MASK })),
  };
}

/**
 * What is shown of a request: made anew with masks, so that not even the length of a secret is in it. An address that
 * is secret as a whole is shown as a mask.
 * @throws UnusableAction if no request can be made
 */
export function shownRequest(parts: ActionRequestParts, redactor: Redactor): ShownRequest {
  requestFor(parts);
  const { method = 'GET', url, headers, body } = maskedRequest(parts) ?? { ...withRealUrl(parts), url: MASK };
  return {
    method,
    url: redactor.clean(String(url)),
    headers: Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, value]) => [name, redactor.clean(value).slice(0, MAX_BODY)]),
    ),
    body: body === undefined ? null : redactor.clean(String(body)).slice(0, MAX_BODY),
  };
}

/** The same with what the address is made of as it is: without it there would be no request. */
function withRealUrl(parts: ActionRequestParts): OutboundRequest {
  const template = typeof parts.action.url_template === 'string' ? parts.action.url_template : '';
  const hidden = masked(parts);
  const names = new Set(namesIn(template));
  const real = (values: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)));
  return requestFor({
    ...hidden,
    parameters: { ...hidden.parameters, ...real(parts.parameters) },
    secrets: { ...hidden.secrets, ...real(parts.secrets) },
  });
}

function maskedRequest(parts: ActionRequestParts): OutboundRequest | null {
  try {
    return requestFor(masked(parts));
  } catch (error) {
    if (error instanceof UnusableAction) return null;
    throw error;
  }
}
