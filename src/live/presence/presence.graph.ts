import { builder } from '../../graphql/builder.ts';
import type { Context } from '../../graphql/context.ts';
import { bounds } from '../../graphql/inputs.ts';
import { visibleNode } from '../../graphql/node.ts';
import type { PlacedRow } from '../../graphql/parent-kinds.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { notFound } from '../../kernel/errors.ts';
import { placeOfRow } from '../../kernel/place.ts';
import { declarationOf, type IdKind, type ResourceWord, resourceWords } from '../../kernel/resources.ts';
import { startingNoun } from '../../kernel/wording.ts';
import type { Announced } from './presence.service.ts';
import type { PresentUser, Viewed } from './present-user.ts';

/** A resource in a workspace that can be read by its identifier. */
type Viewable = IdKind & ResourceWord;

const isViewable = (word: ResourceWord): word is Viewable => {
  // nobody else could look at it
  if (word === 'notification') return false;
  const { prefix, in: places, may, events } = declarationOf(word);
  const isInWorkspace = places === 'anywhere' || [places].flat().some((kind) => kind !== 'organization');
  return Boolean(prefix && events && may && 'read' in may && isInWorkspace && places !== 'nowhere');
};
const viewable = resourceWords.filter(isViewable);

const ViewableType = wordEnum<Viewable>(
  'ViewableResourceType',
  'A kind of resource that a user can look at, as in events.',
  Object.fromEntries(viewable.map((word) => [word, `${startingNoun(word.replaceAll('_', ' '))}.`])) as Record<
    Viewable,
    string
  >,
);

const PresenceStatus = wordEnum<Announced['status']>('PresenceStatus', 'What an announcement of presence did.', {
  joined: 'The user is present.',
  left: 'The session has left.',
  viewing: 'The user is present, and looks at something.',
});

const ViewedResource = builder.objectRef<Viewed>('ViewedResource').implement({
  description: 'The resource that a user looks at.',
  fields: (t) => ({
    resourceType: t.expose('resourceType', { type: ViewableType, description: 'Kind of the resource.' }),
    resourceId: t.exposeID('resourceId', { description: 'Identifier of the resource.' }),
  }),
});
refersTo(ViewedResource, { resourceId: 'node' });

const PresentUserType = builder.objectRef<PresentUser>('PresentUser').implement({
  description: 'A user who is present in a workspace: with an open stream, or announced within the last minute.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The user.' }),
    username: t.exposeString('username', { description: 'Name of the user.' }),
    joinedAt: t.expose('joinedAt', { type: 'DateTime', description: 'Present since.' }),
    viewing: t.field({
      type: ViewedResource,
      nullable: true,
      authorize: 'inherited',
      extensions: { sameForAll: true },
      description: 'What the user looks at, as last announced, if the caller may read it.',
      resolve: ({ viewing }) => viewing,
    }),
  }),
});
refersTo(PresentUserType, { userId: 'user' });

const PresenceAnnouncement = builder.objectRef<Announced>('PresenceAnnouncement').implement({
  description: 'The answer to an announcement of presence.',
  fields: (t) => ({
    status: t.expose('status', { type: PresenceStatus, description: 'What it did.' }),
    userId: t.exposeID('userId', { description: 'The user of the caller.' }),
    presence: t.expose('presence', {
      type: [PresentUserType],
      authorize: 'inherited',
      description: 'Who is present now, in the order of arrival; at most 1,000 users.',
    }),
    ttlSeconds: t.exposeInt('ttlSeconds', {
      description: 'The user leaves after this many seconds, unless the announcement is repeated or a stream is open.',
    }),
  }),
});
refersTo(PresenceAnnouncement, { userId: 'user' });

const PRESENT =
  'The users who are present in a workspace, in the order of arrival; at most 1,000. A user is present with an open ' +
  'stream that joined, or for 60 seconds after an announcement.';

builder.queryField('presence', (t) =>
  t.field({
    type: [PresentUserType],
    description: PRESENT,
    authorize: { workspace: 'sync:subscribe' },
    activity: { resourceType: 'presence', action: 'list' },
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.presence.list(caller, workspace),
  }),
);

builder.subscriptionField('presence', (t) =>
  t.field({
    type: [PresentUserType],
    description: `${PRESENT} The list comes at once, and again with each change.`,
    authorize: { workspace: 'sync:subscribe' },
    activity: { resourceType: 'presence', action: 'read' },
    args: workspaceArgs(),
    extensions: { sameForAll: true },
    subscribe: async (_root, place, { caller, services }) =>
      services.presence.follow(
        caller,
        place,
        await services.events.subscribe(caller, place, { types: ['presence.*'] }),
      ),
    resolve: (users: PresentUser[]) => users,
  }),
);

builder.mutationFields((t) => ({
  joinPresence: t.field({
    type: PresenceAnnouncement,
    description:
      'Announces that the user is present in a workspace, for 60 seconds. Repeat it to stay; an open stream of the ' +
      'same session does so by itself. Others get `presence.joined`, unless the user was present already.',
    authorize: { workspace: 'presence:update' },
    activity: { resourceType: 'presence', action: 'join' },
    mayEmit: ['presence.joined'],
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.presence.join(caller, workspace),
  }),
  leavePresence: t.field({
    type: PresenceAnnouncement,
    description:
      'Announces that the session leaves a workspace. Others get `presence.left` ten seconds later, unless the ' +
      'user has come back or another session of the user is present.',
    authorize: { workspace: 'presence:update' },
    activity: { resourceType: 'presence', action: 'leave' },
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.presence.leave(caller, workspace),
  }),
  viewResource: t.field({
    type: PresenceAnnouncement,
    description:
      'Announces which resource the user looks at, and that the user is present. Others get `presence.viewing`, ' +
      'unless the resource is the same as before.',
    authorize: { workspace: 'presence:update' },
    activity: { resourceType: 'presence', action: 'view' },
    emits: ['presence.viewing'],
    mayEmit: ['presence.joined'],
    args: {
      ...workspaceArgs(),
      resourceType: t.arg({
        type: ViewableType,
        required: true,
        description: 'Kind of the resource.',
      }),
      resourceId: t.arg.id({
        required: true,
        constraints: bounds.id,
        description: 'The resource. It is in the workspace, and the caller may read it.',
      }),
    },
    resolve: async ({ workspace }, { resourceType, resourceId }, context) => {
      const viewed = await viewedOf(context, workspace, resourceType, resourceId);
      return context.services.presence.view(context.caller, workspace, viewed);
    },
  }),
}));

/**
 * The resource with its place.
 * @throws RESOURCE_NOT_FOUND unless it is there, in the workspace, and the caller may read it
 */
async function viewedOf(
  context: Context,
  { orgId, workspaceId }: { orgId: string; workspaceId: string },
  resourceType: Viewable,
  resourceId: string,
): Promise<Viewed> {
  const row = (await visibleNode(context, resourceType, resourceId, orgId)) as PlacedRow | null;
  const isHere = row && (row.workspaceId === workspaceId || row.id === workspaceId);
  if (!isHere) throw notFound(resourceType, resourceId);
  const { namespaceId = null, environmentId = null, appId = null } = placeOfRow(row);
  return { orgId, resourceType, resourceId: row.id, namespaceId, environmentId, appId };
}
