import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { ObjectStore, StoredObject } from './object-store.js';

/** Larger objects are uploaded in parts, each with retries of its own. Up to three parts are in memory. */
const PART_BYTES = 16 * 1024 * 1024;
const CONNECTION_MS = 5000;
/** A store that sends nothing for so long has failed. */
const SILENCE_MS = 30_000;
const ATTEMPTS = 5;

export interface S3Settings {
  bucket: string;
  region: string;
  isPathStyle: boolean;
  /** Undefined: AWS. */
  endpoint: string | undefined;
  /** Address for links, if it is another one. */
  linkEndpoint: string | undefined;
  encryption: 'AES256' | 'aws:kms' | undefined;
  /** Undefined: the SDK finds credentials, such as the role of the machine. */
  credentials: { accessKeyId: string; secretAccessKey: string } | undefined;
}

/** Keeps objects in a bucket of an S3-compatible store. */
export class S3Store implements ObjectStore {
  readonly linkOrigin: string;
  readonly #client: S3Client;
  readonly #links: S3Client;
  readonly #bucket: string;
  readonly #encryption: { ServerSideEncryption?: 'AES256' | 'aws:kms' };
  /** Uploads in parts of this process. */
  readonly #uploads = new Set<Upload>();

  constructor({ bucket, region, isPathStyle, endpoint, linkEndpoint, encryption, credentials }: S3Settings) {
    const clientFor = (address: string | undefined): S3Client => {
      const config: S3ClientConfig = {
        region,
        forcePathStyle: isPathStyle,
        maxAttempts: ATTEMPTS,
        requestHandler: { connectionTimeout: CONNECTION_MS, socketTimeout: SILENCE_MS },
        // Some stores refuse the checksums that AWS has added.
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
      };
      if (address !== undefined) config.endpoint = address;
      if (credentials !== undefined) config.credentials = credentials;
      return new S3Client(config);
    };
    this.#client = clientFor(endpoint);
    this.#links = linkEndpoint === undefined ? this.#client : clientFor(linkEndpoint);
    this.#bucket = bucket;
    const { protocol, host } = new URL(linkEndpoint ?? endpoint ?? `https://s3.${region}.amazonaws.com`);
    this.linkOrigin = `${protocol}//${isPathStyle ? '' : `${bucket}.`}${host}`;
    this.#encryption = encryption === undefined ? {} : { ServerSideEncryption: encryption };
  }

  async put(name: string, object: StoredObject): Promise<void> {
    const body = Buffer.isBuffer(object) ? object : createReadStream(object.path);
    if (!Buffer.isBuffer(body)) await this.#abortUploads(name.slice(0, name.lastIndexOf('/') + 1));
    const upload = new Upload({
      client: this.#client,
      partSize: PART_BYTES,
      queueSize: 1,
      params: { ...this.#at(name), ...this.#encryption, Body: body },
    });
    this.#uploads.add(upload);
    try {
      await upload.done();
    } finally {
      this.#uploads.delete(upload);
      if (!Buffer.isBuffer(body)) body.destroy();
    }
  }

  async read(name: string): Promise<Readable> {
    try {
      const { Body } = await this.#client.send(new GetObjectCommand(this.#at(name)));
      return Body as Readable;
    } catch (error) {
      throw isAbsent(error)
        ? Object.assign(new Error(`no object ${name}`, { cause: error }), { code: 'ENOENT' })
        : error;
    }
  }

  async size(name: string): Promise<number | null> {
    try {
      return (await this.#client.send(new HeadObjectCommand(this.#at(name)))).ContentLength ?? null;
    } catch (error) {
      if (isAbsent(error)) return null;
      throw error;
    }
  }

  async removeAll(prefix: string): Promise<void> {
    await this.#abortUploads(prefix);
    const which = { Bucket: this.#bucket, Prefix: prefix };
    for await (const { Contents = [] } of paginateListObjectsV2({ client: this.#client }, which)) {
      const found = Contents.filter(({ Key }) => prefix.endsWith('/') || Key === prefix);
      if (found.length === 0) continue;
      const Delete = { Objects: found.map(({ Key }) => ({ Key })), Quiet: true };
      const { Errors = [] } = await this.#client.send(new DeleteObjectsCommand({ Bucket: this.#bucket, Delete }));
      const [first] = Errors;
      if (first !== undefined) throw new Error(`the store keeps ${first.Key}: ${first.Code} ${first.Message}`);
    }
  }

  link(name: string, contentType: string, expiresInSeconds: number): Promise<string> {
    const command = new GetObjectCommand({ ...this.#at(name), ResponseContentType: contentType });
    return getSignedUrl(this.#links, command, { expiresIn: expiresInSeconds });
  }

  /** Ends the uploads in parts that another process has left there: a store keeps, and bills, their parts. */
  async #abortUploads(prefix: string): Promise<void> {
    const which = { Bucket: this.#bucket, Prefix: prefix };
    const { Uploads = [] } = await this.#client.send(new ListMultipartUploadsCommand(which));
    const own = new Set([...this.#uploads].map(({ uploadId }) => uploadId));
    for (const { Key, UploadId } of Uploads) {
      if (own.has(UploadId)) continue;
      await this.#client.send(new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId }));
    }
  }

  #at(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: name };
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof S3ServiceException && ['NoSuchKey', 'NotFound'].includes(error.name);
}
