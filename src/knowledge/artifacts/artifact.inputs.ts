import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { TextLanguageEnum } from '../../graphql/shared-enums.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { ArtifactStatus } from './artifact.enums.ts';

/** The largest text of an artifact, in bytes of UTF-8. Larger ones are files. */
const MAX_CONTENT_BYTES = 1024 * 1024;
const YEAR_SECONDS = 31_536_000;

const content = { maxBytes: MAX_CONTENT_BYTES } as const satisfies Constraints;
const ttl = { min: 60, max: YEAR_SECONDS } as const satisfies Constraints;
const mime = {
  pattern: '[a-zA-Z0-9!#$&^_.+-]{1,63}/[a-zA-Z0-9!#$&^_.+-]{1,127}(?: ?; ?[a-zA-Z0-9_-]{1,32}=[a-zA-Z0-9_."-]{1,64})*',
  maxLength: 255,
} as const satisfies Constraints;
const reference = { minLength: 1, maxLength: 255 } as const satisfies Constraints;
const labels = { maxItems: 50, item: { minLength: 1, maxLength: 64 } } as const satisfies Constraints;
const kept = <Bounds extends Constraints>(constraints: Bounds) => ({ ...constraints, notNull: true }) as const;

const TYPE =
  '`text`, `markdown`, `code`, `json`, `html`, `csv`, `image`, `audio`, `video`, `document`, `file`, `other` or ' +
  'another word.';
const TTL = 'Lifetime in seconds, from now on. After that it is hidden from lists, and removed seven days later.';
const LANGUAGE = 'The language of the text, as ISO 639-1: the search finds its words in all their forms.';
const DETECTED = 'Default: the language of the workspace, else the operator’s setting, else the detected language.';
const CONTENT = 'The text, at most 1 MiB in UTF-8.';

export const CreateArtifactInput = builder.inputType('CreateArtifactInput', {
  description: 'A new artifact, or a new version of one.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    content: t.string({ constraints: content, description: CONTENT }),
    artifactType: t.string({
      constraints: bounds.open,
      description: `${TYPE} Default: derived from the media type, else \`text\`.`,
    }),
    mimeType: t.string({ constraints: mime, description: 'The media type. Default: derived from the type.' }),
    threadId: t.id({ constraints: bounds.id, description: 'The thread that it belongs to.' }),
    rootArtifactId: t.id({
      constraints: bounds.id,
      description: 'Makes the content a new version of this artifact, which keeps its id. Needs `artifact:update`.',
    }),
    summary: t.string({ constraints: bounds.description, description: 'A short summary of the content.' }),
    keywords: t.stringList({ constraints: labels, description: 'Words that it is about.' }),
    tags: t.stringList({ constraints: labels, description: 'Free labels.' }),
    metadata: t.field({ type: 'JSONObject', description: 'Free-form data.' }),
    language: t.field({ type: TextLanguageEnum, description: `${LANGUAGE} ${DETECTED}` }),
    source: t.string({
      constraints: bounds.open,
      description: 'Where it comes from: `api` (default), `user`, `agent`, `tool`, `workflow` or another word.',
    }),
    sourceExecutionId: t.string({ constraints: reference, description: 'The execution that produced it.' }),
    sourceStepId: t.string({ constraints: reference, description: 'The step that produced it.' }),
    sourceTool: t.string({ constraints: reference, description: 'The tool that produced it.' }),
    ttlSeconds: t.int({ constraints: ttl, description: `${TTL} Without one, it does not expire.` }),
    isPinned: t.boolean({ description: 'Whether it is kept beyond the end of its lifetime. Default false.' }),
  }),
});

export const UploadArtifactInput = builder.inputType('UploadArtifactInput', {
  description: 'A new artifact, or a new version of one, that is a file.',
  fields: (t) => ({
    file: t.id({ required: true, constraints: bounds.id, description: 'The file that was sent.' }),
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    artifactType: t.string({
      constraints: bounds.open,
      description: `${TYPE} Default: what the bytes look like, or \`file\`.`,
    }),
    threadId: t.id({ constraints: bounds.id, description: 'The thread that it belongs to.' }),
    tags: t.stringList({ constraints: labels, description: 'Free labels.' }),
    metadata: t.field({ type: 'JSONObject', description: 'Free-form data.' }),
    language: t.field({ type: TextLanguageEnum, description: `${LANGUAGE} ${DETECTED}` }),
    ttlSeconds: t.int({ constraints: ttl, description: `${TTL} Without one, it does not expire.` }),
    rootArtifactId: t.id({
      constraints: bounds.id,
      description: 'Makes the file a new version of this artifact, which keeps its id. Needs `artifact:update`.',
    }),
  }),
});

export const UpdateArtifactInput = builder.inputType('UpdateArtifactInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    content: t.string({
      constraints: content,
      description: `${CONTENT} If it differs, it is a new version, in place of the old text or file.`,
    }),
    artifactType: t.string({ constraints: kept(bounds.open), description: TYPE }),
    mimeType: t.string({ constraints: kept(mime), description: 'The media type.' }),
    threadId: t.id({ constraints: bounds.id, description: 'The thread that it belongs to.' }),
    summary: t.string({ constraints: bounds.description, description: 'A short summary of the content.' }),
    keywords: t.stringList({ constraints: kept(labels), description: 'Words that it is about.' }),
    tags: t.stringList({ constraints: kept(labels), description: 'Free labels.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { notNull: true },
      description: 'Replaces the free-form data.',
    }),
    language: t.field({
      type: TextLanguageEnum,
      description: `${LANGUAGE} \`null\` applies that of the workspace, else the setting, else the detected one.`,
    }),
    status: t.field({
      type: ArtifactStatus,
      constraints: { oneOf: ['active', 'archived'], notNull: true },
      description: '`active` or `archived`.',
    }),
    ttlSeconds: t.int({ constraints: ttl, description: `${TTL} \`null\` is no end.` }),
    isPinned: t.boolean({
      constraints: { notNull: true },
      description:
        'Whether it is kept beyond the end of its lifetime. The lifetime starts again when it is no longer pinned.',
    }),
  }),
});

export const RestoreArtifactVersionInput = builder.inputType('RestoreArtifactVersionInput', {
  description: 'A version of an artifact.',
  fields: (t) => ({
    version: t.int({ required: true, constraints: { min: 1 }, description: 'The number of the version.' }),
  }),
});

export const PromoteArtifactInput = builder.inputType('PromoteArtifactInput', {
  description: 'The source that an artifact becomes.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.name, description: 'Name of the source. Default: that of the artifact.' }),
    description: t.string({
      constraints: bounds.description,
      description: 'Description of the source. Default: that of the artifact.',
    }),
  }),
});
