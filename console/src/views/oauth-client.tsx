import type { CombinedError } from 'urql';
import { type ConnectionCredentialsInput, CreateSecretDocument, DeleteSecretDocument } from '../generated/documents';
import { serviceUrl } from '../ground/address';
import { useChange } from '../ground/answers';
import { isObject } from '../ground/described';
import { Field } from '../ground/form';
import { usePlace } from '../ground/place';
import { CopyButton } from '../ground/problem';
import { t } from '../texts';

/** What the provider calls the application, and what was typed in of its secret. */
export interface ClientValues {
  id: string;
  secret: string;
  /** Whether it is a public client now, whose secret is no longer referred to. */
  hasNoSecret: boolean;
}

/** The application as the service has it. */
export interface KnownClient {
  clientId: string | null;
  clientSecretVaultId: string | null;
  callbackUrl: string | null;
  scopesOverride: readonly string[];
}

interface Outcome {
  error?: CombinedError | undefined;
}

/** Whether users sign in at the provider of a tool: then the tool needs an application there. */
export const signsIn = ({ credentialSchema }: { credentialSchema: readonly unknown[] }): boolean =>
  credentialSchema.some((entry) => isObject(entry) && entry.type === 'oauth2');

/** Where the provider sends users back to, unless the instance has another address. */
const callbackOf = (known: KnownClient | null): string =>
  known?.callbackUrl ?? new URL('connections/callback', serviceUrl).href;

/** The application that is registered at the provider: its id and secret, and the address to give there. */
export function ClientFields({
  known,
  values,
  onChange,
}: {
  known: KnownClient | null;
  values: ClientValues;
  onChange: (values: ClientValues) => void;
}) {
  const callback = callbackOf(known);
  const lacksId = values.id === '' && values.secret !== '';
  const isKept = Boolean(known?.clientSecretVaultId);
  return (
    <fieldset className="field">
      <legend>{t.tools.client}</legend>
      <p className="quiet">{t.tools.clientHint}</p>
      <div className="field">
        <span>{t.tools.callback}</span>
        <code>{callback}</code> <CopyButton text={callback} label={t.copyOf(t.tools.callback)} />
      </div>
      <Field
        spec={{ name: 'clientId', label: t.tools.clientId, isRequired: lacksId }}
        value={values.id}
        fault={lacksId ? t.tools.clientIdMissing : undefined}
        onChange={(id) => onChange({ ...values, id })}
      />
      {!values.hasNoSecret && (
        <Field
          spec={{
            name: 'clientSecret',
            label: t.tools.clientSecret,
            kind: 'password',
            isSecret: true,
            hint: isKept ? t.tools.clientSecretKept : t.tools.clientSecretHint,
            placeholder: isKept ? t.tools.kept : undefined,
          }}
          value={values.secret}
          fault={undefined}
          onChange={(secret) => onChange({ ...values, secret })}
        />
      )}
      {isKept && (
        <Field
          spec={{ name: 'hasNoSecret', label: t.tools.hasNoSecret, kind: 'check', hint: t.tools.hasNoSecretHint }}
          value={String(values.hasNoSecret)}
          fault={undefined}
          onChange={(checked) => onChange({ ...values, secret: '', hasNoSecret: checked === 'true' })}
        />
      )}
    </fieldset>
  );
}

/** Of characters that names of secrets may have. */
const secretName = (name: string): string =>
  `${t.tools.clientSecret} ${name.replaceAll(/[^\p{L}\p{M}\p{N} _-]/gu, ' ').slice(0, 80)} ${Date.now().toString(36)}`;

/**
 * Saves something together with its application. A new secret goes to the vault as one of its own, and only its
 * reference is saved; if that is refused, the secret goes again. The former one stays as it is: copies of an instance
 * and programs may use it.
 */
export function useClientSaver(known: KnownClient | null) {
  const { orgId, workspaceId } = usePlace();
  const create = useChange(CreateSecretDocument);
  const remove = useChange(DeleteSecretDocument);
  const former = known?.clientSecretVaultId ?? null;

  return async (
    name: string,
    { id, secret, hasNoSecret }: ClientValues,
    save: (client: { connectionCredentials?: ConnectionCredentialsInput | null }) => Promise<Outcome>,
  ): Promise<Outcome> => {
    if (id === (known?.clientId ?? '') && secret === '' && !hasNoSecret) return save({});
    if (id === '') return save({ connectionCredentials: null });
    let made: string | null = null;
    if (secret !== '') {
      const input = { name: secretName(name), secretType: 'oauth2', value: { client_secret: secret }, workspaceId };
      const { data, error } = await create({ orgId, input });
      if (!data) return { error };
      made = data.createSecret.id;
    }
    const saved = await save({
      connectionCredentials: {
        callbackUrl: known?.callbackUrl ?? null,
        scopesOverride: [...(known?.scopesOverride ?? [])],
        clientId: id,
        clientSecretVaultId: made ?? (hasNoSecret ? null : former),
      },
    });
    // if it was saved and only the answer is lost, the service refuses: the secret is in use
    if (saved.error && made) await remove({ orgId, id: made, permanent: true });
    return saved;
  };
}
