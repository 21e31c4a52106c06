import { describe, expect, it } from 'vitest';
import { describedEvents, eventDetails, noticeDetails } from '../../src/kernel/event-details.ts';
import { declarationOf, resourceWords } from '../../src/kernel/resources.ts';

const formsOf = (details: Record<string, { form: string; isNullable?: true; isOptional?: true }>) =>
  Object.fromEntries(
    Object.entries(details).map(([name, { form, isNullable, isOptional }]) => [
      name,
      `${form}${isNullable ? ' or null' : ''}${isOptional ? ', optional' : ''}`,
    ]),
  );

const progress = {
  augmentation_id: 'string or null',
  status: 'string',
  stages_completed: 'integer or null',
  total_stages: 'integer or null',
};
const ran = { action: 'string', code: 'string', duration_ms: 'integer', status: 'integer or null' };
const expiring = { days_left: 'integer', expires_at: 'time' };
const deployed = {
  environment_id: 'string',
  app_id: 'string',
  release_id: 'string or null',
  previous_release_id: 'string or null',
  action: 'string',
  number: 'integer',
};
const related = { relation_id: 'string', target_entity_id: 'string', relation_type: 'string' };
const status = { status: 'string, optional' };
const member = { role: 'string, optional' };
const someone = { user_id: 'string', username: 'string' };

describe('the data of an event', () => {
  it('has the properties that its consumers rely on, and which of them may be null or absent', () => {
    expect(Object.fromEntries(Object.entries(eventDetails).map(([type, details]) => [type, formsOf(details)]))).toEqual(
      {
        'organization_member.created': member,
        'organization_member.updated': member,
        'workspace_member.created': member,
        'workspace_member.updated': member,
        'workspace.updated': { bucket_status: 'string, optional' },
        'action.fired': { augmentation_id: 'string', scheduled_for: 'time' },
        'execution.started': progress,
        'execution.stage_completed': progress,
        'execution.completed': progress,
        'execution.failed': progress,
        'entity.imported': {
          entities_created: 'integer',
          entities_updated: 'integer',
          relations_created: 'integer',
          relations_updated: 'integer',
        },
        'workspace.imported': {
          namespaces: 'integer',
          environments: 'integer',
          tools: 'integer',
          tool_instances: 'integer',
          entitlements: 'integer',
          apps: 'integer',
        },
        'artifact.version_created': { version: 'integer' },
        'artifact.indexed': { chunk_count: 'integer' },
        'secret.expiring': expiring,
        'tool_action.executed': ran,
        'tool_action.failed': ran,
        'audit_stream.disabled': { reason: 'string' },
        'webhook.disabled': { reason: 'string' },
        'api_token.expiring': expiring,
        'app_token.expiring': expiring,
        'deployment.created': deployed,
        'deployment.rolled_back': deployed,
        'deployment.removed': deployed,
        'model.updated': status,
        'provider_account.updated': status,
        'provider_account.degraded': { status: 'string' },
        'connection.updated': status,
        'connection.needs_reauth': { tool_instance_id: 'string' },
        'entity.related': related,
        'entity.unrelated': related,
        'entity.merged': { into_entity_id: 'string' },
        'recipe.applied': { app_id: 'string', namespace_id: 'string' },
        'notification.created': { category: 'string', type: 'string', priority: 'string' },
        'notification.updated': { status: 'string', count: 'integer, optional' },
        'notification.read': { status: 'string', count: 'integer, optional' },
        'notification.resolved': { count: 'integer' },
        'presence.joined': someone,
        'presence.left': { ...someone, reason: 'string' },
        'presence.viewing': { ...someone, resource_type: 'string', resource_id: 'string', previous: 'names or null' },
      },
    );
  });

  it('of a stream itself too', () => {
    expect(
      Object.fromEntries(Object.entries(noticeDetails).map(([type, details]) => [type, formsOf(details)])),
    ).toEqual({
      connected: {
        connection_id: 'string',
        timeout: 'integer or null',
        presence: 'present',
        last_event_id: 'string or null',
      },
      heartbeat: {},
      resync: {},
      'stream.closing': { reason: 'string' },
    });
  });

  it('is described in words', () => {
    for (const details of [...Object.values(eventDetails), ...Object.values(noticeDetails)])
      for (const { description } of Object.values(details as Record<string, { description: string }>))
        expect(description).toMatch(/\w+.*\.$/);
  });
});

describe('the described events', () => {
  it('are those of all resources, with their details', () => {
    expect(describedEvents.map(({ type }) => type)).toEqual(
      resourceWords.flatMap((word) => (declarationOf(word).events ?? []).map((name) => `${word}.${name}`)),
    );
    expect(describedEvents.find(({ type }) => type === 'secret.expiring')).toEqual({
      type: 'secret.expiring',
      word: 'secret',
      details: eventDetails['secret.expiring'],
    });
    expect(describedEvents.find(({ type }) => type === 'secret.created')?.details).toEqual({});
    const changed = describedEvents.filter(({ details }) => 'fields' in details).map(({ type }) => type);
    expect(changed).toEqual(describedEvents.map(({ type }) => type).filter((type) => type.endsWith('.updated')));
    expect(formsOf(describedEvents.find(({ type }) => type === 'workspace.updated')!.details)).toEqual({
      fields: 'list, optional',
      bucket_status: 'string, optional',
    });
  });

  it('are all that there are details of', () => {
    const types = new Set(describedEvents.map(({ type }) => type));
    expect(Object.keys(eventDetails).filter((type) => !types.has(type))).toEqual([]);
  });
});
