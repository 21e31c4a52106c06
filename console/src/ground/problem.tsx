import { type ReactNode, useState } from 'react';
import type { CombinedError } from 'urql';
import { t } from '../texts';
import { serviceUrl } from './address';

export interface Issue {
  path: readonly (string | number)[];
  msg: string;
}

/** What an error of the service says: its text, the fields that it is about, and the trace id. */
export interface Fault {
  code: string;
  message: string;
  /** The texts by the name of the field. */
  fields: Readonly<Record<string, string>>;
  /** What is refused, each with its place in the arguments. */
  issues: readonly Issue[];
  traceId: string | null;
  /** Which of several refusals with the same code it is. */
  reason?: string | undefined;
  /** When it is worth another try, in seconds from then. */
  retryAfter?: number | undefined;
}

/** The name of the argument, or of the field of the input, that something is about. */
export const nameIn = (path: Issue['path']): string =>
  String(path.find((part) => typeof part === 'string' && part !== 'input') ?? '');

export function faultOf(error: CombinedError): Fault {
  const [first] = error.graphQLErrors;
  if (!first) return { code: 'NETWORK', message: t.problem.network, fields: {}, issues: [], traceId: null };
  const { code, details, traceId } = first.extensions as {
    code?: string;
    details?: { issues?: Issue[]; reason?: string; retry_after?: number };
    traceId?: string;
  };
  const issues = details?.issues ?? [];
  const fields = Object.fromEntries(issues.map(({ path, msg }) => [nameIn(path), msg]));
  return {
    code: code ?? '',
    message: first.message,
    fields,
    issues,
    traceId: traceId ?? null,
    reason: details?.reason,
    retryAfter: Number(details?.retry_after) || undefined,
  };
}

/** What takes a second factor says where it is proven, or added. */
const factorHelp: Readonly<Record<string, string>> = {
  fresh_factor: t.problem.prove,
  no_factor: t.problem.addFactor,
};

/** An error of the service, with its trace id to pass on; or what a view says itself, of something else. */
export function Problem({ error, message }: { error?: CombinedError | undefined; message?: string | undefined }) {
  if (!error && !message) return null;
  const fault = error && !message ? faultOf(error) : null;
  return (
    <div className="problem" role="alert">
      <p>{message ?? fault?.message}</p>
      {fault?.reason && fault.reason in factorHelp && (
        <a href={new URL('account/factors', serviceUrl).href} target="_blank" rel="noreferrer">
          {factorHelp[fault.reason]}
        </a>
      )}
      {fault?.traceId && <CopyButton text={fault.traceId} label={t.problem.trace(fault.traceId)} />}
    </div>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true));
  return (
    <button type="button" className="plain small" onClick={() => void copy()}>
      {isCopied ? t.copied : label}
    </button>
  );
}

export const Loading = () => (
  <p className="quiet loading" role="status">
    {t.loading}
  </p>
);

export const Empty = ({ title, children }: { title: string; children?: ReactNode }) => (
  <div className="empty">
    <h2>{title}</h2>
    {children}
  </div>
);
