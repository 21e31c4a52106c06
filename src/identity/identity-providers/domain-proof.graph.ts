import type { IdentityProviderDomain as DomainRow } from '../../generated/prisma/client.ts';
import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { type ProofMethod, postmasterOf, proofMethods, recordNameOf, recordValueOf } from './domain-proofs.ts';
import { IdentityProvider } from './identity-provider.graph.ts';

const DomainProofMethod = wordEnum<ProofMethod>(
  'DomainProofMethod',
  'How an organization proves a domain.',
  {
    dns: 'With a TXT record, within 30 days.',
    mail: 'With a code that is mailed to `postmaster@` the domain, within a day; at most 3 mails an hour.',
  },
  proofMethods,
);

const DomainState = wordEnum('IdentityProviderDomainState', 'What is known of a domain of a provider.', {
  claimed: 'Users are sent to the provider.',
  proven: 'The organization has shown that the domain is its own, and accounts with such an address are linked.',
});

const DomainProof = builder.objectRef<DomainRow>('DomainProof').implement({
  description: 'A proof that is under way.',
  fields: (t) => ({
    method: t.expose('proofMethod', { type: DomainProofMethod, nullable: true, description: 'How.' }),
    startedAt: t.expose('proofStartedAt', optionalTime('When it was started.')),
    recordName: t.string({
      authorize: 'inherited',
      nullable: true,
      description: 'The name of the TXT record; `null` for a proof by mail.',
      resolve: ({ domain, proofMethod }) => (proofMethod === 'dns' ? recordNameOf(domain) : null),
    }),
    recordValue: t.string({
      authorize: 'inherited',
      nullable: true,
      description: 'The value of the TXT record; `null` for a proof by mail.',
      resolve: ({ proofToken }) => (proofToken === null ? null : recordValueOf(proofToken)),
    }),
    mailedTo: t.string({
      authorize: 'inherited',
      nullable: true,
      description: 'The address that the code was mailed to; `null` for a proof by DNS.',
      resolve: ({ domain, proofMethod }) => (proofMethod === 'mail' ? postmasterOf(domain) : null),
    }),
  }),
});

const IdentityProviderDomain = builder.objectRef<DomainRow>('IdentityProviderDomain').implement({
  description: 'A mail domain whose users sign in at a provider.',
  fields: (t) => ({
    domain: t.exposeString('domain', { description: 'In lower case; international domains in their ASCII form.' }),
    state: t.expose('state', { type: DomainState, description: 'Whether it was proven.' }),
    provenAt: t.expose('provenAt', optionalTime('When it was proven.')),
    provenBy: t.exposeID('provenBy', { nullable: true, description: 'The user who proved it.' }),
    proof: t.field({
      type: DomainProof,
      nullable: true,
      authorize: 'inherited',
      description: 'The proof that is under way; `null` for none.',
      resolve: (row) => (row.proofMethod === null ? null : row),
    }),
  }),
});
refersTo(IdentityProviderDomain, { provenBy: 'user' });

builder.objectField(IdentityProvider, 'domains', (t) =>
  t.field({
    type: [IdentityProviderDomain],
    authorize: 'inherited',
    description: 'The domains in normalized form, and whether they are proven.',
    resolve: ({ id }, _args, context) => context.services.domainProofs.domainsOf(context, id),
  }),
);

const domain = { minLength: 1, maxLength: 253 } as const;

const StartDomainProofInput = builder.inputType('StartDomainProofInput', {
  description: 'The domain to prove, and how.',
  fields: (t) => ({
    domain: t.string({ required: true, constraints: domain, description: "One of the provider's domains." }),
    method: t.field({ type: DomainProofMethod, required: true, description: 'How to prove it.' }),
  }),
});

const CheckDomainProofInput = builder.inputType('CheckDomainProofInput', {
  description: 'The domain whose proof the service looks for.',
  fields: (t) => ({
    domain: t.string({ required: true, constraints: domain, description: "One of the provider's domains." }),
    code: t.string({
      constraints: { minLength: 1, maxLength: 128, sensitive: true },
      description: 'The code from the mail. Omit it for a proof by DNS.',
    }),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The provider.') });

builder.mutationFields((t) => ({
  startDomainProof: t.field({
    type: IdentityProviderDomain,
    description:
      'Starts a proof that a domain belongs to the organization. It replaces an unfinished proof of the domain.',
    authorize: { organization: 'identity_provider:update' },
    emits: ['identity_provider.updated'],
    args: { ...target(), ...inputArg(StartDomainProofInput, 'The domain.'), ...versionArg('the provider') },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.domainProofs.start(caller, organization, id, { ...input, method: input.method as ProofMethod }),
  }),
  checkDomainProof: t.field({
    type: IdentityProviderDomain,
    description:
      'Checks the proof of a domain. From then on the domain is proven, until it is removed from the provider.',
    authorize: { organization: 'identity_provider:update' },
    emits: ['identity_provider.updated'],
    mayFail: ['UPSTREAM_TIMEOUT'],
    args: { ...target(), ...inputArg(CheckDomainProofInput, 'The domain.'), ...versionArg('the provider') },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.domainProofs.check(caller, organization, id, input),
  }),
}));
