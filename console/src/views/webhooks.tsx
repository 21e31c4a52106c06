import { type ReactNode, useEffect, useState } from 'react';
import {
  CreateWebhookDocument,
  DeleteWebhookDocument,
  RedeliverWebhookDocument,
  RotateWebhookSecretDocument,
  TestWebhookDocument,
  UpdateWebhookDocument,
  type WebhookRowFragment as Webhook,
  WebhookDeliveriesDocument,
  type WebhookDeliveriesQuery,
  WebhookNowDocument,
  WebhooksDocument,
} from '../generated/documents';
import { eventTypes } from '../generated/event-types';
import { useAnswer, useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { askPastCache } from '../ground/client';
import { ConfirmDialog, Dialog } from '../ground/dialog';
import { type FieldSpec, FormDialog, linesOf, type Values } from '../ground/form';
import { type Pages, usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, faultOf, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { ShownOnce } from '../ground/shown-once';
import { Time } from '../ground/time';
import { t } from '../texts';

type Delivery = WebhookDeliveriesQuery['webhookDeliveries']['nodes'][number];
type Open = { kind: 'edit' | 'rotate' | 'deliveries' | 'delete'; webhook: Webhook };

/** How often a log is read again while something of it is under way. */
const PENDING_MS = 1_500;

/** Where the organization and its workspaces send what happens. */
export function Webhooks(): ReactNode {
  const { mayInOrganization } = usePlace();
  return (
    <>
      {mayInOrganization('webhook:read') ? (
        <All />
      ) : (
        <>
          <h1>{t.sections.webhooks}</h1>
          <Empty title={t.forbidden} />
        </>
      )}
    </>
  );
}

function All() {
  const { orgId, mayInOrganization } = usePlace();
  const list = usePages(WebhooksDocument, { orgId }, ({ webhooks }) => webhooks);
  const [open, setOpen] = useState<Open | null>(null);
  const [isCreating, setCreating] = useCreating(mayInOrganization('webhook:create'));
  const [issued, setIssued] = useState<{ name: string; secret: string } | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.webhooks}</h1>
        {mayInOrganization('webhook:create') && (
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            {t.webhooks.create}
          </button>
        )}
      </header>
      <List list={list} onOpen={setOpen} />
      {isCreating && <NewWebhook onIssued={setIssued} onClose={() => setCreating(false)} />}
      {open?.kind === 'edit' && <EditWebhook webhook={open.webhook} onClose={close} />}
      {open?.kind === 'rotate' && <RotateSecret webhook={open.webhook} onIssued={setIssued} onClose={close} />}
      {open?.kind === 'deliveries' && <Deliveries webhook={open.webhook} onClose={close} />}
      {open?.kind === 'delete' && <DeleteWebhook webhook={open.webhook} onClose={close} />}
      {issued && !open && !isCreating && (
        <ShownOnce
          title={t.webhooks.secretOf(issued.name)}
          parts={[{ label: t.webhooks.secret, text: issued.secret }]}
          onClose={() => setIssued(null)}
        />
      )}
    </>
  );
}

function List({ list, onOpen }: { list: Pages<Webhook> & { more: () => void }; onOpen: (open: Open) => void }) {
  const { orgId, mayInOrganization } = usePlace();
  const update = useChange(UpdateWebhookDocument);
  const [problem, setProblem] = useState('');
  const toggle = async ({ id, isEnabled, resourceVersion }: Webhook) => {
    const { error } = await update({ orgId, id, input: { isEnabled: !isEnabled }, expectedVersion: resourceVersion });
    setProblem(error ? faultOf(error).message : '');
  };
  return (
    <>
      <Problem message={problem} />
      <Rows
        label={t.sections.webhooks}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.webhooks.none}>{t.webhooks.noneHint}</Empty>}
        columns={[
          {
            label: t.name,
            cell: (webhook) => (
              <button type="button" className="plain link" onClick={() => onOpen({ kind: 'deliveries', webhook })}>
                {webhook.name}
              </button>
            ),
          },
          { label: t.webhooks.url, isExtra: true, cell: ({ url }) => <code>{url}</code> },
          { label: t.webhooks.of, isExtra: true, cell: ({ workspace }) => workspace?.name ?? t.organization },
          {
            label: t.webhooks.eventTypes,
            isExtra: true,
            cell: (webhook) => <code>{webhook.eventTypes.map(t.webhooks.event).join(', ')}</code>,
          },
          { label: t.status, cell: (webhook) => <Status webhook={webhook} /> },
          {
            label: '',
            cell: (webhook) => (
              <span className="actions">
                {mayInOrganization('webhook:update') && (
                  <>
                    <button
                      type="button"
                      className="small"
                      aria-label={(webhook.isEnabled ? t.webhooks.toggleOff : t.webhooks.toggleOn)(webhook.name)}
                      onClick={() => void toggle(webhook)}
                    >
                      {webhook.isEnabled ? t.webhooks.turnOff : t.webhooks.turnOn}
                    </button>
                    <button
                      type="button"
                      className="small"
                      aria-label={t.webhooks.editOne(webhook.name)}
                      onClick={() => onOpen({ kind: 'edit', webhook })}
                    >
                      {t.edit}
                    </button>
                    <button
                      type="button"
                      className="small"
                      aria-label={t.webhooks.rotateOf(webhook.name)}
                      onClick={() => onOpen({ kind: 'rotate', webhook })}
                    >
                      {t.webhooks.rotate}
                    </button>
                  </>
                )}
                {mayInOrganization('webhook:delete') && (
                  <button
                    type="button"
                    className="small danger"
                    aria-label={t.webhooks.deleteOne(webhook.name)}
                    onClick={() => onOpen({ kind: 'delete', webhook })}
                  >
                    {t.delete}
                  </button>
                )}
              </span>
            ),
          },
        ]}
      />
    </>
  );
}

function Status({ webhook: { isEnabled, disabledReason, failingSince } }: { webhook: Webhook }) {
  if (disabledReason) return <span className="tag bad">{t.webhooks.reasons[disabledReason]}</span>;
  if (!isEnabled) return <span className="tag">{t.webhooks.disabled}</span>;
  return <span className={failingSince ? 'tag warn' : 'tag ok'}>{t.webhooks.enabled}</span>;
}

const optionsOf = (names: readonly string[]) => names.map((name) => ({ value: name, label: t.webhooks.event(name) }));
const everyType = [...new Set([...eventTypes.workspace, ...eventTypes.organization])].sort();

const fieldsOf = (types: readonly string[], webhook?: Webhook): FieldSpec[] => [
  { name: 'name', label: t.name, isRequired: true, value: webhook?.name ?? '' },
  { name: 'url', label: t.webhooks.url, isRequired: true, value: webhook?.url ?? '' },
  { name: 'description', label: t.description, kind: 'lines', value: webhook?.description ?? '' },
  {
    name: 'eventTypes',
    label: t.webhooks.eventTypes,
    kind: 'choices',
    hint: t.webhooks.eventTypesHint,
    choices: optionsOf(types),
    value: webhook?.eventTypes.join('\n') ?? '',
  },
];

function NewWebhook({
  onIssued,
  onClose,
}: {
  onIssued: (issued: { name: string; secret: string }) => void;
  onClose: () => void;
}) {
  const { orgId, workspaceId } = usePlace();
  const create = useChange(CreateWebhookDocument);
  const of: FieldSpec = {
    name: 'workspaceId',
    label: t.webhooks.of,
    kind: 'choice',
    isRequired: true,
    hint: t.webhooks.ofHint,
    value: workspaceId,
    choices: [
      { value: workspaceId, label: t.webhooks.here },
      { value: 'organization', label: t.organization },
    ],
  };
  const [name, url, description, types] = fieldsOf(everyType);
  return (
    <FormDialog
      title={t.webhooks.create}
      action={t.create}
      onClose={onClose}
      fields={[name!, url!, of, types!, description!]}
      onSave={async (values) => {
        const result = await create({
          orgId,
          input: {
            name: values.name ?? '',
            url: values.url ?? '',
            eventTypes: linesOf(values.eventTypes),
            ...(values.workspaceId === workspaceId && { workspaceId }),
            ...(values.description && { description: values.description }),
          },
        });
        const made = result.data?.createWebhook;
        if (made) onIssued({ name: made.webhook.name, secret: made.secret });
        return result;
      }}
    />
  );
}

const valuesOf = ({ name, url, description, eventTypes: types }: Webhook): Values => ({
  name,
  url,
  description: description ?? '',
  eventTypes: types.join('\n'),
});

/** What a form changes: who sets an address or types is whom the webhook acts for. */
function changesOf(before: Values, after: Values) {
  const isChanged = (name: string) => before[name] !== after[name];
  return {
    ...(isChanged('name') && { name: after.name ?? '' }),
    ...(isChanged('url') && { url: after.url ?? '' }),
    ...(isChanged('description') && { description: after.description || null }),
    ...(isChanged('eventTypes') && { eventTypes: linesOf(after.eventTypes) }),
  };
}

function EditWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { orgId } = usePlace();
  const update = useChange(UpdateWebhookDocument);
  const [seen, setSeen] = useState(webhook);
  const { id } = webhook;
  const types = webhook.workspaceId ? eventTypes.workspace : eventTypes.organization;
  return (
    <FormDialog
      title={t.webhooks.editOne(webhook.name)}
      action={t.save}
      onClose={onClose}
      fields={fieldsOf(types, webhook)}
      onSave={(values) =>
        update({ orgId, id, input: changesOf(valuesOf(seen), values), expectedVersion: seen.resourceVersion })
      }
      conflictOf={async () => {
        const { data } = await askPastCache(WebhookNowDocument, { orgId, id });
        if (!data) return null;
        setSeen(data.webhook);
        return valuesOf(data.webhook);
      }}
    />
  );
}

function RotateSecret({
  webhook: { id, name },
  onIssued,
  onClose,
}: {
  webhook: Webhook;
  onIssued: (issued: { name: string; secret: string }) => void;
  onClose: () => void;
}) {
  const { orgId } = usePlace();
  const rotate = useChange(RotateWebhookSecretDocument);
  return (
    <FormDialog
      title={t.webhooks.rotateOf(name)}
      action={t.webhooks.rotate}
      onClose={onClose}
      fields={[]}
      onSave={async () => {
        const result = await rotate({ orgId, id });
        if (result.data) onIssued({ name, secret: result.data.rotateWebhookSecret.secret });
        return result;
      }}
    >
      <p>{t.webhooks.rotateHint}</p>
    </FormDialog>
  );
}

function DeleteWebhook({ webhook: { id, name }, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { orgId } = usePlace();
  const remove = useChange(DeleteWebhookDocument);
  return (
    <ConfirmDialog
      title={t.webhooks.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={() => remove({ orgId, id })}
    >
      <p>{t.webhooks.deleteHint}</p>
    </ConfirmDialog>
  );
}

/** What was sent, what was answered, and how to send it again. */
function Deliveries({ webhook: { id, name }, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { orgId, mayInOrganization } = usePlace();
  const { data, error, again } = useAnswer(WebhookDeliveriesDocument, { orgId, id });
  const test = useChange(TestWebhookDocument);
  const redeliver = useChange(RedeliverWebhookDocument);
  const [problem, setProblem] = useState('');
  const nodes = data?.webhookDeliveries.nodes;
  const isPending = nodes?.some(({ status }) => status === 'pending') ?? false;
  useEffect(() => {
    // what cannot be read now is read again by itself, or by the reader
    if (!isPending || error) return;
    const timer = setInterval(again, PENDING_MS);
    return () => clearInterval(timer);
  }, [isPending, error, again]);
  const run = async (change: ReturnType<typeof test> | ReturnType<typeof redeliver>) => {
    const { error: refusal } = await change;
    setProblem(refusal ? faultOf(refusal).message : '');
  };
  const mayUpdate = mayInOrganization('webhook:update');
  return (
    <Dialog title={t.webhooks.deliveriesOf(name)} onClose={onClose} isWide>
      <Problem error={error} message={problem || undefined} />
      {!nodes && !error && <Loading />}
      {nodes?.length === 0 && <p className="quiet">{t.webhooks.noDeliveries}</p>}
      <ul className="plain" aria-live="polite">
        {nodes?.map((delivery) => (
          <li key={delivery.id}>
            <DeliveryDetails
              delivery={delivery}
              onRedeliver={mayUpdate ? () => void run(redeliver({ orgId, webhookId: id, id: delivery.id })) : null}
            />
          </li>
        ))}
      </ul>
      {data?.webhookDeliveries.pageInfo.hasNextPage && <p className="quiet">{t.first(nodes?.length ?? 0)}</p>}
      <footer>
        <button type="button" onClick={again}>
          {t.refresh}
        </button>
        {mayUpdate && (
          <button type="button" className="primary" onClick={() => void run(test({ orgId, id }))}>
            {t.webhooks.test}
          </button>
        )}
      </footer>
    </Dialog>
  );
}

const tags = { delivered: 'tag ok', failed: 'tag bad', pending: 'tag warn' };

function DeliveryDetails({ delivery, onRedeliver }: { delivery: Delivery; onRedeliver: (() => void) | null }) {
  const { eventType, status, tries, createdAt, body, attempts, eventId } = delivery;
  const event = t.webhooks.event(eventType);
  return (
    <details>
      <summary>
        <code>{event}</code> <span className={tags[status]}>{t.webhooks.status[status]}</span>{' '}
        <span className="quiet">
          {t.webhooks.tried(tries)} · <Time at={createdAt} />
        </span>
      </summary>
      <h3>{t.webhooks.sent}</h3>
      <p className="quiet">
        webhook-id: <code>{eventId}</code>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
      {body && <pre tabIndex={0}>{body}</pre>}
      {attempts.map((attempt) => (
        <section key={attempt.attemptedAt}>
          <h3>
            {t.webhooks.answer} <span className="tag">{attempt.statusCode ?? attempt.error}</span>{' '}
            <small className="quiet">
              {attempt.durationMs} ms · <Time at={attempt.attemptedAt} />
            </small>
          </h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
          {attempt.answer ? <pre tabIndex={0}>{attempt.answer}</pre> : <p className="quiet">{t.webhooks.noAnswer}</p>}
        </section>
      ))}
      {onRedeliver && status !== 'pending' && (
        <button type="button" className="small" onClick={onRedeliver}>
          {t.webhooks.redeliver}
        </button>
      )}
    </details>
  );
}
