import { builder } from '../../graphql/builder.ts';
import type { StoredAttempt } from './attempts.ts';

/** An attempt, of whatever channel: its name is from when there was only one. */
export const SendAttempt = builder.objectRef<StoredAttempt>('WebhookAttempt').implement({
  description: 'An attempt to deliver something.',
  fields: (t) => ({
    attemptedAt: t.field({
      type: 'DateTime',
      authorize: 'inherited',
      description: 'When it began.',
      resolve: ({ at }) => new Date(at),
    }),
    statusCode: t.expose('status_code', {
      type: 'Int',
      nullable: true,
      description: 'The status of the answer. `null` if there was none.',
    }),
    error: t.exposeString('error', {
      nullable: true,
      description:
        'Why there was no answer, an open set: `timeout`, `network`, `tls`, `redirect`, `blocked_address`, ' +
        '`insecure_url`, `too_large`, … or `headers`, if the secret of the headers cannot be used. For an audit ' +
        'stream also `credentials`, if its secret cannot be used, `not_accepted`, if an answer of 2xx says no, and ' +
        '`gone`, if its records were removed before they could be sent.',
    }),
    durationMs: t.exposeInt('duration_ms', { description: 'How long it took, in milliseconds.' }),
    answer: t.exposeString('answer', {
      nullable: true,
      description: 'The beginning of the body of the answer, at most 1,024 characters.',
    }),
  }),
});
