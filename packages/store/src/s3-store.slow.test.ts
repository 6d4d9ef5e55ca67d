import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import { eventually, listenUntilEnd, S3_PROGRAM, S3_SKIPPED, startTestS3, type TestS3 } from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openStore, type ObjectStore, type StoreSettings } from './index.js';

const PART_BYTES = 16 * 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), 'callplane-s3-'));
const path = join(folder, 'file');
const content = randomBytes(2 * PART_BYTES + 4321);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

let server: TestS3;
let store: ObjectStore;
const open = async (more: Partial<StoreSettings> = {}): Promise<ObjectStore> => {
  const defaults = { RECORDINGS_S3_REGION: 'us-east-1', RECORDINGS_S3_ENCRYPTION: 'none' } as const;
  const opened = await openStore({ ...defaults, ...server.env, ...more });
  if (opened === null) throw new Error('no store is set');
  return opened;
};

/** A proxy that cuts the connections of some requests, after the first bytes of the body. */
async function lossy(isLost: (seen: IncomingMessage) => boolean): Promise<Partial<StoreSettings>> {
  const proxy = createServer((from, answer) => {
    if (isLost(from)) return void from.once('data', () => from.destroy());
    const { method, headers, url } = from;
    const forward = request(server.url, { method, headers, path: url }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    from.pipe(forward);
  });
  const { origin } = await listenUntilEnd(proxy);
  return { RECORDINGS_S3_ENDPOINT: origin };
}

const admin = () =>
  new S3Client({
    endpoint: server.url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'test-user', secretAccessKey: 'test-secret' },
  });
const uploads = async () =>
  (await admin().send(new ListMultipartUploadsCommand({ Bucket: 'recordings' }))).Uploads ?? [];

const describeStore = S3_PROGRAM === undefined ? describe.skip : describe;
const testSignatures = S3_PROGRAM === 'versitygw' ? test : test.skip;

describeStore(`the store in a bucket${S3_PROGRAM === undefined ? ` (${S3_SKIPPED})` : ` of ${S3_PROGRAM}`}`, () => {
  beforeAll(async () => {
    writeFileSync(path, content);
    server = await startTestS3();
    store = await open();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('returns the latest object of a name', async () => {
    await store.put('a/b/1', Buffer.from('first'));
    await store.put('a/b/1', Buffer.from('second'));
    expect((await buffer(await store.read('a/b/1'))).toString()).toBe('second');
    expect(await store.size('a/b/1')).toBe(6);
    expect(await store.size('a/b/2')).toBeNull();
    await expect(store.read('a/b/2')).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('takes a file in parts, although one is lost in the middle', async () => {
    let lost = 0;
    const flaky = await open(await lossy(({ url = '' }) => url.includes('partNumber=2') && lost++ < 2));
    await flaky.put('parts/file', { path });
    expect(lost).toBeGreaterThan(2);
    expect(sha256(await buffer(await store.read('parts/file')))).toBe(sha256(content));
    expect(await uploads()).toEqual([]);
  });

  test('keeps nothing of a file of which a part is lost for good', async () => {
    const broken = await open(await lossy(({ url = '' }) => url.includes('partNumber=2')));
    await expect(broken.put('broken/file', { path })).rejects.toThrow();
    expect(await store.size('broken/file')).toBeNull();
    expect(await uploads()).toEqual([]);
  });

  test('ends the upload that a killed process has left, and no other', async () => {
    const begin = (Key: string) => admin().send(new CreateMultipartUploadCommand({ Bucket: 'recordings', Key }));
    await Promise.all(['rec/1/old', 'rec/10/other'].map(begin));
    await store.put('rec/1/new', { path });
    expect((await uploads()).map(({ Key }) => Key)).toEqual(['rec/10/other']);
    await store.removeAll('rec/10/');
    expect(await uploads()).toEqual([]);
  });

  test('keeps the running uploads of its own process', async () => {
    await Promise.all([store.put('both/1', { path }), store.put('both/2', { path })]);
    expect([await store.size('both/1'), await store.size('both/2')]).toEqual([content.length, content.length]);
  });

  test('deletes a whole path and no other', async () => {
    await Promise.all(['x/1/a', 'x/1/ab'].map((name) => store.put(name, Buffer.from('1'))));
    await store.put('x/10/a', Buffer.from('2'));
    await store.removeAll('x/1/a');
    expect(await Promise.all(['x/1/a', 'x/1/ab'].map((name) => store.size(name)))).toEqual([null, 1]);
    await store.removeAll('x/1/');
    await store.removeAll('x/1/');
    expect(await Promise.all(['x/1/a', 'x/1/ab', 'x/10/a'].map((name) => store.size(name)))).toEqual([null, null, 1]);
  });

  test('links to one object, with ranges', async () => {
    const url = await store.link('parts/file', 'video/webm', 60);
    const response = await fetch(url ?? '', { headers: { range: 'bytes=5-9' } });
    expect(response.status).toBe(206);
    // Versions of moto_server ignore the type that a link asks for.
    const types = S3_PROGRAM === 'moto_server' ? ['video/webm', 'binary/octet-stream'] : ['video/webm'];
    expect(types).toContain(response.headers.get('content-type'));
    expect(new URL(url ?? '').searchParams.get('response-content-type')).toBe('video/webm');
    expect(Buffer.from(await response.arrayBuffer())).toEqual(content.subarray(5, 10));
  });

  test('links to the address that browsers reach', async () => {
    const linked = await open({ RECORDINGS_S3_LINK_ENDPOINT: 'https://files.example.com' });
    expect(await linked.link('a/b', 'video/webm', 60)).toMatch(/^https:\/\/files\.example\.com\/recordings\/a\/b\?/);
    const hosted = await open({
      RECORDINGS_S3_PATH_STYLE: false,
      RECORDINGS_S3_LINK_ENDPOINT: 'https://files.example.com',
    });
    expect(new URL((await hosted.link('a/b', 'video/webm', 60)) ?? '').origin).toBe(hosted.linkOrigin);
    expect(hosted.linkOrigin).toBe('https://recordings.files.example.com');
  });

  testSignatures('refuses a link that was changed or has expired', async () => {
    const url = (await store.link('parts/file', 'video/webm', 1)) ?? '';
    expect((await fetch(url.replace('parts/file', 'a/b/1'))).status).toBe(403);
    expect(await eventually(async () => ((await fetch(url)).status === 403 ? 403 : null))).toBe(403);
  });

  testSignatures('refuses a wrong secret with a message', async () => {
    const stranger = await open({ RECORDINGS_S3_SECRET_ACCESS_KEY: 'wrong' });
    await expect(stranger.put(`wrong/${randomUUID()}`, Buffer.from('x'))).rejects.toThrow('signature');
    await expect(stranger.removeAll('wrong/')).rejects.toThrow('signature');
  });

  test('asks for encryption with each object', async () => {
    const asked: unknown[] = [];
    const spy = await lossy(({ method, headers }) => {
      if (method === 'PUT') asked.push(headers['x-amz-server-side-encryption']);
      return false;
    });
    const encrypted = await open({ ...spy, RECORDINGS_S3_ENCRYPTION: 'AES256' });
    await encrypted.put('sealed/1', Buffer.from('x'));
    expect(asked).toEqual(['AES256']);
  });
});
