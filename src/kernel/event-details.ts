import { declarationOf, type EventType, type ResourceWord, resourceWords } from './resources.ts';

/** The form of a detail. A time is a text in ISO 8601. */
type Form = 'string' | 'integer' | 'time' | 'names' | 'present' | 'list';

/** A property of an event's `data`. */
export interface Detail {
  form: Form;
  description: string;
  /** Whether it may be `null`. */
  isNullable?: true;
  /** Whether it may be absent. */
  isOptional?: true;
}

type Details = Readonly<Record<string, Detail>>;

const text = (description: string) => ({ form: 'string', description }) as const;
const number = (description: string) => ({ form: 'integer', description }) as const;
const time = (description: string) => ({ form: 'time', description }) as const;
const orNull = <Of extends Detail>(detail: Of) => ({ ...detail, isNullable: true }) as const;
const optional = <Of extends Detail>(detail: Of) => ({ ...detail, isOptional: true }) as const;

const expiring = {
  days_left: number('Whole days until then; 0 at the end.'),
  expires_at: time('When it expires.'),
};
const progress = {
  augmentation_id: orNull(text('The augmentation that runs.')),
  status: text('The state of the run.'),
  stages_completed: orNull(number('Stages that are done.')),
  total_stages: orNull(number('Stages that the run has.')),
};
const deployed = {
  environment_id: text('The environment.'),
  app_id: text('The app.'),
  release_id: orNull(text('The release that is deployed now.')),
  previous_release_id: orNull(text('The release that was deployed before.')),
  action: text('What was done: as in the record of the deployment.'),
  number: number('The number of the record in its environment and app.'),
};
const related = {
  relation_id: text('The relation.'),
  target_entity_id: text('The target of the relation.'),
  relation_type: text('The kind of the relation.'),
};
const called = {
  action: text('The name of the action.'),
  code: text('How it ended: as in the answer to the caller.'),
  status: orNull(number('The status that the provider answered; `null` if it did not answer.')),
  duration_ms: number('How long the call took.'),
};
const member = { role: optional(text('The role of the member now.')) };
const someone = { user_id: text('The user.'), username: text('Name of the user.') };

/**
 * The details of events, by type, beside those that every event of a kind has: see {@link detailsOf}. What an event is
 * about is always in its envelope.
 */
export const eventDetails = {
  'organization_member.created': member,
  'organization_member.updated': member,
  'workspace_member.created': member,
  'workspace_member.updated': member,
  'workspace.updated': { bucket_status: optional(text('The state of the storage, if that is what changed.')) },
  'action.fired': {
    augmentation_id: text('The augmentation to run.'),
    scheduled_for: time('The time that was due.'),
  },
  'execution.started': progress,
  'execution.stage_completed': progress,
  'execution.completed': progress,
  'execution.failed': progress,
  'artifact.version_created': { version: number('The number of the new version.') },
  'artifact.indexed': { chunk_count: number('The number of parts that can be found.') },
  'secret.expiring': expiring,
  'api_token.expiring': expiring,
  'app_token.expiring': expiring,
  'deployment.created': deployed,
  'deployment.rolled_back': deployed,
  'deployment.removed': deployed,
  'model.updated': { status: optional(text('The state of the model, if that is what changed.')) },
  'provider_account.updated': { status: optional(text('The state of the account, if that is what changed.')) },
  'provider_account.degraded': { status: text('The state of the account.') },
  'connection.updated': { status: optional(text('The state of the connection, if that is what changed.')) },
  'connection.needs_reauth': { tool_instance_id: text('The instance whose connection it is.') },
  'tool_action.executed': called,
  'tool_action.failed': called,
  'entity.related': related,
  'entity.unrelated': related,
  'entity.imported': {
    entities_created: number('Entities that were created; the event names one that was given.'),
    entities_updated: number('Entities that were changed.'),
    relations_created: number('Relations that were created.'),
    relations_updated: number('Relations that were changed.'),
  },
  'workspace.imported': {
    namespaces: number('Namespaces that were created.'),
    environments: number('Environments that were created.'),
    tools: number('Tools that were created in the organization.'),
    tool_instances: number('Tool instances that were created.'),
    entitlements: number('Models that were granted.'),
    apps: number('Apps that were created.'),
  },
  'audit_stream.disabled': {
    reason: text('`failing`, or `no_access`: the user whom it acts for may no longer read all activity.'),
  },
  'webhook.disabled': { reason: text('`failing`, or `no_access`: the user whom it acts for no longer has access.') },
  'entity.merged': { into_entity_id: text('The entity that it was merged into: its id leads there.') },
  'recipe.applied': { app_id: text('The app that was made.'), namespace_id: text('Its namespace.') },
  'notification.created': {
    category: text('The category.'),
    type: text('The kind of message.'),
    priority: text('The priority.'),
  },
  'notification.updated': {
    status: text('The state of the notification.'),
    count: optional(number('How many notifications returned together in the place that was restored.')),
  },
  'notification.read': {
    status: text('The state of the notification.'),
    count: optional(number('How many were marked as read together in the place: the event names the newest one.')),
  },
  'notification.resolved': {
    count: number('How many stopped being true together in the place: the event names the newest one.'),
  },
  'presence.joined': someone,
  'presence.left': { ...someone, reason: text('`left`, `timeout` or `disconnected`.') },
  'presence.viewing': {
    ...someone,
    resource_type: text('Kind of the resource that the user looks at.'),
    resource_id: text('The resource.'),
    previous: orNull({
      form: 'names',
      description: 'What the user looked at before, if it is in the same place: `resource_type` and `resource_id`.',
    } as const),
  },
} as const satisfies Partial<Record<EventType, Details>>;

/** The events about a stream itself, which are not stored. */
export const noticeDetails = {
  connected: {
    connection_id: text('The stream.'),
    timeout: orNull(number('Seconds after which it ends; `null` if it does not end by itself.')),
    presence: { form: 'present', description: 'Who is present in the workspace.' },
    last_event_id: orNull(
      text('The position that the client sent, after which the stream resumes; `null` for a new stream.'),
    ),
  },
  heartbeat: {},
  resync: {},
  'stream.closing': {
    reason: text(
      '`timeout`, `token_revoked`, `membership_revoked`, `shutdown`, `slow_consumer`, `workspace_deleted`, ' +
        '`organization_deleted` or `unavailable`.',
    ),
  },
} as const satisfies Record<string, Details>;

/** A type of event about a stream itself. */
export type NoticeType = keyof typeof noticeDetails;

type DetailTable = typeof eventDetails;
interface DetailValues {
  string: string;
  integer: number;
  time: string;
  names: Record<string, unknown>;
  present: Record<string, unknown>[];
  list: string[];
}
type ValueOf<Of extends Detail> = DetailValues[Of['form']] | (Of extends { isNullable: true } ? null : never);
type GivenDetails<Of extends Details> = {
  [Name in keyof Of as Of[Name] extends { isOptional: true } ? never : Name]: ValueOf<Of[Name]>;
} & { [Name in keyof Of as Of[Name] extends { isOptional: true } ? Name : never]?: ValueOf<Of[Name]> };

/** The `data` of events of a type, as a service gives it; `undefined` for a type without details. */
export type EventData<Type extends EventType> = Type extends keyof DetailTable
  ? GivenDetails<DetailTable[Type]>
  : undefined;

/** A type of event, with what it is about and its details. */
export interface DescribedEvent {
  type: string;
  word: ResourceWord;
  details: Details;
}

const changed: Details = {
  fields: optional({
    form: 'list',
    description: 'Names of the fields that were given, as REST has them. Absent if the service changed it by itself.',
  } as const),
};

/** What events of a type carry: those of changed resources also which fields, never the values. */
const detailsOf = (type: string): Details => ({
  ...(type.endsWith('.updated') && changed),
  ...(eventDetails as Partial<Record<string, Details>>)[type],
});

/** All types of events about resources, in the order of the table of resources. */
export const describedEvents: readonly DescribedEvent[] = resourceWords.flatMap((word) =>
  (declarationOf(word).events ?? []).map((name) => {
    const type = `${word}.${name}`;
    return { type, word, details: detailsOf(type) };
  }),
);
