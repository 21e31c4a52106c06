import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Action, createPipeline } from '../augmentations/pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const DAILY = { kind: 'scheduled', cron: '30 8 * * *', timezone: 'Europe/Berlin' };

test('makes a scheduled action, which knows when it fires; another kind ends its times', async () => {
  const { who, url, appId, augmentation, action } = await createPipeline(app);
  const { augmentation_id } = await augmentation();
  const { status, body } = await action({ ...DAILY, augmentation_id, input: { aB: 1 } });
  expect(status).toBe(201);
  expect(body).toEqual({
    action_id: expect.stringMatching(/^actn_/),
    org_id: who.orgId,
    workspace_id: who.workspaceId,
    app_id: appId,
    name: 'Report',
    description: null,
    kind: 'scheduled',
    enabled: true,
    augmentation_id,
    trigger_event: null,
    cron: '30 8 * * *',
    timezone: 'Europe/Berlin',
    input: { aB: 1 },
    next_fire_at: expect.any(String),
    last_fired_at: null,
    created_by: who.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const local = new Date(body.next_fire_at!).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' });
  expect(local).toBe('08:30:00');
  const one = `${url}/actions/${body.action_id}`;
  const updated_at = expect.any(String) as string;
  expect((await who.call('PATCH', one, { name: 'Daily' })).body).toEqual({ ...body, name: 'Daily', updated_at });
  const off = await who.call<Action>('PATCH', one, { enabled: false });
  expect(off.body).toMatchObject({ enabled: false, next_fire_at: null, cron: '30 8 * * *' });
  const on = await who.call<Action>('PATCH', one, { enabled: true, timezone: null });
  expect(on.body).toMatchObject({ timezone: 'UTC', next_fire_at: expect.stringMatching(/T08:30:00.000Z$/) });
  const trigger = await who.call<Action>('PATCH', one, { kind: 'trigger', trigger_event: 'artifact.*' });
  expect(trigger.body).toMatchObject({
    kind: 'trigger',
    trigger_event: 'artifact.*',
    cron: null,
    timezone: null,
    next_fire_at: null,
  });
  expect(await who.call('DELETE', one)).toEqual({ status: 204, body: null });
});

const RULES: [what: string, given: object, loc: string, msg: string][] = [
  ['a scheduled action without a time', { kind: 'scheduled' }, 'cron', 'an action of this kind requires it'],
  ['a trigger without an event', { kind: 'trigger' }, 'trigger_event', 'an action of this kind requires it'],
  ['a manual action with a time', { cron: '* * * * *' }, 'cron', `only an action of the kind 'scheduled' may have it`],
  [
    'a manual action with a time zone',
    { timezone: 'UTC' },
    'timezone',
    `only an action of the kind 'scheduled' may have it`,
  ],
  [
    'a scheduled action with an event',
    { ...DAILY, trigger_event: 'app.created' },
    'trigger_event',
    `only an action of the kind 'trigger' may have it`,
  ],
  [
    'an event that there is not',
    { kind: 'trigger', trigger_event: 'app.eaten' },
    'trigger_event',
    `'app.eaten' is not an event type`,
  ],
  [
    'an unknown time zone',
    { ...DAILY, timezone: 'Europe/Atlantis' },
    'timezone',
    `'Europe/Atlantis' is not a time zone of the IANA database`,
  ],
  [
    'an offset for a time zone',
    { ...DAILY, timezone: '+02:00' },
    'timezone',
    `'+02:00' is not a time zone of the IANA database`,
  ],
  [
    'an hour that there is not',
    { ...DAILY, cron: '0 24 * * *' },
    'cron',
    'the expression is not valid: minute, hour, day of the month, month, day of the week',
  ],
  ['a day that never comes', { ...DAILY, cron: '0 0 30 2 *' }, 'cron', 'the expression matches no time'],
];

test.each(RULES)('refuses %s', async (_what, given, field, error) => {
  const { augmentation, action } = await createPipeline(app);
  const { augmentation_id } = await augmentation();
  const { status, body } = await action({ ...given, augmentation_id });
  expect(status).toBe(422);
  expect(body).toMatchObject({ detail: [{ loc: ['body', field], msg: `Value error, ${error}`, type: 'value_error' }] });
});

test.each(['* * * *', '* * * * * *', '@daily', '2026-12-01T00:00:00', '', '* * * * *\n', 'x'.repeat(200)])(
  'refuses the expression %j',
  async (cron) => {
    const { augmentation, action } = await createPipeline(app);
    const { augmentation_id } = await augmentation();
    const { status, body } = await action({ ...DAILY, cron, augmentation_id });
    expect(status).toBe(422);
    expect(body).toMatchObject({ detail: [{ loc: ['body', 'cron'] }] });
  },
);
