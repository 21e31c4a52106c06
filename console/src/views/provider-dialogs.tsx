import { useEffect, useState } from 'react';
import {
  CheckDomainProofDocument,
  type ProviderRowFragment as Provider,
  ProviderTestDocument,
  type ProviderTestQuery,
  StartDomainProofDocument,
  type StartDomainProofMutation,
  TestProviderDocument,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { Dialog } from '../ground/dialog';
import { usePlace } from '../ground/place';
import { CopyButton, faultOf, Problem } from '../ground/problem';
import { t } from '../texts';

type Result = ProviderTestQuery['identityProviderTest'];
type Proof = StartDomainProofMutation['startDomainProof']['proof'];

/** How often the end of a test sign-in is asked for. */
const WAITING_MS = 2_000;

const tags = { pending: 'tag warn', succeeded: 'tag ok', failed: 'tag bad' };

/** The answer of a provider is of one person, and is not kept in the cache. */
function useResult(id: string, testId: string | null): { result: Result | null; problem: string } {
  const { orgId } = usePlace();
  const [result, setResult] = useState<Result | null>(null);
  const [problem, setProblem] = useState('');
  const isOver = result !== null && result.status !== 'pending';
  useEffect(() => {
    if (!testId || isOver) return;
    let isLeft = false;
    const ask = async () => {
      const answer = await askPastCache(ProviderTestDocument, { orgId, id, testId });
      if (isLeft) return;
      setResult(answer.data?.identityProviderTest ?? null);
      setProblem(answer.problem ?? '');
    };
    const timer = setInterval(() => void ask(), WAITING_MS);
    return () => {
      isLeft = true;
      clearInterval(timer);
    };
  }, [orgId, id, testId, isOver]);
  return { result, problem };
}

/** Opens the provider in another window, and shows how a real sign-in would end. */
export function TestProvider({ provider: { id, name }, onClose }: { provider: Provider; onClose: () => void }) {
  const { orgId } = usePlace();
  const start = useChange(TestProviderDocument);
  const [begun, setBegun] = useState<{ testId: string; url: string } | null>(null);
  const [refusal, setRefusal] = useState('');
  const { result, problem } = useResult(id, begun?.testId ?? null);
  const begin = async () => {
    // a window that opens after an answer would be stopped by the browser
    const opened = window.open('about:blank', '_blank');
    const { data, error } = await start({ orgId, id });
    const started = data?.testIdentityProvider;
    setRefusal(error ? faultOf(error).message : '');
    if (!started || !/^https?:/.test(started.redirectUrl)) return opened?.close();
    setBegun({ testId: started.test.id, url: started.redirectUrl });
    if (!opened) return;
    opened.opener = null;
    opened.location.replace(started.redirectUrl);
  };
  const status = result?.status ?? 'pending';
  return (
    <Dialog title={t.signIn.testOf(name)} onClose={onClose} isWide>
      <p>{t.signIn.testHint}</p>
      <Problem message={refusal || problem || undefined} />
      {begun && (
        <section aria-live="polite">
          <p>
            <span className={tags[status]}>{t.signIn.testStatus[status]}</span>{' '}
            {status === 'pending' && (
              <a href={begun.url} target="_blank" rel="noreferrer">
                {t.signIn.testOpen}
              </a>
            )}
          </p>
          {result && status !== 'pending' && <Outcome result={result} />}
        </section>
      )}
      <footer>
        <button type="button" className="primary" onClick={() => void begin()}>
          {t.signIn.test}
        </button>
      </footer>
    </Dialog>
  );
}

function Outcome({ result: { outcome, failure, email, groups, claims } }: { result: Result }) {
  return (
    <>
      {outcome && <p>{t.signIn.outcomes[outcome]}</p>}
      {failure && <Problem message={failure} />}
      <dl className="facts">
        <div>
          <dt>{t.signIn.email}</dt>
          <dd>{email ?? t.none}</dd>
        </div>
        <div>
          <dt>{t.signIn.groups}</dt>
          <dd>{groups.join(', ') || t.none}</dd>
        </div>
      </dl>
      <h3>{t.signIn.claims}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
      <pre tabIndex={0}>{JSON.stringify(claims, null, 2)}</pre>
    </>
  );
}

/** The record that proves a domain, and whether it is seen. */
export function ProveDomain({
  provider: { id, domains },
  domain,
  onClose,
}: {
  provider: Provider;
  domain: string;
  onClose: () => void;
}) {
  const { orgId } = usePlace();
  const start = useChange(StartDomainProofDocument);
  const check = useChange(CheckDomainProofDocument);
  const [proof, setProof] = useState<Proof>(() => domains.find((one) => one.domain === domain)?.proof ?? null);
  const [problem, setProblem] = useState('');
  const begin = async () => {
    const { data, error } = await start({ orgId, id, domain });
    setProof(data?.startDomainProof.proof ?? proof);
    setProblem(error ? faultOf(error).message : '');
  };
  const finish = async () => {
    const { error } = await check({ orgId, id, domain });
    if (error) setProblem(faultOf(error).message);
    else onClose();
  };
  const { recordName, recordValue } = proof ?? {};
  return (
    <Dialog title={t.signIn.proveOne(domain)} onClose={onClose}>
      <p>{t.signIn.proveHint}</p>
      {recordName && recordValue && (
        <dl className="value">
          <dt>{t.signIn.recordName}</dt>
          <dd>
            <code>{recordName}</code> <CopyButton text={recordName} label={t.copyOf(t.signIn.recordName)} />
          </dd>
          <dt>{t.signIn.recordValue}</dt>
          <dd>
            <code>{recordValue}</code> <CopyButton text={recordValue} label={t.copyOf(t.signIn.recordValue)} />
          </dd>
        </dl>
      )}
      <Problem message={problem} />
      <footer>
        <button type="button" onClick={() => void begin()}>
          {t.signIn.newRecord}
        </button>
        <button type="button" className="primary" disabled={!recordValue} onClick={() => void finish()}>
          {t.signIn.check}
        </button>
      </footer>
    </Dialog>
  );
}
