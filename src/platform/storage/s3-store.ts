import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { Disk } from 'flydrive';
import { S3Driver } from 'flydrive/drivers/s3';
import type { S3Config } from '../../config.ts';
import { Spool, type SpooledPart } from './spool.ts';
import { type ByteRange, MissingObject, type PresignedGet, type Store, type StoredObject } from './store.ts';

/** S3 takes parts from 5 MiB, at most 10,000 of them: enough for 5 GiB many times over. */
const PART_BYTES = 8 * 1024 * 1024;
const ATTEMPTS = 3;
/** An upload in parts that is older belongs to nobody any more. */
const ABANDONED_MS = 24 * 3_600_000;

/** A bucket of an S3-compatible store. */
export class S3Store implements Store {
  readonly #bucket: string;
  readonly #spoolDir: string;
  readonly #client: S3Client;
  readonly #disk: Disk;
  /** Signs addresses that clients can reach. */
  readonly #public: { client: S3Client; disk: Disk } | null;

  constructor(config: S3Config, spoolDir: string) {
    this.#bucket = config.bucket;
    this.#spoolDir = spoolDir;
    this.#client = clientOf(config, config.endpoint);
    this.#disk = diskOf(this.#client, config.bucket);
    // without an endpoint it is Amazon's own, which is public
    const isReachable = config.publicEndpoint !== undefined || config.endpoint === undefined;
    const client = isReachable ? clientOf(config, config.publicEndpoint) : null;
    this.#public = client && { client, disk: diskOf(client, config.bucket) };
  }

  // not flydrive's own: it sends streams of unknown length, which S3 refuses
  async put(key: string, content: AsyncIterable<Buffer>): Promise<void> {
    const spool = await Spool.open(this.#spoolDir, content, PART_BYTES);
    try {
      const first = await spool.fill();
      if (first.isLast) await this.#putWhole(key, spool, first);
      else await this.#putParts(key, spool, first);
    } catch (error) {
      // the answer may be all that was lost; if this fails as well, the service removes the object later
      await this.remove(key).catch(() => undefined);
      throw error;
    } finally {
      await spool.close();
    }
  }

  async read(key: string, range?: ByteRange): Promise<Readable> {
    try {
      const Range = range && `bytes=${range.start}-${range.end}`;
      const { Body } = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: key, Range }));
      return Body as Readable;
    } catch (error) {
      throw statusOf(error) === 404 ? new MissingObject(key, error) : error;
    }
  }

  async exists(key: string): Promise<boolean> {
    return this.#disk.exists(key);
  }

  async remove(key: string): Promise<void> {
    await this.#disk.delete(key);
  }

  async makeFolder(): Promise<void> {
    // a folder is only a part of the keys
  }

  async removeFolder(folder: string): Promise<void> {
    for await (const { key } of this.#list(`${folder}/`)) await this.remove(key);
  }

  list(): AsyncIterable<StoredObject> {
    return this.#list('');
  }

  async presign(key: string, { expiresIn, ...shown }: PresignedGet): Promise<string | null> {
    return this.#public ? this.#public.disk.getSignedUrl(key, { expiresIn: `${expiresIn}s`, ...shown }) : null;
  }

  async sweep(): Promise<number> {
    let swept = 0;
    let at: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | null = {};
    while (at) {
      const page: ListMultipartUploadsCommandOutput = await this.#client.send(
        new ListMultipartUploadsCommand({ Bucket: this.#bucket, ...at }),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (!Initiated || Initiated.getTime() > Date.now() - ABANDONED_MS) continue;
        await this.#client.send(new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId }));
        swept++;
      }
      at = page.IsTruncated ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker } : null;
    }
    return swept;
  }

  close(): void {
    this.#client.destroy();
    this.#public?.client.destroy();
  }

  async *#list(prefix: string): AsyncGenerator<StoredObject, void, void> {
    // not flydrive's own: its lists know no sizes
    let ContinuationToken: string | undefined;
    do {
      const page: ListObjectsV2CommandOutput = await this.#client.send(
        new ListObjectsV2Command({ Bucket: this.#bucket, Prefix: prefix, ContinuationToken }),
      );
      for (const { Key, Size, LastModified } of page.Contents ?? [])
        if (Key !== undefined) yield { key: Key, sizeBytes: Size ?? 0, changedAt: LastModified ?? new Date(0) };
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken);
  }

  async #putWhole(key: string, spool: Spool, part: SpooledPart): Promise<void> {
    await again(() => this.#client.send(new PutObjectCommand({ ...this.#target(key), ...bodyOf(spool, part) })));
  }

  async #putParts(key: string, spool: Spool, first: SpooledPart): Promise<void> {
    const { UploadId } = await this.#client.send(new CreateMultipartUploadCommand(this.#target(key)));
    const upload = { ...this.#target(key), UploadId };
    try {
      const parts: { PartNumber: number; ETag: string | undefined }[] = [];
      for (let part = first; ; part = await spool.fill()) {
        const PartNumber = parts.length + 1;
        const { ETag } = await again(() =>
          this.#client.send(new UploadPartCommand({ ...upload, PartNumber, ...bodyOf(spool, part) })),
        );
        parts.push({ PartNumber, ETag });
        if (part.isLast) break;
      }
      await this.#client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: parts } }));
    } catch (error) {
      // if this fails as well, the sweep repeats it
      await this.#client.send(new AbortMultipartUploadCommand(upload)).catch(() => undefined);
      throw error;
    }
  }

  #target(key: string) {
    return { Bucket: this.#bucket, Key: key };
  }
}

/** A stream is sent without a signature of its bytes; the store checks them by this hash. */
const bodyOf = (spool: Spool, part: SpooledPart) => ({
  Body: part.sizeBytes > 0 ? spool.read(part) : Buffer.alloc(0),
  ContentLength: part.sizeBytes,
  ContentMD5: part.md5,
});

const nothing = () => undefined;
const silence = { trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

function clientOf(config: S3Config, endpoint: string | undefined): S3Client {
  const { region, accessKeyId, secretAccessKey, forcePathStyle } = config;
  return new S3Client({
    region,
    forcePathStyle,
    ...(endpoint ? { endpoint } : {}),
    // without keys, the client looks for those of the machine
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    // the SDK's own checksums are framing within the body, which many stores keep as content
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: ATTEMPTS,
    // it would warn of streams that it does not repeat, and the spool does
    logger: silence,
    requestHandler: { connectionTimeout: 5_000, socketTimeout: 60_000 },
  });
}

const diskOf = (client: S3Client, bucket: string): Disk =>
  new Disk(new S3Driver({ client, bucket, visibility: 'private', supportsACL: false }));

const statusOf = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;

/** The client does not repeat a request with a stream, but the spool can give its bytes again. */
async function again<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      const status = statusOf(error) ?? 500;
      if (attempt === ATTEMPTS || (status < 500 && status !== 429)) throw error;
      await new Promise((done) => setTimeout(done, 100 * 2 ** attempt * Math.random()));
    }
  }
}
