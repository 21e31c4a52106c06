import { useState } from 'react';
import {
  type ProviderAccountRowFragment as Account,
  DeleteProviderAccountDocument,
  ProviderAccountsDocument,
  ToggleProviderAccountDocument,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { ConfirmDialog } from '../ground/dialog';
import { type Pages, usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { faultOf, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { count } from '../ground/time';
import { wordOf } from '../ground/words';
import { t } from '../texts';
import { EditAccount, NewAccount } from './provider-account-form';

const tags = { active: 'tag ok', degraded: 'tag warn', disabled: 'tag', error: 'tag bad', pending: 'tag' };

/** The accounts of the organization at providers of models. */
export function ProviderAccounts() {
  const { orgId, mayInOrganization } = usePlace();
  const list = usePages(ProviderAccountsDocument, { orgId }, ({ providerAccounts }) => providerAccounts);
  const [isOpening, setOpening] = useState(false);
  return (
    <section aria-labelledby="accounts">
      <header className="toolbar">
        <h2 id="accounts" className="grow">
          {t.accounts.title}
        </h2>
        {mayInOrganization('provider_account:create') && (
          <button type="button" onClick={() => setOpening(true)}>
            {t.accounts.create}
          </button>
        )}
      </header>
      <List list={list} />
      {isOpening && <NewAccount onClose={() => setOpening(false)} />}
    </section>
  );
}

function List({ list }: { list: Pages<Account> & { more: () => void } }) {
  const { orgId, mayInOrganization } = usePlace();
  const toggle = useChange(ToggleProviderAccountDocument);
  const remove = useChange(DeleteProviderAccountDocument);
  const [problem, setProblem] = useState('');
  const [leaving, setLeaving] = useState<Account | null>(null);
  const [editing, setEditing] = useState<Account | null>(null);
  const turn = async ({ id, enabled, resourceVersion }: Account) => {
    const { error } = await toggle({ orgId, id, enabled: !enabled, expectedVersion: resourceVersion });
    setProblem(error ? faultOf(error).message : '');
  };
  return (
    <>
      <Problem message={problem} />
      <Rows
        label={t.accounts.title}
        list={list}
        idOf={({ id }) => id}
        empty={<p className="quiet">{t.accounts.none}</p>}
        columns={[
          { label: t.name, cell: ({ name }) => name },
          { label: t.accounts.provider, cell: ({ providerType }) => wordOf(t.accounts.providers, providerType) },
          { label: t.accounts.region, isExtra: true, cell: ({ region }) => region ?? t.none },
          { label: t.accounts.credentials, isExtra: true, cell: (account) => <code>{account.credentialsRef}</code> },
          { label: t.accounts.thisMonth, isExtra: true, cell: (account) => <Usage account={account} /> },
          {
            label: t.status,
            cell: ({ status, statusReason }) => (
              <span className={tags[status]} title={statusReason ?? undefined}>
                {t.accounts.status[status]}
              </span>
            ),
          },
          {
            label: '',
            cell: (account) => (
              <span className="actions">
                {mayInOrganization('provider_account:update') && (
                  <button
                    type="button"
                    className="small"
                    aria-label={t.accounts.editOne(account.name)}
                    onClick={() => setEditing(account)}
                  >
                    {t.edit}
                  </button>
                )}
                {mayInOrganization('provider_account:update') && (
                  <button
                    type="button"
                    className="small"
                    aria-label={(account.enabled ? t.accounts.turnOff : t.accounts.turnOn)(account.name)}
                    onClick={() => void turn(account)}
                  >
                    {account.enabled ? t.models.turnOff : t.models.turnOn}
                  </button>
                )}
                {mayInOrganization('provider_account:delete') && (
                  <button
                    type="button"
                    className="small danger"
                    aria-label={t.accounts.deleteOne(account.name)}
                    onClick={() => setLeaving(account)}
                  >
                    {t.delete}
                  </button>
                )}
              </span>
            ),
          },
        ]}
      />
      {editing && <EditAccount account={editing} onClose={() => setEditing(null)} />}
      {leaving && (
        <ConfirmDialog
          title={t.accounts.deleteOne(leaving.name)}
          name={leaving.name}
          action={t.delete}
          onClose={() => setLeaving(null)}
          onConfirm={() => remove({ orgId, id: leaving.id })}
        >
          <p>{t.accounts.deleteHint}</p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** What was asked of an account in this month, beside what it may at most. */
function Usage({ account: { quotaPolicy } }: { account: Account }) {
  const { currentMonthRequests, currentMonthTokens, maxRequestsPerMonth, maxTokensPerMonth } = quotaPolicy;
  const of = (used: number, most: number | null) =>
    most === null ? count(used) : t.accounts.ofMost(count(used), count(most));
  return (
    <>
      {t.accounts.requestsUsed(of(currentMonthRequests, maxRequestsPerMonth))},{' '}
      {t.accounts.tokensUsed(of(currentMonthTokens, maxTokensPerMonth))}
    </>
  );
}
