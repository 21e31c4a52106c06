import { getNamedType, isInputObjectType, isLeafType, isObjectType, parse } from 'graphql';
import { describe, expect, test } from 'vitest';
import {
  ASKING_MUTATIONS,
  asksFirst,
  CALM_MUTATIONS,
  HARMLESS_FIELDS,
  isOpen,
  looksSecret,
  OPEN_QUERIES,
  withheldIn,
} from '../../src/mcp/open-operations.ts';
import { schema } from '../../src/wiring/schema.ts';

const names = (text: string): string[] => text.trim().split(/\s+/).sort();
const OPEN_MUTATIONS: ReadonlySet<string> = new Set([...CALM_MUTATIONS, ...ASKING_MUTATIONS]);
const fieldsOf = (root: 'query' | 'mutation' | 'subscription') =>
  Object.keys(schema.getRootType(root as never)!.getFields());

/** Somebody has decided that no model gets these. */
const WITHHELD = {
  query: names(`
    authConfig eventCursor inviteInfo membersWithoutFactor memberSessions myFactors secretVersions serviceStatus
  `),
  mutation: names(`
    createOrganization register login refresh logout switchOrganization verifyEmail resendVerification forgotPassword
    resetPassword changePassword completeSignIn beginPasskeySignIn signInWithPasskey beginPasskey addPasskey
    renamePasskey removePasskey enrolTotp confirmTotp disableTotp renewRecoveryCodes beginFactorProof proveFactor
    issueWorkspaceConnectionToken issueNamespaceConnectionToken initiateNamespaceConnection
    refreshWorkspaceConnection refreshNamespaceConnection createConnectLink
    initiateWorkspaceConnection exchangeConnection createUpload finishUpload checkDomainProof resumeApiTokens
    testIdentityProvider joinPresence leavePresence viewResource updateNotificationPreferences
    updateNotificationMutes updateNotificationSchedules acceptInvitation updateOrganizationStorage breakGlass
    beginSingleLogout discoverSso initiateSso finishSamlSignIn finishOidcSignIn exchangeSsoCode executeToolAction
    executeNamespaceToolAction createApiToken refreshApiToken createAppToken createApplication updateApplication
    rotateApplicationSecret createScimToken createWebhook rotateWebhookSecret resetMemberFactors endMemberSessions
  `),
};

describe('what models get of the schema', () => {
  test('is listed: each operation is open or withheld by a decision, and a new one is withheld', () => {
    expect(
      fieldsOf('query')
        .filter((name) => !OPEN_QUERIES.has(name))
        .sort(),
    ).toEqual(WITHHELD.query);
    expect(
      fieldsOf('mutation')
        .filter((name) => !OPEN_MUTATIONS.has(name))
        .sort(),
    ).toEqual(WITHHELD.mutation);
    expect([...OPEN_QUERIES].filter((name) => !fieldsOf('query').includes(name))).toEqual([]);
    expect([...OPEN_MUTATIONS].filter((name) => !fieldsOf('mutation').includes(name))).toEqual([]);
    expect(isOpen('Query', 'revealEverything')).toBe(false);
    expect(isOpen('Mutation', 'issueMasterKey')).toBe(false);
    for (const name of fieldsOf('subscription')) expect(isOpen('Subscription', name)).toBe(false);
  });

  test('has nothing that is for a session, for strangers, or takes a credential', () => {
    const open = Object.values(schema.getMutationType()!.getFields()).filter(({ name }) => OPEN_MUTATIONS.has(name));
    for (const { name, extensions } of open) {
      expect([name, extensions.isCredential]).toEqual([name, false]);
      expect([name, extensions.access]).not.toEqual([name, 'public']);
      expect(extensions.access, name).not.toHaveProperty('session');
    }
  });

  test('has no field with the name of a secret, except those that somebody has looked at', () => {
    const leaves = Object.values(schema.getTypeMap())
      .filter(isObjectType)
      .filter(({ name }) => !name.startsWith('__') && !['Query', 'Mutation', 'Subscription'].includes(name))
      .flatMap((type) => Object.values(type.getFields()).map((field) => ({ type: type.name, field })))
      .filter(({ field }) => isLeafType(getNamedType(field.type)))
      .map(({ type, field }) => [type, field.name] as const);
    const secret = leaves.filter(([type, field]) => looksSecret(type, field)).map((leaf) => leaf.join('.'));
    expect(secret.sort()).toEqual(
      names(`
        AddedPasskey.recoveryCodes Application.idTokenSignedResponseAlg
        ConnectionToken.accessToken ConnectionToken.tokenType DownloadLink.downloadUrl
        InitiatedToolAuthorization.authorizationUrl InitiatedToolAuthorization.state IssuedApiToken.plaintextToken
        IssuedApiToken.refreshTokenPlaintext IssuedApplication.secret IssuedScimToken.plaintextToken
        IssuedWebhook.secret PasskeyChallenge.challenge RecoveryCodes.recoveryCodes RefreshResult.accessToken
        RefreshResult.refreshToken RefreshResult.tokenType Secret.value SecretVersion.value SignInResult.accessToken
        SignInResult.refreshToken SignInResult.tokenType SingleLogout.redirectUrl SsoInitiation.redirectUrl
        SsoSignIn.accessToken SsoSignIn.refreshToken SsoSignIn.tokenType StartedIdentityProviderTest.redirectUrl
        SwitchOrganizationResult.accessToken SwitchOrganizationResult.tokenType ToolWholeResult.downloadUrl
        TotpEnrolment.secret TotpEnrolment.uri
      `),
    );
    const known = new Set(leaves.map((leaf) => leaf.join('.')));
    expect([...HARMLESS_FIELDS].filter((name) => !known.has(name))).toEqual([]);
    expect(looksSecret('Webhook', 'signingSecret')).toBe(true);
  });

  test('is found out wherever a document hides it', () => {
    const withheld = (text: string) => withheldIn(schema, parse(text));
    expect(withheld('{ secret(orgId: "o", id: "s") { id name } }')).toBeNull();
    expect(withheld('{ a: secret(orgId: "o", id: "s") { name b: value } }')).toBe('Secret.value');
    expect(withheld('{ node(id: "s") { ... on Secret { ...S } } } fragment S on Secret { value }')).toBe(
      'Secret.value',
    );
    expect(withheld('fragment A on Secret { ... { value } } { secrets(orgId: "o") { nodes { ...A } } }')).toBe(
      'Secret.value',
    );
    expect(withheld('{ me { id } secretVersions(orgId: "o", id: "s") { secretId } }')).toBe('Query.secretVersions');
    expect(withheld('mutation { createApiToken(orgId: "o", input: {name: "n"}) { apiToken { id } } }')).toBe(
      'Mutation.createApiToken',
    );
    expect(withheld('{ __schema { types { name } } }')).toBeNull();
    expect(withheld('{ __typename }')).toBeNull();
  });
});

describe('a mutation asks first', () => {
  test('unless it is known by name that it makes or changes content, and stands on one list', () => {
    expect([...CALM_MUTATIONS].filter((name) => ASKING_MUTATIONS.has(name))).toEqual([]);
    expect(fieldsOf('mutation').sort()).toEqual(
      [...CALM_MUTATIONS, ...ASKING_MUTATIONS, ...WITHHELD.mutation].sort((a, b) => (a < b ? -1 : 1)),
    );
    expect([...CALM_MUTATIONS].filter(asksFirst)).toEqual([]);
    expect([...ASKING_MUTATIONS].filter((name) => !asksFirst(name))).toEqual([]);
    for (const name of ['purgeEverything', 'createAnything', 'updateAnything', 'addAnything', ''])
      expect(asksFirst(name), name).toBe(true);
  });

  test('that grants a right, says where something is sent to, or runs something', () => {
    for (const name of names(`updateOrganizationMember addOrganizationMember createUser createInvitation
      addWorkspaceMember updateWorkspaceMember createIdentityProvider updateIdentityProvider updateWebhook createTool
      updateTool createToolInstance updateToolInstance updateProviderAccount createAction createAugmentation
      createEndpoint createModelEntitlement restoreSecret testToolInstance applyRecipe importWorkspace`))
      expect(asksFirst(name), name).toBe(true);
  });

  test('that takes a role, an address, a secret or a time to run', () => {
    const risky = /role|permission|scope|url|uri|host|secret|password|credential|cron|trigger|userid|email|isactive/i;
    const inputsOf = (name: string): string[] => {
      const seen = new Set<unknown>();
      const found: string[] = [];
      const look = (at: readonly { name: string; type: never }[]) => {
        for (const { name: field, type } of at) {
          found.push(field);
          const named: unknown = getNamedType(type);
          if (!isInputObjectType(named) || seen.has(named)) continue;
          seen.add(named);
          look(Object.values(named.getFields()) as never);
        }
      };
      look(schema.getMutationType()!.getFields()[name]!.args as never);
      return found;
    };
    const calm = [...CALM_MUTATIONS].flatMap((name) => inputsOf(name).map((field) => `${name}.${field}`));
    expect(calm.filter((field) => risky.test(field.split('.')[1]!))).toEqual([]);
    expect(inputsOf('createUser').filter((field) => risky.test(field))).toContain('role');
  });
});
