import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { namespaceArgs } from '../../graphql/place-args.ts';
import { Artifact } from '../artifacts/artifact.graph.ts';
import { UploadArtifactInput } from '../artifacts/artifact.inputs.ts';
import type { DownloadLink as Link } from './download.service.ts';
import type { Upload as UploadRow } from './upload.service.ts';

const DownloadLink = builder.objectRef<Link>('DownloadLink').implement({
  description: 'A link under which anyone can download an artifact for a while.',
  fields: (t) => ({
    artifactId: t.exposeID('artifactId', { description: 'The artifact.' }),
    downloadUrl: t.exposeString('downloadUrl', {
      description:
        'The absolute URL, for `GET` and `HEAD`, with `Range`. It always leads to this version, and ends when the ' +
        'artifact is deleted or the user who asked for it may no longer read it.',
    }),
    fileName: t.exposeString('fileName', { description: 'The name that the file is saved under.' }),
    contentType: t.exposeString('contentType', { description: 'The media type.' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'For how many seconds the link is valid.' }),
    fileSizeBytes: t.expose('fileSizeBytes', { type: 'Int53', description: 'The size in bytes.' }),
  }),
});

builder.objectField(Artifact, 'downloadLink', (t) =>
  t.field({
    type: DownloadLink,
    description: 'A new link to download this version: its file, or its text as a file.',
    authorize: 'inherited',
    args: {
      expiresIn: t.arg.int({
        required: true,
        defaultValue: 3_600,
        constraints: { min: 60, max: 86_400 },
        description: 'For how many seconds the link is valid.',
      }),
    },
    resolve: (artifact, { expiresIn }, { caller, services }) => services.downloads.linkOf(caller, artifact, expiresIn),
  }),
);

const Upload = builder.objectRef<UploadRow>('Upload').implement({
  description: 'A URL to upload a file to. `finishUpload` makes the file an artifact.',
  fields: (t) => ({
    file: t.exposeID('file', { description: 'The id of the file, for `finishUpload`.' }),
    url: t.exposeString('url', {
      description:
        'Takes the bytes of the file without further authentication: as the body of one `PUT`, or in pieces that can ' +
        'be resumed, by the protocol tus 1.0.0 (`HEAD`, `PATCH`).',
    }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'When the URL expires.' }),
    maxBytes: t.expose('maxBytes', { type: 'Int53', description: 'The size of the largest file.' }),
    receivedBytes: t.expose('receivedBytes', {
      type: 'Int53',
      description:
        'How many bytes of the file have arrived already: 0, unless an earlier upload goes on. If it is all of them, ' +
        'only `finishUpload` is missing.',
    }),
  }),
});

const CreateUploadInput = builder.inputType('CreateUploadInput', {
  description: 'The file that will be sent.',
  fields: (t) => ({
    fileName: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1_024 },
      description: 'Its name. Folders and invisible characters are removed.',
    }),
    contentType: t.string({
      constraints: { maxLength: 255 },
      description: 'The media type that the client claims. The bytes decide, except between kinds of text.',
    }),
    sizeBytes: t.field({
      type: 'Int53',
      constraints: { min: 1 },
      description:
        'Its size in bytes. Without it, a client that uploads in pieces must give the size with one of the pieces.',
    }),
    sha256: t.string({
      constraints: { pattern: '[0-9a-fA-F]{64}' },
      description: 'Its SHA-256 in hexadecimal. A file with another checksum is refused, and nothing of it is kept.',
    }),
    resume: t.boolean({
      description:
        'Whether an unfinished upload of the same user in the namespace goes on, if it was announced with this name, ' +
        'size and SHA-256, which must be given. The URL then ends when the first one would have. For one client at a ' +
        'time: an upload to which a part was begun in the last five seconds is left to who sends it. Of several, the ' +
        'one that was begun last goes on. Leave it out after an upload was refused for good.',
    }),
  }),
});

builder.mutationFields((t) => ({
  createUpload: t.field({
    type: Upload,
    description:
      'Creates a URL to upload one file to, valid for a day. `finishUpload` then makes the file an artifact.',
    authorize: { workspace: 'artifact:create', in: 'namespace' },
    args: { ...namespaceArgs(), ...inputArg(CreateUploadInput, 'The file.') },
    resolve: ({ namespace }, { input }, { caller, services }) => services.uploads.create(caller, namespace, input),
  }),
  finishUpload: t.field({
    type: Artifact,
    description:
      'Makes an uploaded file an artifact, or with `rootArtifactId` a new version of an artifact. An unused file ' +
      'is removed two hours after its `PUT`, or when its URL expires if it was uploaded in pieces.',
    authorize: { workspace: 'artifact:create', in: 'namespace' },
    mayEmit: ['artifact.created', 'artifact.updated', 'artifact.version_created'],
    args: { ...namespaceArgs(), ...inputArg(UploadArtifactInput, 'The artifact.') },
    resolve: ({ namespace }, { input }, { caller, services, receivedFile }) =>
      services.uploads.finish(caller, namespace, input, receivedFile),
  }),
}));
