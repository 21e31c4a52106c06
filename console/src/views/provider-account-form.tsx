import { useState } from 'react';
import {
  type ProviderAccountRowFragment as Account,
  CreateProviderAccountDocument,
  ProviderAccountNowDocument,
  UpdateProviderAccountDocument,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { type FieldSpec, FormDialog, type Values } from '../ground/form';
import { usePlace } from '../ground/place';
import { wordOf } from '../ground/words';
import { t } from '../texts';

/** Those that the service knows by name. Another word is taken as well, over the API. */
const providers = Object.keys(t.accounts.providers);

const choices = (own: string | undefined) =>
  [...providers, ...(own && !providers.includes(own) ? [own] : [])].map((value) => ({
    value,
    label: wordOf(t.accounts.providers, value),
  }));

/** The fields of an account. Credentials are named, never given: so none of them is a password. */
const fieldsOf = (values: Values): FieldSpec[] =>
  [
    { name: 'name', label: t.name, isRequired: true },
    {
      name: 'providerType',
      label: t.accounts.provider,
      kind: 'choice' as const,
      isRequired: true,
      choices: choices(values.providerType),
    },
    { name: 'credentialsRef', label: t.accounts.credentials, isRequired: true, hint: t.accounts.credentialsHint },
    { name: 'baseUrl', label: t.accounts.baseUrl, hint: t.accounts.baseUrlHint },
    { name: 'region', label: t.accounts.region },
    {
      name: 'maxRequests',
      at: 'quotaPolicy.maxRequestsPerMonth',
      label: t.accounts.maxRequests,
      kind: 'number' as const,
      hint: t.models.noLimitHint,
    },
    {
      name: 'maxTokens',
      at: 'quotaPolicy.maxTokensPerMonth',
      label: t.accounts.maxTokens,
      kind: 'number' as const,
      hint: t.models.noLimitHint,
    },
  ].map((field) => {
    const value = values[field.name];
    return value === undefined ? field : { ...field, value };
  });

const valuesOf = ({ name, providerType, credentialsRef, baseUrl, region, quotaPolicy }: Account): Values => ({
  name,
  providerType,
  credentialsRef,
  baseUrl: baseUrl ?? '',
  region: region ?? '',
  maxRequests: String(quotaPolicy.maxRequestsPerMonth ?? ''),
  maxTokens: String(quotaPolicy.maxTokensPerMonth ?? ''),
});

const inputOf = ({
  name = '',
  providerType = '',
  credentialsRef = '',
  baseUrl,
  region,
  maxRequests,
  maxTokens,
}: Values) => ({
  name,
  providerType,
  credentialsRef,
  baseUrl: baseUrl || null,
  region: region || null,
  quotaPolicy:
    maxRequests || maxTokens
      ? {
          ...(maxRequests && { maxRequestsPerMonth: Number(maxRequests) }),
          ...(maxTokens && { maxTokensPerMonth: Number(maxTokens) }),
        }
      : null,
});

export function NewAccount({ onClose }: { onClose: () => void }) {
  const { orgId } = usePlace();
  const create = useChange(CreateProviderAccountDocument);
  return (
    <FormDialog
      title={t.accounts.create}
      action={t.create}
      onClose={onClose}
      fields={fieldsOf({ credentialsRef: 'secret://' })}
      onSave={(values) => create({ orgId, input: inputOf(values) })}
    />
  );
}

/** Changes an account. What others have saved meanwhile is shown before it is overwritten. */
export function EditAccount({ account, onClose }: { account: Account; onClose: () => void }) {
  const { orgId } = usePlace();
  const update = useChange(UpdateProviderAccountDocument);
  const [version, setVersion] = useState(account.resourceVersion);
  const { id, name } = account;
  return (
    <FormDialog
      title={t.accounts.editOne(name)}
      action={t.save}
      onClose={onClose}
      fields={fieldsOf(valuesOf(account))}
      onSave={(values) => update({ orgId, id, input: inputOf(values), expectedVersion: version })}
      conflictOf={async () => {
        const { data } = await askPastCache(ProviderAccountNowDocument, { orgId, id });
        if (!data) return null;
        setVersion(data.providerAccount.resourceVersion);
        return valuesOf(data.providerAccount);
      }}
    />
  );
}
