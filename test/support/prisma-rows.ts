import type { PrismaClient, User } from '../../src/generated/prisma/client.ts';
import type { ResourceWord } from '../../src/kernel/resources.ts';
import { descriptorOf } from '../../src/tools/tool-instances/config-field.ts';
import { effectiveActions, initialActions } from '../../src/tools/tool-instances/effective-actions.ts';

/*
 * The expected results of the hand-written reads, built from Prisma's rows: all columns of the table except those named
 * here, and computed values. A new column is expected of every read automatically.
 */

const without = <Row extends object, Key extends keyof Row>(row: Row, keys: readonly Key[]): Omit<Row, Key> =>
  Object.fromEntries(Object.entries(row).filter(([key]) => !(keys as readonly string[]).includes(key))) as Omit<
    Row,
    Key
  >;

const thisMonth = () => new Date().toISOString().slice(0, 7);
const byId = { orderBy: { id: 'asc' } } as const;
type Where<Model extends { findMany: (args?: never) => unknown }> = NonNullable<
  NonNullable<Parameters<Model['findMany']>[0]> extends { where?: infer W } ? W : never
>;
type Of<Name extends keyof PrismaClient> = PrismaClient[Name] extends { findMany: (args?: never) => unknown }
  ? Where<PrismaClient[Name]>
  : never;

/** `field_notes` -> `fieldNotes` */
export const camelCase = (text: string): string =>
  text.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** What no read of an artifact shows. */
const ARTIFACT_HIDES = ['expiryNoticedAt', 'deletedAt', 'deletedBy', 'indexVersion', 'labelConfig'] as const;

const restorableUntil = ({ deletedAt }: { deletedAt: Date | null }) => new Date(deletedAt!.getTime() + 30 * 86_400_000);

/** The rows of a plain resource, whose model has its name. */
export async function rowsOfWord(prisma: PrismaClient, word: ResourceWord, where: object): Promise<{ id: string }[]> {
  const models = prisma as unknown as Record<string, { findMany: (args: object) => Promise<{ id: string }[]> }>;
  const model = models[camelCase(word)];
  if (!model) throw new Error(`Prisma has no model of a ${word}: list its rows in test/suites/rows-agree.test.ts.`);
  return model.findMany({ where, ...byId });
}

export const prismaRows = (prisma: PrismaClient) => ({
  workspaces: (where: Of<'workspace'>) => prisma.workspace.findMany({ where, ...byId }),
  organizations: (where: Of<'organization'>) => prisma.organization.findMany({ where, ...byId }),
  notifications: (where: Of<'notification'>) => prisma.notification.findMany({ where, ...byId }),
  deployments: (where: Of<'deployment'>) => prisma.deployment.findMany({ where, ...byId }),
  namespaces: (where: Of<'namespace'>) => prisma.namespace.findMany({ where, ...byId }),
  async connections(where: Of<'connection'>) {
    const rows = await prisma.connection.findMany({ where, ...byId });
    return rows.map((row) => without(row, ['refreshAt', 'refreshFailures', 'refreshClaim', 'claimedUntil']));
  },
  threads: (where: Of<'thread'>) => prisma.thread.findMany({ where, ...byId }),
  async artifacts(where: Of<'artifact'>) {
    const rows = await prisma.artifact.findMany({ where, ...byId });
    return rows.map((row) => {
      const isExpired = row.expiresAt !== null && row.expiresAt <= new Date();
      const isThread = row.threadId !== null;
      return {
        ...without(row, ARTIFACT_HIDES),
        sizeBytes: Number(row.sizeBytes),
        isExpired,
        hasFile: row.fileId !== null,
        scope: row.promotedToSourceId !== null ? 'workspace' : isThread ? 'thread' : 'namespace',
        status: row.isLatest ? (isExpired ? 'expired' : row.status) : 'superseded',
      };
    });
  },

  /** What can be restored. */
  async deletedArtifacts(where: Of<'artifact'>) {
    const select = {
      id: true,
      orgId: true,
      workspaceId: true,
      namespaceId: true,
      name: true,
      artifactType: true,
      version: true,
      rootArtifactId: true,
      isLatest: true,
      fileName: true,
      mimeType: true,
      sizeBytes: true,
      createdBy: true,
      createdAt: true,
      updatedAt: true,
      deletedAt: true,
      deletedBy: true,
    } as const;
    const rows = await prisma.artifact.findMany({ where, select, ...byId });
    return rows.map((row) => ({ ...row, sizeBytes: Number(row.sizeBytes), restorableUntil: restorableUntil(row) }));
  },
  async deletedWorkspaces(where: Of<'workspace'>) {
    const rows = await prisma.workspace.findMany({ where, ...byId });
    return rows.map((row) => ({ ...row, restorableUntil: restorableUntil(row) }));
  },

  async sources(where: Of<'source'>) {
    const rows = await prisma.source.findMany({ where, ...byId });
    return rows.map((row) => ({ ...row, sizeBytes: Number(row.sizeBytes) }));
  },

  apps: (where: Of<'app'>) => prisma.app.findMany({ where, ...byId }),

  executions: (where: Of<'execution'>) => prisma.execution.findMany({ where, ...byId }),

  async augmentations(where: Of<'augmentation'>) {
    const inOrder = { orderBy: { position: 'asc' } } as const;
    const include = { stages: { ...inOrder, include: { steps: inOrder } } } as const;
    const rows = await prisma.augmentation.findMany({ where, ...byId, include });
    return rows.map(({ stages, ...row }) => ({
      ...row,
      stages: stages.map(({ steps, ...stage }) => ({
        ...without(stage, ['augmentationId']),
        steps: steps.map((step) => ({ ...without(step, ['stageId']), orgId: row.orgId })),
      })),
    }));
  },

  async entities(where: Of<'entity'>) {
    const memories = { select: { memoryId: true }, orderBy: { memoryId: 'desc' } } as const;
    const rows = await prisma.entity.findMany({ where, ...byId, include: { memories } });
    return rows.map(({ memories: links, ...row }) => ({
      ...without(row, ['identityKey']),
      sourceMemoryIds: links.map(({ memoryId }) => memoryId),
    }));
  },

  async memories(where: Of<'memory'>) {
    const entities = { select: { entityId: true }, orderBy: { entityId: 'desc' } } as const;
    const rows = await prisma.memory.findMany({ where, ...byId, include: { entities } });
    return rows.map(({ entities: links, ...row }) => ({ ...row, entityIds: links.map(({ entityId }) => entityId) }));
  },

  /** The relations that start from an entity, as it sees them. */
  async relations(where: Of<'entityRelation'>) {
    const rows = await prisma.entityRelation.findMany({ where, ...byId, include: { target: true } });
    return rows.map(({ target, sourceEntityId, ...row }) => ({
      ...without(row, ['workspaceId', 'appId', 'namespaceId']),
      entityId: sourceEntityId,
      direction: 'outgoing',
      targetName: target.name,
    }));
  },

  /** The tools of an organization's catalogue. */
  async tools(orgId: string) {
    const rows = await prisma.tool.findMany({ where: { OR: [{ orgId }, { orgId: null }] }, ...byId });
    return rows.map((row) => ({ ...row, orgId, isBuiltin: row.orgId === null }));
  },

  async toolInstances(where: Of<'toolInstance'>) {
    const rows = await prisma.toolInstance.findMany({ where, ...byId, include: { tool: true } });
    return rows.map(({ tool, ...row }) => {
      const names = Object.keys(row.credentialRefs as object).sort();
      const actions = initialActions(tool.actionSchemas as never);
      return {
        ...row,
        toolVersion: tool.resourceVersion,
        toolName: tool.name,
        toolSlug: tool.slug,
        toolCategory: tool.category,
        toolIconUrl: tool.iconUrl,
        supportedStepTypes: tool.supportedStepTypes,
        toolConfigSchema: (tool.configSchema as never[]).map(descriptorOf),
        effectiveActionSchemas: effectiveActions(actions, row as never),
        hasCredentials: names.length > 0 || row.connectionStatus === 'connected',
        credentialFields: names,
        upgradeAvailable: row.schemaVersion < tool.currentSchemaVersion,
        latestSchemaVersion: tool.currentSchemaVersion,
        schemaDeprecated: row.schemaVersion < tool.minSchemaVersion,
      };
    });
  },

  /** Users as seen in an organization. */
  async users(where: Of<'user'>, orgId: string) {
    const rows = await prisma.user.findMany({ where, ...byId });
    const isShown = await shownIn(prisma, orgId);
    return rows.map((row) => ({
      ...without(row, ['passwordHash', 'purgedAt', 'emailKey', 'usernameKey', 'deactivatedAt']),
      hasPassword: row.passwordHash !== null,
      contextOrgId: orgId,
      isAddressShown: isShown(row),
    }));
  },

  async workspaceMembers(where: Of<'workspaceMember'>) {
    const rows = await prisma.workspaceMember.findMany({ where, ...byId, include: { user: true } });
    return Promise.all(rows.map(async (row) => memberOf(row, await shownIn(prisma, row.orgId))));
  },

  async organizationMembers(where: Of<'organizationMember'>) {
    const rows = await prisma.organizationMember.findMany({ where, ...byId, include: { user: true } });
    return Promise.all(rows.map(async (row) => memberOf(row, await shownIn(prisma, row.orgId))));
  },

  async membersWithoutFactor(orgId: string) {
    const user = { isActive: true, deactivatedAt: null, passkeys: { none: {} } };
    const rows = await prisma.organizationMember.findMany({ where: { orgId, user }, ...byId, include: { user: true } });
    const has = { userId: { in: rows.map(({ userId }) => userId) } };
    const apps = await prisma.totpFactor.findMany({ where: { ...has, confirmedAt: { not: null } } });
    const links = await prisma.identityLink.findMany({ where: { ...has, orgId, endedAt: null } });
    return rows
      .filter(({ userId }) => apps.every((app) => app.userId !== userId))
      .map(({ id, userId, role, user: { username } }) => ({
        id,
        orgId,
        userId,
        username,
        role,
        since: null,
        until: null,
        hasIdentity: links.some((link) => link.userId === userId),
      }));
  },

  /** Of an organization without identity providers that have signed somebody in. */
  async memberSessions(orgId: string) {
    const members = await prisma.organizationMember.findMany({ where: { orgId }, include: { user: true } });
    const theirs = { userId: { in: members.map(({ userId }) => userId) } };
    const others = await prisma.organizationMember.findMany({ where: { orgId: { not: orgId }, ...theirs } });
    const open = { revokedAt: null, expiresAt: { gt: new Date() }, ...theirs };
    const sessions = await prisma.session.findMany({ where: open, ...byId });
    return sessions.flatMap((session) => {
      const { role, user } = members.find((one) => one.userId === session.userId)!;
      const isElsewhere = others.some((one) => one.userId === user.id);
      const isWhole = user.homeOrgId === orgId && !isElsewhere && !user.isPlatformAdmin;
      if (!user.isActive || (!isWhole && session.orgId !== orgId)) return [];
      const { id, userId, method, address, userAgent, createdAt, lastUsedAt, expiresAt } = session;
      const shown = { id, orgId, userId, role, method, identityProviderId: null, address, userAgent };
      return [{ ...shown, createdAt, lastUsedAt, expiresAt }];
    });
  },

  async secrets(where: Of<'secret'>) {
    const rows = await prisma.secret.findMany({ where, ...byId });
    return rows.map((row) => without(row, ['rootKeyId', 'wrappedKey', 'rotationNoticedAt', 'expiryNoticedAt']));
  },

  async invitations(where: Of<'invitation'>) {
    const rows = await prisma.invitation.findMany({ where, ...byId });
    return rows.map((row) => {
      const isExpired = row.status === 'pending' && row.expiresAt <= new Date();
      return { ...without(row, ['tokenHash', 'emailKey']), status: isExpired ? 'expired' : row.status };
    });
  },

  async tokens(where: Of<'apiToken'>) {
    const rows = await prisma.apiToken.findMany({ where, ...byId });
    return rows.map((row) =>
      without(row, [
        'familyId',
        'makerFamilyId',
        'rootFamilyId',
        'endsBy',
        'tokenHash',
        'refreshHash',
        'rotatedAt',
        'reissuedAt',
        'successorId',
        'noticedDays',
      ]),
    );
  },

  async environments(where: Of<'environment'>) {
    const rows = await prisma.environment.findMany({ where, ...byId, include: { slots: true } });
    return rows.map(({ slots, ...row }) => ({
      ...row,
      // what is deployed is part of an environment
      resourceVersion: slots.reduce((sum, { lastNumber }) => sum + lastNumber, row.resourceVersion),
      activeDeployments: Object.fromEntries(
        slots.flatMap(({ appId, releaseId }) => (releaseId ? [[appId, releaseId]] : [])),
      ),
    }));
  },

  async entitlements(where: Of<'modelEntitlement'>) {
    const rows = await prisma.modelEntitlement.findMany({ where, ...byId });
    return rows.map((row) => ({
      ...without(row, ['modelId']),
      requestCount: Number(row.requestCount),
      totalTokens: Number(row.totalTokens),
    }));
  },

  async accounts(where: Of<'providerAccount'>) {
    const rows = await prisma.providerAccount.findMany({ where, ...byId });
    const numberOr = (value: bigint | null) => (value === null ? null : Number(value));
    return rows.map((row) => {
      const isCurrent = row.usagePeriod === thisMonth();
      return {
        ...without(row, ['consecutiveFailures', 'authFailures']),
        status: row.enabled ? row.status : 'disabled',
        statusReason: row.enabled ? row.statusReason : 'Disabled by an administrator.',
        maxTokensPerMonth: numberOr(row.maxTokensPerMonth),
        maxRequestsPerMonth: numberOr(row.maxRequestsPerMonth),
        currentMonthTokens: isCurrent ? Number(row.currentMonthTokens) : 0,
        currentMonthRequests: isCurrent ? Number(row.currentMonthRequests) : 0,
        usagePeriod: thisMonth(),
      };
    });
  },

  async identityProviders(where: Of<'identityProvider'>) {
    const rows = await prisma.identityProvider.findMany({ where, ...byId });
    const nowhere = { workspaceId: '', namespaceId: '', environmentId: '' };
    return rows.map((row) => ({
      ...without(row, ['authority', 'certificateNoticedAt', 'samlMetadataFailures']),
      ...nowhere,
    }));
  },

  async models(where: Of<'logicalModel'>) {
    const targets = { orderBy: { position: 'asc' }, include: { account: true } } as const;
    const rows = await prisma.logicalModel.findMany({ where, ...byId, include: { targets } });
    return rows.map(({ targets: list, ...row }) => {
      const isAway = (target: (typeof list)[number]) => !target.account.enabled || target.account.status !== 'active';
      const isFailing = (target: (typeof list)[number]) => target.consecutiveFailures >= 3;
      const enabled = list.filter((target) => target.enabled);
      const away = enabled.filter(isAway).length;
      const failing = enabled.filter((target) => !isAway(target) && isFailing(target)).length;
      const healthy = enabled.length - away - failing;
      const reasons = [
        [list.length - enabled.length, 'disabled'],
        [away, 'at an account that is not active'],
        [failing, 'failing'],
      ] as const;
      const said = reasons.flatMap(([n, what]) => (n > 0 ? [`${n} ${what}`] : [])).join(', ');
      const derived = healthy === list.length ? 'active' : healthy === 0 ? 'unavailable' : 'degraded';
      const counted = `${healthy} of ${list.length} targets ${healthy === 1 ? 'is' : 'are'} healthy: ${said}.`;
      return {
        ...without(row, ['statusByHand']),
        status: row.statusByHand ?? derived,
        statusReason: row.statusByHand
          ? `Set to ${row.statusByHand} by an administrator.`
          : healthy < list.length
            ? counted
            : null,
        targets: list.map(({ account: _account, modelId: _model, position: _position, ...target }) => ({
          ...without(target, ['latencyAt', 'costAt']),
          orgId: row.orgId,
          lastFailure: target.lastFailure?.toISOString() ?? null,
          lastSuccess: target.lastSuccess?.toISOString() ?? null,
        })),
        healthyTargetsCount: healthy,
        totalTargetsCount: list.length,
      };
    });
  },
});

function memberOf<Row extends { user: User }>({ user, ...row }: Row, isShown: (user: User) => boolean) {
  const { username, email, fullName, avatarUrl } = user;
  return { ...row, username, email, fullName, avatarUrl, isAddressShown: isShown(user) };
}

/** Whose address an organization shows to its members. */
async function shownIn(prisma: PrismaClient, orgId: string): Promise<(user: User) => boolean> {
  const members = await prisma.organizationMember.findMany({ where: { orgId } });
  const domains = await prisma.identityProviderDomain.findMany({ where: { orgId, state: 'proven' } });
  const came = new Set(members.flatMap(({ userId, usedAt }) => (usedAt === null ? [] : [userId])));
  const isMember = new Set(members.map(({ userId }) => userId));
  const isOfDomain = (email: string) => domains.some(({ domain }) => email.toLowerCase().endsWith(`@${domain}`));
  return ({ id, email, homeOrgId }) => isMember.has(id) && (came.has(id) || homeOrgId === orgId || isOfDomain(email));
}
