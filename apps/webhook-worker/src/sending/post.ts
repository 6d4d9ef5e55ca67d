import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { classifyStatus, type AttemptOutcome } from '@callplane/core';
import got, { type Request } from 'got';
import type { Deadline } from './deadline.js';
import type { PinnedAgent } from './pinned-agents.js';

/** Of an answer's body no more than this is read; then the connection is dropped and the status decides. */
export const RESPONSE_BODY_READ_BYTES_MAX = 64 * 1024;

export interface PostInput {
  url: URL;
  /** Connects to one validated address, whatever the host's name resolves to by now. */
  agent: PinnedAgent['agent'];
  headers: Record<string, string>;
  body: string;
  /** Of the whole attempt. */
  deadline: Deadline;
  /** Certificates to trust instead of the system's; for tests. */
  certificateAuthority?: string;
}

export interface PostResult {
  outcome: Extract<AttemptOutcome, 'success' | 'connect' | 'tls' | 'timeout' | 'response'>;
  errorCode: string | null;
  statusCode: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  firstByteMs: number | null;
  /** At most what is read. */
  body: Buffer;
  /** There was more. */
  bodyTruncated: boolean;
}

/** How far a request has come. Failures are told apart by it, never by the text of an error. */
type Stage = 'connect' | 'tls' | 'response' | 'body';

/** What the stage's name is in the error code of a deadline that passed in it. */
const TIMEOUT_CODE: Record<Stage, string> = {
  connect: 'CONNECT_TIMEOUT',
  tls: 'TLS_TIMEOUT',
  response: 'RESPONSE_TIMEOUT',
  body: 'BODY_TIMEOUT',
};

const NOTHING = Buffer.alloc(0);

/** What is the same for all is merged once. */
const client = got.extend({
  followRedirect: false,
  throwHttpErrors: false,
  decompress: false,
  retry: { limit: 0 },
  http2: false,
});

/**
 * Sends one request and reads its answer; never throws for what the receiver does. No redirect is followed, nothing is
 * sent twice and nothing is decompressed.
 *
 * An answer counts once it is complete or has filled the cap. One whose body still drips at the deadline is a timeout,
 * whatever its status, as the deadline stands over everything; one that breaks off is a failed response.
 */
export async function post(input: PostInput): Promise<PostResult> {
  const { url, deadline } = input;
  const result: PostResult = {
    outcome: 'response',
    errorCode: null,
    statusCode: null,
    connectMs: null,
    tlsMs: null,
    firstByteMs: null,
    body: NOTHING,
    bodyTruncated: false,
  };
  const progress: { stage: Stage } = { stage: 'connect' };
  const request = client.stream.post(url, {
    body: input.body,
    headers: input.headers,
    agent: input.agent,
    ...(input.certificateAuthority === undefined
      ? {}
      : { https: { certificateAuthority: input.certificateAuthority } }),
  });
  request.once('request', (clientRequest: ClientRequest) =>
    follow(clientRequest, url, progress, result, () => request.destroy(new Error('the receiver switched protocols'))),
  );
  deadline.onPass(() => request.destroy(new Error('the deadline has passed')));
  try {
    await readAnswer(request, progress, result);
    result.outcome =
      result.statusCode !== null && classifyStatus(result.statusCode) === 'success' ? 'success' : 'response';
    if (result.outcome === 'response') result.errorCode = `HTTP_${result.statusCode ?? 0}`;
  } catch (error) {
    // The head has come and yet no answer: 101.
    const upgraded = result.statusCode !== null && progress.stage === 'response';
    result.outcome = deadline.hasPassed ? 'timeout' : progress.stage === 'body' ? 'response' : progress.stage;
    result.errorCode = upgraded
      ? `HTTP_${result.statusCode ?? 0}`
      : deadline.hasPassed
        ? TIMEOUT_CODE[progress.stage]
        : codeOf(error, progress.stage);
  } finally {
    request.destroy();
  }
  return result;
}

/** Notes when each stage is reached. */
function follow(
  request: ClientRequest,
  url: URL,
  progress: { stage: Stage },
  result: PostResult,
  abandon: () => void,
): void {
  const isTls = url.protocol === 'https:';
  request.once('socket', (socket: Socket) => {
    if (!socket.connecting) {
      progress.stage = 'response';
      return;
    }
    const startedAt = performance.now();
    socket.once('connect', () => {
      result.connectMs = performance.now() - startedAt;
      progress.stage = isTls ? 'tls' : 'response';
    });
    socket.once('secureConnect', () => {
      result.tlsMs = performance.now() - startedAt - (result.connectMs ?? 0);
      progress.stage = 'response';
    });
  });
  let sentAt = performance.now();
  request.once('finish', () => {
    sentAt = performance.now();
  });
  request.once('response', () => {
    result.firstByteMs = performance.now() - sentAt;
    progress.stage = 'body';
  });
  // 101: nothing was asked to be upgraded. Without a listener Node would tell of it as a connection that was reset.
  request.once('upgrade', (response: IncomingMessage, socket: Socket) => {
    result.statusCode = response.statusCode ?? null;
    result.firstByteMs = performance.now() - sentAt;
    socket.destroy();
    abandon();
  });
}

function readAnswer(request: Request, progress: { stage: Stage }, result: PostResult): Promise<void> {
  request.once('response', (response: { statusCode: number }) => {
    result.statusCode = response.statusCode;
    progress.stage = 'body';
  });
  const chunks: Buffer[] = [];
  let length = 0;
  return new Promise<void>((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length <= RESPONSE_BODY_READ_BYTES_MAX) return;
      result.bodyTruncated = true;
      resolve();
    });
    request.once('end', resolve);
    // More than one may come: of the request, and of what is torn down with it.
    request.on('error', reject);
    request.once('close', () => reject(new Error('the connection was closed')));
  }).finally(() => {
    if (length > 0) result.body = Buffer.concat(chunks).subarray(0, RESPONSE_BODY_READ_BYTES_MAX);
  });
}

/** The system's code where there is one (`ECONNREFUSED`, `CERT_HAS_EXPIRED`), looking through got's wrappers. */
function codeOf(error: unknown, stage: Stage): string {
  for (let each = error as { code?: unknown; cause?: unknown } | undefined, depth = 0; each && depth < 5; depth += 1) {
    if (typeof each.code === 'string' && !/^ERR_(GOT|READING|BODY|NON_2XX|HTTP_)/.test(each.code)) return each.code;
    each = each.cause as typeof each;
  }
  return stage === 'body' ? 'BODY_INCOMPLETE' : `${stage.toUpperCase()}_FAILED`;
}
