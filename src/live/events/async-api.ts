import {
  type DescribedEvent,
  type Detail,
  describedEvents,
  type NoticeType,
  noticeDetails,
} from '../../kernel/event-details.ts';
import { type Channel, isOn } from '../../kernel/event-types.ts';
import { declarationOf, type ResourceWord } from '../../kernel/resources.ts';

type JsonObject = Record<string, unknown>;
type Details = DescribedEvent['details'];

const text = { type: 'string' };
const names = {
  type: 'object',
  properties: { resource_type: text, resource_id: text },
  required: ['resource_type', 'resource_id'],
};
const FORMS: Record<Detail['form'], JsonObject> = {
  string: text,
  integer: { type: 'integer' },
  time: { type: 'string', format: 'date-time' },
  names,
  list: { type: 'array', items: text },
  present: {
    type: 'array',
    items: {
      type: 'object',
      properties: {
        user_id: text,
        username: text,
        joined_at: { type: 'string', format: 'date-time' },
        viewing: { oneOf: [names, { type: 'null' }] },
      },
      required: ['user_id', 'username', 'joined_at', 'viewing'],
    },
  },
};

function schemaOf({ form, description, isNullable }: Detail): JsonObject {
  const schema = FORMS[form];
  return isNullable ? { oneOf: [schema, { type: 'null' }], description } : { ...schema, description };
}

const dataOf = (details: Details): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(details).map(([name, detail]) => [name, schemaOf(detail)])),
  required: Object.keys(details).filter((name) => !details[name]!.isOptional),
  additionalProperties: false,
});

const nullable = (schema: JsonObject): JsonObject => ({ oneOf: [schema, { type: 'null' }] });

const envelope: JsonObject = {
  type: 'object',
  description: 'What every event has. It names its resource: read that with your own permissions.',
  properties: {
    event_id: { ...text, description: 'Identifier of the event. An event that comes twice has the same.' },
    type: { ...text, description: 'The type, which is also the name of the frame.' },
    org_id: { ...text, description: 'The organization.' },
    workspace_id: { ...nullable(text), description: 'The workspace; `null` for events of the organization itself.' },
    actor: {
      type: 'object',
      description: 'Who caused the event.',
      properties: { principal_type: text, principal_id: nullable(text), username: nullable(text) },
      required: ['principal_type', 'principal_id', 'username'],
    },
    resource_type: { ...text, description: 'Kind of the resource.' },
    resource_id: { ...text, description: 'Identifier of the resource.' },
    data: { type: 'object', description: 'Details, depending on `type`.' },
    timestamp: { ...text, format: 'date-time', description: 'When it happened.' },
    trace_id: { ...nullable(text), description: 'Trace of the request that caused the event.' },
  },
  required: [
    'event_id',
    'type',
    'org_id',
    'workspace_id',
    'actor',
    'resource_type',
    'resource_id',
    'data',
    'timestamp',
    'trace_id',
  ],
};

const NOTICES: Record<NoticeType, string> = {
  connected: 'The stream has begun.',
  heartbeat: 'The stream is open, and nothing has happened for a while. Only for those who ask for it.',
  resync: 'Missed events are no longer available: read the state again.',
  'stream.closing': 'The last event of a stream.',
};

/** `tool_instance.needs_reauth` -> `tool instance: needs reauth` */
const summaryOf = (type: string): string => type.replace('.', ': ').replaceAll('_', ' ');

const messageOf = (type: string, summary: string, details: Details): JsonObject => ({
  name: type,
  title: type,
  summary,
  contentType: 'application/json',
  payload: {
    allOf: [
      { $ref: '#/components/schemas/Event' },
      { type: 'object', properties: { type: { const: type }, data: dataOf(details) } },
    ],
  },
});

const messagesOf = (types: readonly string[]): JsonObject =>
  Object.fromEntries(types.map((type) => [type, { $ref: `#/components/messages/${type}` }]));

/**
 * The AsyncAPI document of the event streams: every type of event with its details, from the table of events and that
 * of resources.
 */
export function asyncApi(info: { title: string; version: string }): JsonObject {
  const notices = Object.keys(noticeDetails) as NoticeType[];
  const on = (channel: Channel) =>
    describedEvents.filter(({ word, type }) => isOn(channel, word, type)).map(({ type }) => type);
  return {
    asyncapi: '3.0.0',
    info: {
      ...info,
      description:
        'The live events. Over REST each event is a frame of server-sent events: its `id` is the position in the ' +
        'stream, for `Last-Event-ID`; its name is the type; its data is the message. GraphQL subscriptions have the ' +
        'same events.',
    },
    channels: {
      workspace: {
        address: '/v1/orgs/{org_id}/workspaces/{workspace_id}/sync/stream',
        description: 'The events of a workspace. In GraphQL: `workspaceEvents`.',
        parameters: { org_id: { description: 'The organization.' }, workspace_id: { description: 'The workspace.' } },
        messages: messagesOf([...notices, ...on('workspace')]),
      },
      organization: {
        address: '/graphql',
        description: 'The events of an organization itself, by the subscription `organizationEvents`.',
        messages: messagesOf([
          ...notices.filter((type) => type !== 'connected' && type !== 'heartbeat'),
          ...on('organization'),
        ]),
      },
    },
    operations: Object.fromEntries(
      (['workspace', 'organization'] as const).map((channel) => [
        `${channel}Events`,
        { action: 'send', channel: { $ref: `#/channels/${channel}` } },
      ]),
    ),
    components: {
      messages: Object.fromEntries<JsonObject>([
        ...notices.map((type): [string, JsonObject] => [type, messageOf(type, NOTICES[type], noticeDetails[type])]),
        ...describedEvents.map(({ type, details }): [string, JsonObject] => [
          type,
          messageOf(type, summaryOf(type), details),
        ]),
      ]),
      schemas: { Event: envelope },
    },
  };
}

/** The same as a page for people, in Markdown. */
export function eventsPage(): string {
  const row = (type: string, details: Details) => {
    const listed = Object.entries(details).map(
      ([name, { description, isOptional }]) => `\`${name}\`${isOptional ? ' (optional)' : ''}: ${description}`,
    );
    return `| \`${type}\` | ${listed.join('<br>')} |`;
  };
  const about = (word: ResourceWord) => declarationOf(word).events?.map((name) => `${word}.${name}`) ?? [];
  const words = [...new Set(describedEvents.map(({ word }) => word))];
  const detailsOf = new Map(describedEvents.map(({ type, details }) => [type, details]));
  return [
    '# Events',
    '',
    'Every type of event with the properties of its `data`. [Live events](../guides/live-events.md) shows how to',
    'receive and resume them. Written by `npm run generate` from `src/kernel/event-details.ts` and',
    '`src/kernel/resources.ts`; `/asyncapi.json` has the same for programs.',
    '',
    '| type | `data` |',
    '|---|---|',
    ...Object.entries<Details>(noticeDetails).map(([type, details]) => row(type, details)),
    ...words.flatMap(about).map((type) => row(type, detailsOf.get(type)!)),
    '',
  ].join('\n');
}
