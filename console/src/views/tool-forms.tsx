import { type FormEvent, useEffect, useState } from 'react';
import type { CombinedError } from 'urql';
import {
  type ConnectionCredentialsInput,
  CreateToolInstanceDocument,
  ExecuteToolActionDocument,
  type ExecuteToolActionMutation,
  TestToolInstanceDocument,
  type TestToolInstanceMutation,
  ToolInstanceCallsDocument,
  ToolInstanceFormDocument,
  type ToolInstanceFormQuery,
  type ToolsQuery,
  UpdateToolInstanceDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { CheckedButton } from '../ground/checked-button';
import { type Described, initialOf, isObject, type Part, type PlacedFault, partsOf } from '../ground/described';
import { DescribedFields } from '../ground/described-fields';
import { Dialog } from '../ground/dialog';
import { Field } from '../ground/form';
import { usePlace } from '../ground/place';
import { type Fault, faultOf, Loading, Problem } from '../ground/problem';
import { bytes, Time } from '../ground/time';
import { t } from '../texts';
import { ClientFields, type ClientValues, type KnownClient, signsIn, useClientSaver } from './oauth-client';

type Tool = ToolsQuery['tools']['nodes'][number];
type Instance = ToolInstanceFormQuery['toolInstance'];

/** What is refused below a field of the input, with its place from there. */
const faultsIn = (fault: Fault | undefined, field: string): PlacedFault[] =>
  fault?.issues.flatMap(({ path, msg }) => {
    const [root, name, ...rest] = path;
    return root === 'input' && name === field ? [{ path: rest, msg }] : [];
  }) ?? [];

/** Whether all that is refused is said at a field. */
const isPlaced = ({ issues }: Fault, fields: readonly string[], parts: readonly Part[]): boolean =>
  issues.length > 0 &&
  issues.every(({ path: [, name, first] }) =>
    first === undefined ? fields.includes(String(name)) : parts.some((part) => part.name === first),
  );

/** The fields of a tool: its configuration, and the credentials that are typed in. Others are signed in with. */
function fieldsOf({ configSchema, credentialSchema }: Pick<Tool, 'configSchema' | 'credentialSchema'>): Part[] {
  const typed = credentialSchema.filter((entry) => isObject(entry) && entry.type !== 'oauth2');
  const credentials = partsOf(typed).map((part) => ({ ...part, kind: 'secret' as const, isRequired: false }));
  const config = partsOf(configSchema);
  return [...config, ...credentials.filter(({ name }) => !config.some((part) => part.name === name))];
}

/** A form of a name and of what a tool describes. */
function ConfigurationForm({
  title,
  action,
  name: firstName,
  parts,
  configuration,
  tool,
  client = null,
  onSave,
  onClose,
}: {
  title: string;
  action: string;
  name: string;
  parts: readonly Part[];
  configuration: Described;
  tool: Pick<Tool, 'credentialSchema'>;
  client?: KnownClient | null;
  onSave: (given: {
    name: string;
    configuration: Described;
    connectionCredentials?: ConnectionCredentialsInput | null;
  }) => Promise<{ error?: CombinedError | undefined }>;
  onClose: () => void;
}) {
  const saveWithClient = useClientSaver(client);
  const [ofClient, setOfClient] = useState<ClientValues>({
    id: client?.clientId ?? '',
    secret: '',
    hasNoSecret: false,
  });
  const [name, setName] = useState(firstName);
  const [values, setValues] = useState(configuration);
  const [error, setError] = useState<CombinedError>();
  const [isBusy, setBusy] = useState(false);
  const fault = error && faultOf(error);
  const save = async () => {
    setBusy(true);
    const { error: refusal } = await saveWithClient(name, ofClient, (credentials) =>
      onSave({ name, configuration: values, ...credentials }),
    );
    setBusy(false);
    if (refusal) setError(refusal);
    else onClose();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy) void save();
  };
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <form onSubmit={submit}>
        <Field
          spec={{ name: 'name', label: t.name, isRequired: true }}
          value={name}
          fault={fault?.fields.name}
          onChange={setName}
        />
        <DescribedFields parts={parts} values={values} faults={faultsIn(fault, 'configuration')} onChange={setValues} />
        {signsIn(tool) && <ClientFields known={client} values={ofClient} onChange={setOfClient} />}
        {!(fault && isPlaced(fault, ['name'], parts)) && <Problem error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="submit" className="primary" disabled={isBusy}>
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

export function NewInstance({ tool, onClose }: { tool: Tool; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const create = useChange(CreateToolInstanceDocument);
  const parts = fieldsOf(tool);
  return (
    <ConfigurationForm
      title={t.tools.addOne(tool.name)}
      action={t.tools.add}
      name={tool.name}
      parts={parts}
      configuration={initialOf(parts)}
      tool={tool}
      onClose={onClose}
      onSave={(given) => create({ orgId, workspaceId, input: { toolId: tool.id, ...given } })}
    />
  );
}

/** The instance with all that its forms need, once it is read. */
function useInstance(id: string) {
  const { orgId, workspaceId } = usePlace();
  const { data, error } = useAnswer(ToolInstanceFormDocument, { orgId, workspaceId, id });
  return { instance: data?.toolInstance, error };
}

export function EditInstance({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  const { instance, error } = useInstance(id);
  if (instance) return <Edit instance={instance} onClose={onClose} />;
  return (
    <Dialog title={t.tools.configureOne(name)} onClose={onClose} isWide>
      <Problem error={error} />
      {!error && <Loading />}
    </Dialog>
  );
}

function Edit({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const update = useChange(UpdateToolInstanceDocument);
  // what others save meanwhile changes neither what is typed nor what it is based on
  const [{ id, name, configuration, credentialFields, connectionCredentials, resourceVersion, tool }] =
    useState(instance);
  const parts = fieldsOf(tool).map((part): Part => {
    if (part.kind !== 'secret') return part;
    const isKept = credentialFields.includes(part.name);
    return { ...part, isRequired: false, ...(isKept && { placeholder: t.tools.kept }) };
  });
  return (
    <ConfigurationForm
      title={t.tools.configureOne(name)}
      action={t.save}
      name={name}
      parts={parts}
      configuration={configuration}
      tool={tool}
      client={connectionCredentials}
      onClose={onClose}
      onSave={(input) => update({ orgId, workspaceId, id, input, expectedVersion: resourceVersion })}
    />
  );
}

export function TestInstance({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  const { instance, error } = useInstance(id);
  const [runs, setRuns] = useState(0);
  return (
    <Dialog title={t.tools.testOne(name)} onClose={onClose} isWide>
      <Problem error={error} />
      {!instance && !error && <Loading />}
      {instance && <Test instance={instance} onRun={() => setRuns((count) => count + 1)} />}
      <Calls id={id} runs={runs} />
    </Dialog>
  );
}

const actionsOf = ({ effectiveActionSchemas }: Instance) =>
  effectiveActionSchemas.map((action) => ({
    name: String(action.name),
    label: typeof action.display_name === 'string' ? action.display_name : String(action.name),
    description: typeof action.description === 'string' ? action.description : '',
    parts: partsOf(action.parameters),
  }));

function Test({ instance, onRun }: { instance: Instance; onRun: () => void }) {
  const [name, setName] = useState('');
  const actions = actionsOf(instance);
  const action = actions.find((one) => one.name === name);
  return (
    <>
      <label className="field">
        <span>{t.tools.action}</span>
        <select value={name} onChange={(event) => setName(event.target.value)}>
          <option value="">{t.tools.justConnect}</option>
          {actions.map((one) => (
            <option key={one.name} value={one.name}>
              {one.label}
            </option>
          ))}
        </select>
      </label>
      {action ? (
        <RunAction key={action.name} id={instance.id} action={action} onRun={onRun} />
      ) : (
        <Reach id={instance.id} onRun={onRun} />
      )}
    </>
  );
}

/** Whether the provider can be reached with the credentials. */
function Reach({ id, onRun }: { id: string; onRun: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const test = useChange(TestToolInstanceDocument);
  const [result, setResult] = useState<TestToolInstanceMutation['testToolInstance'] | null>(null);
  const [error, setError] = useState<CombinedError>();
  const [isBusy, setBusy] = useState(false);
  const run = async (dryRun: boolean) => {
    setBusy(true);
    const answer = await test({ orgId, workspaceId, id, input: { dryRun } });
    setBusy(false);
    setResult(answer.data?.testToolInstance ?? null);
    setError(answer.error);
    onRun();
  };
  return (
    <>
      <Problem error={error} />
      {result && (
        <section aria-live="polite">
          <Outcome isGood={result.success} message={result.message} milliseconds={result.latencyMs ?? 0} />
          <Shown value={result.details} />
        </section>
      )}
      <footer>
        <button type="button" disabled={isBusy} onClick={() => void run(true)}>
          {t.tools.dryRun}
        </button>
        <button type="button" className="primary" disabled={isBusy} onClick={() => void run(false)}>
          {t.tools.run}
        </button>
      </footer>
    </>
  );
}

type Action = ReturnType<typeof actionsOf>[number];
type Answer = ExecuteToolActionMutation['executeToolAction'];

/** The form of an action; what it would send, and what was answered. What needs it is confirmed first. */
function RunAction({ id, action, onRun }: { id: string; action: Action; onRun: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const execute = useChange(ExecuteToolActionDocument);
  const [values, setValues] = useState(() => initialOf(action.parts));
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<CombinedError>();
  const [isBusy, setBusy] = useState(false);
  const fault = error && faultOf(error);
  const confirmation = answer?.confirmation ?? null;
  const run = async (dryRun: boolean) => {
    setBusy(true);
    const given = { action: action.name, parameters: values, dryRun };
    const input = { ...given, ...(!dryRun && confirmation !== null && { confirmation }) };
    const { data, error: refusal } = await execute({ orgId, workspaceId, id, input });
    setBusy(false);
    setAnswer(data?.executeToolAction ?? null);
    setError(refusal);
    onRun();
  };
  const change = (next: Described) => {
    setValues(next);
    // what was confirmed is one call, and no other
    setAnswer(null);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void run(false);
      }}
    >
      {action.description && <p className="quiet">{action.description}</p>}
      <DescribedFields parts={action.parts} values={values} faults={faultsIn(fault, 'parameters')} onChange={change} />
      {!(fault && isPlaced(fault, [], action.parts)) && <Problem error={error} />}
      {answer && <AnswerShown answer={answer} />}
      <footer>
        <CheckedButton disabled={isBusy} onClick={() => void run(true)}>
          {t.tools.dryRun}
        </CheckedButton>
        <button type="submit" className={confirmation === null ? 'primary' : 'danger'} disabled={isBusy}>
          {confirmation === null ? t.tools.run : t.tools.confirm}
        </button>
      </footer>
    </form>
  );
}

function AnswerShown({ answer }: { answer: Answer }) {
  const { success, message, request, format, result, truncated, wholeResult, excerpt, attempts, durationMs } = answer;
  return (
    <section aria-live="polite">
      <Outcome isGood={success} message={message} milliseconds={durationMs} />
      {attempts > 1 && <p className="quiet">{t.tools.attempts(attempts)}</p>}
      {request && (
        <>
          <h3>{t.tools.request}</h3>
          <Shown value={shownRequest(request)} />
        </>
      )}
      {format !== 'none' && (
        <>
          <h3>{t.tools.answer}</h3>
          {truncated && <p className="quiet">{t.tools.truncated}</p>}
          <Shown value={result} />
        </>
      )}
      {wholeResult && <WholeShown whole={wholeResult} />}
      {excerpt && <Shown value={excerpt} />}
    </section>
  );
}

function WholeShown({ whole }: { whole: NonNullable<Answer['wholeResult']> }) {
  const { downloadUrl, expiresAt, sizeBytes, notKept } = whole;
  if (downloadUrl === null) return <p className="quiet">{notKept && t.tools.notKept[notKept]}</p>;
  return (
    <p>
      <a href={downloadUrl} download>
        {t.tools.whole(bytes(sizeBytes))}
      </a>
      {expiresAt && (
        <>
          {' '}
          <span className="quiet">
            {t.tools.until} <Time at={expiresAt} />
          </span>
        </>
      )}
    </p>
  );
}

/** A request without what the cache of the console knows it by. */
const shownRequest = ({ method, url, headers, body }: NonNullable<Answer['request']>) => ({
  method,
  url,
  headers,
  body,
});

const Outcome = ({ isGood, message, milliseconds }: { isGood: boolean; message: string; milliseconds: number }) => (
  <p>
    <span className={isGood ? 'tag ok' : 'tag bad'}>{isGood ? t.tools.works : t.tools.fails}</span> {message}{' '}
    <span className="quiet">{t.tools.took(milliseconds)}</span>
  </p>
);

const Shown = ({ value }: { value: unknown }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard
  <pre tabIndex={0}>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>
);

/** The record of a call is written a moment after its answer, and on a busy service a few. */
const RECORDED_MS = [500, 3_000];

/**
 * The latest calls of an instance, as far as the reader may see them: whether it worked, and how long it took.
 * @param props.runs how often the reader has run something: what they have done is among the calls
 */
function Calls({ id, runs }: { id: string; runs: number }) {
  const { orgId, workspaceId } = usePlace();
  const { data, error, again } = useAnswer(ToolInstanceCallsDocument, { orgId, workspaceId, id });
  useEffect(() => {
    if (runs === 0) return;
    const timers = RECORDED_MS.map((ms) => setTimeout(again, ms));
    return () => timers.forEach(clearTimeout);
  }, [runs, again]);
  const calls = data?.toolInstance.activity.nodes ?? [];
  const failed = calls.filter(({ success }) => !success).length;
  return (
    <section aria-labelledby="calls">
      <header className="toolbar below">
        <h3 id="calls" className="grow">
          {t.tools.health}
        </h3>
        <button type="button" className="small" onClick={again}>
          {t.refresh}
        </button>
      </header>
      <Problem error={error} />
      {data && calls.length === 0 && <p className="quiet">{t.tools.noCalls}</p>}
      {calls.length > 0 && (
        <>
          <p>{t.tools.failedOf(failed, calls.length)}</p>
          <p className="pulse" aria-hidden="true">
            {[...calls].reverse().map((call) => (
              <span key={call.id} className={call.success ? 'ok' : 'bad'} />
            ))}
          </p>
          <details>
            <summary>{t.tools.calls}</summary>
            <table>
              <thead>
                <tr>
                  <th scope="col">{t.when}</th>
                  <th scope="col">{t.activity.result}</th>
                  <th scope="col">{t.runs.duration}</th>
                </tr>
              </thead>
              <tbody>
                {calls.map(({ id: callId, timestamp, success, durationMs, errorCode }) => (
                  <tr key={callId}>
                    <td>
                      <Time at={timestamp} />
                    </td>
                    <td>
                      <span className={success ? 'tag ok' : 'tag bad'}>
                        {success ? t.tools.works : (errorCode ?? t.tools.fails)}
                      </span>
                    </td>
                    <td>{t.tools.took(durationMs)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </details>
        </>
      )}
    </section>
  );
}
