import { languages } from '../../kernel/languages.ts';
import { flag, integer, oneOf, setting, text, url } from '../../setting.ts';

/** 512 TiB. */
const MOST_STORAGE = 512 * 1024 ** 4;

/** Files, the store that keeps them, and the search in them. */
export const storageSettings = {
  maxUploadBytes: setting('MAX_UPLOAD_BYTES', integer(1, 5 * 1024 ** 3), 'Largest file that may be uploaded.', {
    default: String(50 * 1024 * 1024),
  }),
  maxStorageBytesPerWorkspace: setting(
    'MAX_STORAGE_BYTES_PER_WORKSPACE',
    integer(0, MOST_STORAGE),
    'Bytes that the artifacts of a workspace may hold, with all versions, deleted artifacts and unfinished uploads; ' +
      '0 = no limit. Administrators of the organization may set less for a workspace.',
    { default: String(20 * 1024 ** 3) },
  ),
  maxStorageBytesPerOrganization: setting(
    'MAX_STORAGE_BYTES_PER_ORGANIZATION',
    integer(0, MOST_STORAGE),
    'The same for all workspaces of an organization together. An administrator of the platform may set more or less ' +
      'for an organization.',
    { default: String(100 * 1024 ** 3) },
  ),
  searchLanguage: setting(
    'SEARCH_LANGUAGE',
    oneOf(languages),
    'Language (ISO 639-1) of artifacts whose text is searched, where neither they nor their workspace say one. ' +
      'After a change they are indexed again. Give all processes the same.',
    { defaultText: 'the one that is detected' },
  ),
  searchTimeoutMs: setting(
    'SEARCH_TIMEOUT_MS',
    integer(100, 30_000),
    'Milliseconds that PostgreSQL may take for a search of texts or entities. A search that takes longer is refused ' +
      'with 503; vectors that take longer are left out of it.',
    { default: '2000' },
  ),
  s3Bucket: setting('S3_BUCKET', text, 'Bucket of an S3-compatible store for files. It must exist.', {
    defaultText: 'files are kept in `DATA_DIR/files`',
  }),
  s3Endpoint: setting('S3_ENDPOINT', url('http', 'https'), 'Address of the store, as the service reaches it.', {
    defaultText: "Amazon's own for `S3_REGION`",
  }),
  s3PublicEndpoint: setting(
    'S3_PUBLIC_ENDPOINT',
    url('http', 'https'),
    'Address of the store, as clients reach it. Downloads are then redirected to it.',
    { defaultText: 'none: with `S3_ENDPOINT` set, the service itself serves downloads' },
  ),
  s3Region: setting('S3_REGION', text, 'Region of the bucket.', { default: 'us-east-1' }),
  s3AccessKeyId: setting('S3_ACCESS_KEY_ID', text, 'Key of the store.', {
    defaultText: 'what the AWS SDK finds on the machine',
  }),
  s3SecretAccessKey: setting('S3_SECRET_ACCESS_KEY', text, 'Secret of this key.', {
    defaultText: 'none',
    secret: true,
  }),
  s3ForcePathStyle: setting(
    'S3_FORCE_PATH_STYLE',
    flag,
    'Whether the bucket stands in the path of an address instead of its host name.',
    { defaultText: 'true when `S3_ENDPOINT` is set, else false' },
  ),
} as const;
