import { useState } from 'react';
import {
  CreateProviderDocument,
  type CreateProviderMutationVariables,
  type ProviderRowFragment as Provider,
} from '../generated/documents';
import { serviceUrl } from '../ground/address';
import { useChange } from '../ground/answers';
import { Dialog } from '../ground/dialog';
import { type FieldSpec, FormDialog, linesOf, type Values } from '../ground/form';
import { usePlace } from '../ground/place';
import { CopyButton } from '../ground/problem';
import { refusedHere } from '../ground/refused-here';
import { t } from '../texts';
import { samlConfigIn } from './saml-metadata';

type Input = CreateProviderMutationVariables['input'];
type Config = Pick<Input, 'protocol' | 'oidcConfig' | 'samlConfig' | 'samlMetadata'>;

/** A way to say how users sign in at a provider: its fields, and what they are in the input. */
interface Way {
  protocol: 'oidc' | 'saml';
  fields: readonly FieldSpec[];
  /** @returns what is wrong at a field that the console itself reads */
  configOf: (values: Values) => Config | { place: string; problem: string };
}

const ways = {
  oidc: {
    protocol: 'oidc',
    fields: [
      {
        name: 'discoveryUrl',
        at: 'oidcConfig.discoveryUrl',
        label: t.signIn.issuer,
        isRequired: true,
        placeholder: 'https://',
        hint: t.signIn.issuerHint,
      },
      { name: 'clientId', at: 'oidcConfig.clientId', label: t.signIn.clientId, isRequired: true },
      {
        name: 'clientSecretRef',
        at: 'oidcConfig.clientSecretRef',
        label: t.signIn.clientSecret,
        placeholder: 'secret://',
        hint: t.signIn.clientSecretHint,
      },
    ],
    configOf: ({ discoveryUrl = '', clientId = '', clientSecretRef }) => ({
      protocol: 'oidc',
      oidcConfig: { discoveryUrl, clientId, ...(clientSecretRef && { clientSecretRef }) },
    }),
  },
  samlUrl: {
    protocol: 'saml',
    fields: [
      {
        name: 'url',
        at: 'samlMetadata.url',
        label: t.signIn.metadataUrl,
        isRequired: true,
        placeholder: 'https://',
        hint: t.signIn.metadataUrlHint,
      },
    ],
    configOf: ({ url = '' }) => ({ protocol: 'saml', samlMetadata: { url } }),
  },
  samlXml: {
    protocol: 'saml',
    fields: [
      {
        name: 'xml',
        at: 'samlConfig',
        label: t.signIn.metadataXml,
        kind: 'lines',
        isRequired: true,
        hint: t.signIn.metadataXmlHint,
      },
    ],
    configOf: ({ xml = '' }) => {
      const samlConfig = samlConfigIn(xml);
      return typeof samlConfig === 'string'
        ? { place: 'samlConfig', problem: t.signIn.xmlProblem[samlConfig] }
        : { protocol: 'saml', samlConfig };
    },
  },
} as const satisfies Record<string, Way>;

const names = ['oidc', 'samlUrl', 'samlXml'] as const;

/** Asks how users sign in at a provider, and then for what that takes. */
export function NewProvider({ onMade, onClose }: { onMade: (provider: Provider) => void; onClose: () => void }) {
  const [way, setWay] = useState<Way | null>(null);
  if (way) return <ProviderForm way={way} onMade={onMade} onClose={onClose} />;
  return (
    <Dialog title={t.signIn.create} onClose={onClose}>
      <ul className="plain choices">
        {names.map((name) => (
          <li key={name}>
            <button type="button" className="choice" onClick={() => setWay(ways[name])}>
              <strong>{t.signIn.ways[name].title}</strong>
              <small className="quiet">{t.signIn.ways[name].hint}</small>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function ProviderForm({
  way,
  onMade,
  onClose,
}: {
  way: Way;
  onMade: (provider: Provider) => void;
  onClose: () => void;
}) {
  const { orgId } = usePlace();
  const create = useChange(CreateProviderDocument);
  const save = async (values: Values) => {
    const config = way.configOf(values);
    if ('problem' in config) return { error: refusedHere([config.place], config.problem) };
    const { name = '', domains, isActive } = values;
    const verifiedDomains = linesOf(domains);
    const input = { name, ...config, verifiedDomains, isActive: isActive === 'true' };
    const { data, error } = await create({ orgId, input });
    if (data) onMade(data.createIdentityProvider);
    return { error };
  };
  return (
    <FormDialog
      title={t.signIn.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true },
        ...way.fields,
        {
          name: 'domains',
          at: 'verifiedDomains',
          label: t.signIn.domains,
          kind: 'lines',
          hint: t.signIn.newDomainsHint,
        },
        { name: 'isActive', label: t.signIn.isOn, kind: 'check', value: 'true', hint: t.signIn.isOnHint },
      ]}
      onSave={save}
    >
      <Callback protocol={way.protocol} />
    </FormDialog>
  );
}

/** What the provider has to be told of the service. */
function Callback({ protocol }: Pick<Way, 'protocol'>) {
  const address = new URL(`v1/auth/sso/callback/${protocol}`, serviceUrl).href;
  return (
    <div className="field">
      <span>{t.signIn.callback}</span>
      <code>{address}</code>
      <CopyButton text={address} label={t.copyOf(t.signIn.callback)} />
    </div>
  );
}
