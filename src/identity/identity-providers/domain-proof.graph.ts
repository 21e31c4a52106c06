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
      description: 'Where the DNS must have a TXT record; `null` for a mail.',
      resolve: ({ domain, proofMethod }) => (proofMethod === 'dns' ? recordNameOf(domain) : null),
    }),
    recordValue: t.string({
      authorize: 'inherited',
      nullable: true,
      description: 'What the record must say; `null` for a mail.',
      resolve: ({ proofToken }) => (proofToken === null ? null : recordValueOf(proofToken)),
    }),
    mailedTo: t.string({
      authorize: 'inherited',
      nullable: true,
      description: 'Who got the mail with the code; `null` for the DNS.',
      resolve: ({ domain, proofMethod }) => (proofMethod === 'mail' ? postmasterOf(domain) : null),
    }),
  }),
});

const IdentityProviderDomain = builder.objectRef<DomainRow>('IdentityProviderDomain').implement({
  description: 'A mail domain whose users sign in at a provider.',
  fields: (t) => ({
    domain: t.exposeString('domain', { description: 'In lower case; international ones in their ASCII form.' }),
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
    description: 'The domains as they are compared, and whether they were proven.',
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
  description: 'The domain whose proof is to be looked for.',
  fields: (t) => ({
    domain: t.string({ required: true, constraints: domain, description: "One of the provider's domains." }),
    code: t.string({
      constraints: { minLength: 1, maxLength: 128, sensitive: true },
      description: 'The code from the mail. Not for the DNS.',
    }),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The provider.') });

builder.mutationFields((t) => ({
  startDomainProof: t.field({
    type: IdentityProviderDomain,
    description:
      'Starts a proof that a domain is the own of the organization, in place of one that was started before.',
    authorize: { organization: 'identity_provider:update' },
    emits: ['identity_provider.updated'],
    args: { ...target(), ...inputArg(StartDomainProofInput, 'The domain.'), ...versionArg('the provider') },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.domainProofs.start(caller, organization, id, { ...input, method: input.method as ProofMethod }),
  }),
  checkDomainProof: t.field({
    type: IdentityProviderDomain,
    description: 'Looks for the proof of a domain. The domain is proven from then on, until the provider drops it.',
    authorize: { organization: 'identity_provider:update' },
    emits: ['identity_provider.updated'],
    mayFail: ['UPSTREAM_TIMEOUT'],
    args: { ...target(), ...inputArg(CheckDomainProofInput, 'The domain.'), ...versionArg('the provider') },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.domainProofs.check(caller, organization, id, input),
  }),
}));
