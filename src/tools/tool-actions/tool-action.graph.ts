import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { idArg, namespaceArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { endUserId } from '../connections/end-user.ts';
import type { ResultFormat } from './action-answer.ts';
import type { PagesEnd, ReadPages } from './page-items.ts';
import { MAX_PAGES } from './paged-calls.ts';
import type { ShownRequest } from './shown-request.ts';
import type { StreamedPage } from './streamed-pages.ts';
import type { ToolActionResult as ResultRow } from './tool-action-result.ts';
import type { NotKept, WholeResult } from './whole-results.ts';

const ExecuteToolActionInput = builder.inputType('ExecuteToolActionInput', {
  description: 'The action to run, and its parameters.',
  fields: (t) => ({
    action: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 128 },
      description: 'The name of an action of the instance.',
    }),
    parameters: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: 256 * 1024, sensitive: true },
      description: 'Values of its parameters. Other names are refused.',
    }),
    dryRun: t.boolean({ description: 'Shows the request and sends nothing. Default false.' }),
    confirmation: t.string({
      constraints: { minLength: 1, maxLength: 128, sensitive: true },
      description: 'The `confirmation` of the first answer, for an action that needs one.',
    }),
    endUserId: t.string({
      constraints: endUserId,
      description:
        'Runs it with the connection of this end user, and with no other: without such a connection it is a 404.',
    }),
    maxPages: t.int({
      constraints: { min: 1, max: MAX_PAGES },
      description:
        'Reads a list page by page, as the `pagination` of the action says: at most so many pages, and no more than ' +
        'its own `max_pages`. The result is the list of all items. Without it, one request is sent.',
    }),
  }),
});

const ToolResultFormat = wordEnum<ResultFormat>('ToolResultFormat', 'How the result of an action is written.', {
  json: 'Any JSON.',
  text: 'A text: of an answer that is no JSON, or the beginning of JSON that is too large.',
  base64: 'A text in base64: of an answer that is no text.',
  none: 'There is no result.',
});

const ToolPagesEnd = wordEnum<PagesEnd>('ToolPagesEnd', 'Why no further page of a list was read.', {
  end: 'The provider has no more.',
  max_pages: 'There were as many pages as the call, or the action, allows.',
  items: 'There were 10,000 items, or 100,000 in a stream.',
  size: 'The items have 16 MiB, or 32 MiB in a stream.',
  time: 'Two minutes were over.',
  rate_limit: 'The `rate_limit_group` of the action has to wait.',
  repeated: 'The provider gave the same page again.',
  elsewhere: 'The next page is not on the host of the first one.',
  failed: 'A page could not be read.',
  left: 'The client of the stream has left. It is only in records: nobody is there to read it.',
});

const ToolActionPages = builder.objectRef<ReadPages>('ToolActionPages').implement({
  description: 'How a list was read page by page.',
  fields: (t) => ({
    count: t.exposeInt('count', { description: 'The number of pages that were read.' }),
    items: t.exposeInt('items', {
      description: 'The number of items that they gave. A cut result has the first of them.',
    }),
    hasMore: t.exposeBoolean('hasMore', { description: 'Whether there is more, or may be.' }),
    ended: t.expose('ended', { type: ToolPagesEnd, description: 'Why no further page was read.' }),
  }),
});

const ToolActionRequest = builder.objectRef<ShownRequest>('ToolActionRequest').implement({
  description: 'What an action sends, with a mask in place of everything that is secret.',
  fields: (t) => ({
    method: t.exposeString('method', { description: 'The HTTP method.' }),
    url: t.exposeString('url', { description: 'The whole address.' }),
    headers: t.expose('headers', { type: 'StringMap', description: 'The headers.' }),
    body: t.exposeString('body', { nullable: true, description: 'The body. `null` if there is none.' }),
  }),
});

const ToolResultNotKept = wordEnum<NotKept>('ToolResultNotKept', 'Why the whole of a result is not kept.', {
  secret: 'It is no text, and a credential is in it.',
  storage_full: 'The workspace or its organization may not hold more.',
  too_large: 'It is larger than a file may be.',
  unavailable: 'The store of files did not take it.',
});

const ToolWholeResult = builder.objectRef<WholeResult>('ToolWholeResult').implement({
  description: 'The whole of a result that is cut, without any credential. It is kept for a day.',
  fields: (t) => ({
    downloadUrl: t.exposeString('downloadUrl', {
      nullable: true,
      description:
        'Where it is. Clients who have the address can download it, as long as the user who ran the action may run ' +
        'it. `null` if it is not kept.',
    }),
    expiresAt: t.expose('expiresAt', optionalTime('When it is removed.')),
    fileName: t.exposeString('fileName', { nullable: true, description: 'The name of the file.' }),
    contentType: t.exposeString('contentType', { nullable: true, description: 'The media type of the file.' }),
    sizeBytes: t.exposeInt('sizeBytes', { description: 'Its size. The limit of storage counts it.' }),
    notKept: t.expose('notKept', {
      type: ToolResultNotKept,
      nullable: true,
      description: 'Why it is not kept. `null` if it is.',
    }),
  }),
});

const ToolActionResult = builder.objectRef<ResultRow>('ToolActionResult').implement({
  description: 'How an action ended. No credential is in it.',
  fields: (t) => ({
    toolInstanceId: t.exposeID('toolInstanceId', { description: 'The instance.' }),
    action: t.exposeString('action', { description: 'The name of the action.' }),
    success: t.exposeBoolean('success', {
      description: 'Whether the provider answered with a success that the action promises, or nothing had to be sent.',
    }),
    code: t.exposeString('code', {
      description:
        'For programs: `ok`, `dry_run`, `confirmation_required`, `nothing_to_call`, `http_404` and other statuses, ' +
        '`schema_mismatch`, `next_page_elsewhere`, `needs_reauth`, `expired`, `timeout`, `network`, ' +
        '`blocked_address`, …; of tools of MCP servers also `tool_error`, `rpc_error`, `input_required`, ' +
        '`protocol_error`.',
    }),
    message: t.exposeString('message', { description: 'A sentence for people.' }),
    request: t.field({
      type: ToolActionRequest,
      nullable: true,
      authorize: 'inherited',
      description: 'What would be sent. `null` if it was sent, or if the action sends nothing.',
      resolve: ({ request }) => request,
    }),
    confirmation: t.exposeString('confirmation', {
      nullable: true,
      description:
        'Send it with the same call to run an action that needs confirmation. It works once, for five minutes, for ' +
        'the same caller. `null` if nothing has to be confirmed.',
    }),
    confirmationExpiresAt: t.expose('confirmationExpiresAt', optionalTime('When the confirmation expires.')),
    status: t.exposeInt('status', { nullable: true, description: 'The status that the provider answered.' }),
    headers: t.expose('headers', { type: 'StringMap', description: 'The headers of the answer that matter.' }),
    format: t.expose('format', { type: ToolResultFormat, description: 'How the result is written.' }),
    result: t.expose('result', {
      type: 'JSON',
      nullable: true,
      description: 'What the action gives: the value at the result path of the answer. At most 256 KiB.',
    }),
    truncated: t.exposeBoolean('truncated', { description: 'Whether the result is cut, or left out.' }),
    wholeResult: t.field({
      type: ToolWholeResult,
      nullable: true,
      authorize: 'inherited',
      description: 'The whole of a result that is cut; of pages, the list of all items. `null` if it is not cut.',
      resolve: ({ wholeResult }) => wholeResult,
    }),
    sizeBytes: t.exposeInt('sizeBytes', {
      description: 'The size of the body of the answer. Of one that is too large (`too_large`), the limit.',
    }),
    excerpt: t.exposeString('excerpt', {
      nullable: true,
      description: 'The beginning of the body of a refusal. `null` if the provider did not refuse, or said nothing.',
    }),
    pages: t.field({
      type: ToolActionPages,
      nullable: true,
      authorize: 'inherited',
      description: 'How the pages were read. `null` without `maxPages`.',
      resolve: ({ pages }) => pages,
    }),
    attempts: t.exposeInt('attempts', { description: 'How often the request was sent.' }),
    durationMs: t.exposeInt('durationMs', { description: 'Time of the call in milliseconds, with all attempts.' }),
  }),
});
refersTo(ToolActionResult, { toolInstanceId: 'tool_instance' });

const inputOf = () =>
  builder.args((t) => ({
    input: t.field({
      type: ExecuteToolActionInput,
      required: true,
      description: 'The action to run, and its parameters.',
    }),
  }));

const StreamToolActionInput = builder.inputType('StreamToolActionInput', {
  description: 'The list to read, and the parameters of its action.',
  fields: (t) => ({
    action: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 128 },
      description: 'The name of an action of the instance that has a `pagination` and changes nothing.',
    }),
    parameters: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: 256 * 1024, sensitive: true },
      description: 'Values of its parameters. Other names are refused.',
    }),
    endUserId: t.string({
      constraints: endUserId,
      description:
        'Runs it with the connection of this end user, and with no other: without such a connection it is a 404.',
    }),
    confirmation: t.string({
      constraints: { minLength: 1, maxLength: 128, sensitive: true },
      description: 'The `confirmation` of the first answer, for an action that needs one.',
    }),
    maxPages: t.int({
      constraints: { min: 1, max: MAX_PAGES },
      description: `At most so many pages, and no more than its own \`max_pages\`. Default ${MAX_PAGES}.`,
    }),
  }),
});

const ToolActionPage = builder.objectRef<StreamedPage>('ToolActionPage').implement({
  description: 'A page of a list, or how the reading has ended: the last message, which has no page.',
  fields: (t) => ({
    page: t.exposeInt('page', { nullable: true, description: 'The number of the page, from 1. `null` at the end.' }),
    items: t.expose('items', {
      type: 'JSON',
      nullable: true,
      description: 'The list of the items of the page that no earlier page had. `null` at the end.',
    }),
    end: t.field({
      type: ToolActionResult,
      nullable: true,
      authorize: 'inherited',
      description: 'How it ended, without the items. `null` with a page.',
      resolve: ({ end }) => end,
    }),
  }),
});

const streamArgs = () =>
  builder.args((t) => ({
    input: t.field({
      type: StreamToolActionInput,
      required: true,
      description: 'The list to read, and the parameters of its action.',
    }),
  }));

const STREAM =
  'Each page comes as soon as it was read, and the next one is asked for once it was taken. The last message says ' +
  'how it ended, whatever the provider did: `end`. At most two minutes, 100,000 items, 32 MiB, and four streams of a ' +
  'user in an organization. A client that leaves ends the reading.';

const STREAMED = { action: 'execute', resourceType: 'tool_instance', byResolver: true } as const;

builder.subscriptionFields((t) => ({
  toolActionPages: t.field({
    type: ToolActionPage,
    description: `Reads a list of a tool instance page by page with the connection of its workspace. ${STREAM}`,
    authorize: { workspace: 'tool_instance:execute' },
    activity: STREAMED,
    args: { ...workspaceArgs(), ...idArg('The instance.'), ...streamArgs() },
    subscribe: ({ workspace }, { id, input }, { caller, services }) =>
      services.toolActions.stream(caller, workspace, id, input),
    resolve: (page: StreamedPage) => page,
  }),
  namespaceToolActionPages: t.field({
    type: ToolActionPage,
    description:
      'Reads a list of a tool instance page by page with the connection of a namespace, or that of its workspace if ' +
      `the namespace has none. ${STREAM}`,
    authorize: { workspace: 'tool_instance:execute', in: 'namespace' },
    activity: STREAMED,
    args: { ...namespaceArgs(), ...idArg('The instance.'), ...streamArgs() },
    subscribe: ({ namespace }, { id, input }, { caller, services }) =>
      services.toolActions.stream(caller, namespace, id, input),
    resolve: (page: StreamedPage) => page,
  }),
}));

const EXECUTE =
  'Arguments that the action does not accept are an error, and so is an instance that cannot run; whatever the ' +
  'provider does is a result, of an answer of at most 16 MiB. An action that needs confirmation first answers what ' +
  'it would send, and a `confirmation`. At most 600 executions a minute for each `rate_limit_group` of an instance.';

builder.mutationFields((t) => ({
  executeToolAction: t.field({
    type: ToolActionResult,
    description: `Runs an action of a tool instance with the connection of its workspace. ${EXECUTE}`,
    authorize: { workspace: 'tool_instance:execute' },
    activity: { action: 'execute', resourceType: 'tool_instance', byResolver: true },
    mayEmit: ['tool_action.executed', 'tool_action.failed'],
    args: { ...workspaceArgs(), ...idArg('The instance.'), ...inputOf() },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.toolActions.execute(caller, workspace, id, input),
  }),
  executeNamespaceToolAction: t.field({
    type: ToolActionResult,
    description:
      'Runs an action of a tool instance with the connection of a namespace, or that of its workspace if the ' +
      `namespace has none. ${EXECUTE}`,
    authorize: { workspace: 'tool_instance:execute', in: 'namespace' },
    activity: { action: 'execute', resourceType: 'tool_instance', byResolver: true },
    mayEmit: ['tool_action.executed', 'tool_action.failed'],
    args: { ...namespaceArgs(), ...idArg('The instance.'), ...inputOf() },
    resolve: ({ namespace }, { id, input }, { caller, services }) =>
      services.toolActions.execute(caller, namespace, id, input),
  }),
}));
