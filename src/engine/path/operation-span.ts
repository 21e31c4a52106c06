import { type ExecutionArgs, type ExecutionResult, GraphQLError, getOperationAST } from 'graphql';
import { type RequestInfo, SOCKET_METHOD } from '../../kernel/caller.ts';
import { codeOf, type ErrorCode, errorCatalogue } from '../../kernel/errors.ts';
import { activeSpan, kindOf, type TraceSpan, within } from '../../kernel/spans.ts';
import { callerErrorOfAny } from '../../platform/postgres/faults.ts';
import type { Tracing } from '../../platform/tracing/tracing.ts';

const LONGEST_NAME = 64;

/**
 * The span of an operation, in that of its request; one of a socket begins a trace. `null` if nothing is recorded.
 * @param isOurs whether the document is the service's own: what clients call theirs names no span, because there is no
 * end of such names
 */
export function operationSpan(
  args: Pick<ExecutionArgs, 'document' | 'operationName'>,
  { request, isOurs, tracing }: { request: RequestInfo; isOurs: boolean; tracing: Tracing },
): TraceSpan | null {
  const isOfSocket = tracing.isOn && request.method === SOCKET_METHOD;
  const parent = isOfSocket ? undefined : activeSpan();
  if (!parent && !isOfSocket) return null;
  const operation = getOperationAST(args.document, args.operationName);
  const type = operation?.operation ?? 'operation';
  const called = operation?.name?.value.slice(0, LONGEST_NAME);
  const name = isOurs && called ? `${type} ${called}` : type;
  const attributes = { 'graphql.operation.type': type, 'graphql.operation.name': called };
  if (parent) return parent.child(name, { attributes });
  return tracing.begin(name, { kind: 'server', traceId: request.traceId, attributes });
}

/** Runs an operation as its span. A stream goes on after it: the trace shows how it began. */
export async function runAsSpan<T extends object>(span: TraceSpan, run: () => Promise<T> | T): Promise<T> {
  try {
    const result = await within(span, run);
    const errors = (result as ExecutionResult).errors;
    if (errors?.[0]) endWith(errors[0], span);
    else span.end();
    return result;
  } catch (error) {
    span.end(kindOf(error));
    throw error;
  }
}

/** What a caller did wrong is no failure of the service. */
function endWith(error: GraphQLError, span: TraceSpan): void {
  const code = codeOfShown(error);
  const isOurs = errorCatalogue[code].status >= 500;
  if (!isOurs) span.set({ 'error.type': code });
  span.end(isOurs ? code : undefined);
}

function codeOfShown({ originalError, extensions }: GraphQLError): ErrorCode {
  const given = String(extensions.code);
  if (given in errorCatalogue) return given as ErrorCode;
  if (!originalError || originalError instanceof GraphQLError) return 'VALIDATION_ERROR';
  return codeOf(callerErrorOfAny(originalError));
}
