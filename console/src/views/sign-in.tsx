import { type ReactNode, useState } from 'react';
import {
  IdentityProvidersDocument,
  type ProviderRowFragment as Provider,
  SignInPolicyDocument,
  type SignInPolicyQuery,
  ToggleProviderDocument,
  UpdateSignInPolicyDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { FormDialog, linesOf } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, faultOf, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { count, Time } from '../ground/time';
import { t } from '../texts';
import { FactorRules } from './factor-rules';
import { NewProvider } from './new-provider';
import { ProveDomain, TestProvider } from './provider-dialogs';
import { RevealRules } from './reveal-rules';
import { ScimTokens } from './scim-tokens';

type Domain = Provider['domains'][number];
type Policy = SignInPolicyQuery['signInPolicy'];
type Open = { kind: 'test' | 'off'; provider: Provider } | { kind: 'prove'; provider: Provider; domain: string };

/** How members sign in: identity providers, whether they are demanded, and directories that keep the members. */
export function SignIn(): ReactNode {
  const { mayInOrganization } = usePlace();
  return (
    <>
      <h1>{t.sections['sign-in']}</h1>
      {!mayInOrganization('identity_provider:read') && <Empty title={t.forbidden} />}
      {mayInOrganization('identity_provider:read') && <Providers />}
      {mayInOrganization('identity_provider:update') && <SignInRules />}
      {mayInOrganization('scim_token:read') && <ScimTokens />}
    </>
  );
}

const emptyList = { nodes: [], pageInfo: { endCursor: null, hasNextPage: false } };

function Providers() {
  const { orgId, mayInOrganization } = usePlace();
  const list = usePages(
    IdentityProvidersDocument,
    { orgId },
    ({ identityProviders }) => identityProviders ?? emptyList,
  );
  const toggle = useChange(ToggleProviderDocument);
  const [open, setOpen] = useState<Open | null>(null);
  const [problem, setProblem] = useState('');
  const [isCreating, setCreating] = useCreating(mayInOrganization('identity_provider:create'));
  const mayUpdate = mayInOrganization('identity_provider:update');
  const turnOn = async ({ id, resourceVersion }: Provider) => {
    const { error } = await toggle({ orgId, id, isActive: true, expectedVersion: resourceVersion });
    setProblem(error ? faultOf(error).message : '');
  };
  const close = () => setOpen(null);
  // its latest version, which is what is changed: proving a domain makes a new one
  const provider = open && (list.rows.find(({ id }) => id === open.provider.id) ?? open.provider);
  return (
    <section aria-labelledby="providers">
      <header className="toolbar">
        <h2 id="providers" className="grow">
          {t.signIn.providers}
        </h2>
        {mayInOrganization('identity_provider:create') && (
          <button type="button" onClick={() => setCreating(true)}>
            {t.signIn.create}
          </button>
        )}
      </header>
      <Problem message={problem} />
      <Rows<Provider>
        label={t.signIn.providers}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.signIn.none}>{t.signIn.noneHint}</Empty>}
        columns={[
          { label: t.name, cell: ({ name }) => name },
          { label: t.signIn.protocol, isExtra: true, cell: ({ protocol }) => protocol.toUpperCase() },
          {
            label: t.signIn.domains,
            cell: (provider) => (
              <Domains
                domains={provider.domains}
                onProve={mayUpdate ? (domain) => setOpen({ kind: 'prove', provider, domain }) : null}
              />
            ),
          },
          {
            label: t.status,
            cell: ({ isActive, samlMetadata }) => (
              <>
                <span className={isActive ? 'tag ok' : 'tag'}>{isActive ? t.signIn.on : t.signIn.off}</span>
                {samlMetadata?.error && <MetadataProblem {...samlMetadata} />}
              </>
            ),
          },
          {
            label: '',
            cell: (provider) =>
              mayUpdate && (
                <span className="actions">
                  <button
                    type="button"
                    className="small"
                    aria-label={t.signIn.testOf(provider.name)}
                    onClick={() => setOpen({ kind: 'test', provider })}
                  >
                    {t.signIn.test}
                  </button>
                  <button
                    type="button"
                    className="small"
                    aria-label={(provider.isActive ? t.signIn.offOne : t.signIn.onOne)(provider.name)}
                    onClick={() => (provider.isActive ? setOpen({ kind: 'off', provider }) : void turnOn(provider))}
                  >
                    {provider.isActive ? t.signIn.turnOff : t.signIn.turnOn}
                  </button>
                </span>
              ),
          },
        ]}
      />
      {isCreating && (
        <NewProvider onMade={(provider) => setOpen({ kind: 'test', provider })} onClose={() => setCreating(false)} />
      )}
      {provider && open.kind === 'test' && <TestProvider provider={provider} onClose={close} />}
      {provider && open.kind === 'off' && <TurnOff provider={provider} onClose={close} />}
      {provider && open.kind === 'prove' && <ProveDomain provider={provider} domain={open.domain} onClose={close} />}
    </section>
  );
}

/** Why the metadata of a provider was not read the last time; what was read before goes on. */
function MetadataProblem({ error, fetchedAt }: NonNullable<Provider['samlMetadata']>) {
  return (
    <div>
      <span className="tag warn">{t.signIn.metadataProblem}</span> {error} {t.signIn.metadataRead}{' '}
      {fetchedAt ? <Time at={fetchedAt} /> : t.none}
    </div>
  );
}

function Domains({ domains, onProve }: { domains: readonly Domain[]; onProve: ((domain: string) => void) | null }) {
  if (domains.length === 0) return <span className="quiet">{t.signIn.noDomains}</span>;
  return domains.map(({ domain, state }) => (
    <div key={domain}>
      {domain} <span className={state === 'proven' ? 'tag ok' : 'tag warn'}>{t.signIn.domainState[state]}</span>{' '}
      {state !== 'proven' && onProve && (
        <button type="button" className="small" aria-label={t.signIn.proveOne(domain)} onClick={() => onProve(domain)}>
          {t.signIn.prove}
        </button>
      )}
    </div>
  ));
}

function TurnOff({ provider: { id, name, resourceVersion }, onClose }: { provider: Provider; onClose: () => void }) {
  const { orgId } = usePlace();
  const toggle = useChange(ToggleProviderDocument);
  return (
    <FormDialog
      title={t.signIn.offOne(name)}
      action={t.signIn.turnOff}
      onClose={onClose}
      fields={[]}
      onSave={() => toggle({ orgId, id, isActive: false, expectedVersion: resourceVersion })}
    >
      <p>{t.signIn.turnOffHint}</p>
    </FormDialog>
  );
}

/** What is demanded of members who sign in. */
function SignInRules() {
  const { orgId } = usePlace();
  const { data, error } = useAnswer(SignInPolicyDocument, { orgId });
  const policy = data?.signInPolicy;
  if (!policy) return error ? <Problem error={error} /> : <Loading />;
  return (
    <>
      <SingleSignOn policy={policy} />
      <FactorRules policy={policy} />
      <RevealRules policy={policy} />
    </>
  );
}

/** Whether members have to sign in at a provider. */
function SingleSignOn({ policy }: { policy: Policy }) {
  const [isChanging, setChanging] = useState(false);
  return (
    <section aria-labelledby="policy" className="card">
      <header className="toolbar">
        <h2 id="policy" className="grow">
          {t.signIn.policy}
        </h2>
        <button type="button" onClick={() => setChanging(true)}>
          {t.signIn.changePolicy}
        </button>
      </header>
      <dl className="facts">
        {factsOf(policy).map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {isChanging && <ChangePolicy policy={policy} onClose={() => setChanging(false)} />}
    </section>
  );
}

const yesOrNo = (value: boolean) => (value ? t.signIn.yes : t.signIn.no);

const factsOf = (policy: Policy): [string, string][] => [
  [t.signIn.required, yesOrNo(policy.ssoRequired)],
  [t.signIn.requiredDomains, policy.ssoRequiredDomains.join(', ') || t.none],
  [t.signIn.breakGlass, yesOrNo(policy.breakGlass)],
  [t.signIn.withoutIdentity, count(policy.membersWithoutIdentity)],
];

function ChangePolicy({ policy, onClose }: { policy: Policy; onClose: () => void }) {
  const { orgId } = usePlace();
  const update = useChange(UpdateSignInPolicyDocument);
  return (
    <FormDialog
      title={t.signIn.policy}
      action={t.save}
      onClose={onClose}
      fields={[
        { name: 'ssoRequired', label: t.signIn.required, kind: 'check', value: String(policy.ssoRequired) },
        {
          name: 'ssoRequiredDomains',
          label: t.signIn.requiredDomains,
          kind: 'lines',
          hint: t.signIn.domainsHint,
          value: policy.ssoRequiredDomains.join('\n'),
        },
        {
          name: 'breakGlass',
          label: t.signIn.breakGlass,
          kind: 'check',
          hint: t.signIn.breakGlassHint,
          value: String(policy.breakGlass),
        },
      ]}
      onSave={({ ssoRequired, ssoRequiredDomains, breakGlass }) =>
        update({
          orgId,
          input: {
            ssoRequired: ssoRequired === 'true',
            ssoRequiredDomains: linesOf(ssoRequiredDomains),
            breakGlass: breakGlass === 'true',
          },
        })
      }
    />
  );
}
