import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { classifyStatus, RESPONSE_BODY_KEPT_BYTES, type AttemptOutcome } from '@callplane/core';
import type { Deadline } from './deadline.js';
import type { PinnedAgent } from './pinned-agents.js';

/**
 * How long the body is read after the response head has arrived, in milliseconds. The status is known by then, and only
 * the log needs the body. A receiver that drips its body must not occupy a slot until the deadline.
 */
const BODY_READ_MS = 1000;

export interface PostInput {
  url: URL;
  /** Connects to one validated address, even if the host name resolves to another one by now. */
  agent: PinnedAgent['agent'];
  headers: Record<string, string>;
  body: string;
  /** Deadline of the whole attempt. */
  deadline: Deadline;
  /** Certificates to trust instead of those of the system; for tests. */
  certificateAuthority?: string;
}

export interface PostResult {
  outcome: Extract<AttemptOutcome, 'success' | 'connect' | 'tls' | 'timeout' | 'response'>;
  errorCode: string | null;
  statusCode: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  firstByteMs: number | null;
  /** The first bytes of the body, at most one more than the log keeps. */
  body: Buffer;
  /** True if the body was longer, or if its end did not arrive. */
  bodyTruncated: boolean;
}

/** The stage that a request has reached. It classifies failures, because error texts are unreliable. */
type Stage = 'connect' | 'tls' | 'response';

/** The error code of a deadline that passes in this stage. */
const TIMEOUT_CODE: Record<Stage, string> = {
  connect: 'CONNECT_TIMEOUT',
  tls: 'TLS_TIMEOUT',
  response: 'RESPONSE_TIMEOUT',
};

const NOTHING = Buffer.alloc(0);

/**
 * Sends one request and reads its answer. Failures of the receiver or the network do not throw. It follows no redirect,
 * sends nothing twice and decompresses nothing.
 *
 * Once the response head has arrived, its status decides the outcome. A body that never ends, drips or breaks off does
 * not change it. Otherwise a delivery that the receiver has accepted would be sent again.
 */
export async function post(input: PostInput): Promise<PostResult> {
  const { url, body, deadline } = input;
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
  const request = open(input);
  follow(request, url, progress, result);
  deadline.onPass(() => request.destroy(new Error('the deadline has passed')));
  const answered = answer(request, result);
  // One string for head and body: Node sends both with one write.
  request.end(body);
  try {
    await answered;
    result.outcome = classifyStatus(result.statusCode ?? 0) === 'success' ? 'success' : 'response';
    if (result.outcome === 'response') result.errorCode = `HTTP_${result.statusCode ?? 0}`;
  } catch (error) {
    result.outcome = deadline.hasPassed ? 'timeout' : progress.stage;
    result.errorCode = deadline.hasPassed ? TIMEOUT_CODE[progress.stage] : codeOf(error, progress.stage);
  } finally {
    // Node has destroyed the request if its connection can serve the next one.
    request.destroy();
  }
  return result;
}

function open({ url, agent, headers, body, certificateAuthority }: PostInput): ClientRequest {
  const options = {
    method: 'POST',
    headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
  };
  if (url.protocol !== 'https:') return http.request(url, { ...options, agent: agent.http });
  const trusted = certificateAuthority === undefined ? {} : { ca: certificateAuthority };
  return https.request(url, { ...options, agent: agent.https, ...trusted });
}

/** Records the stages of a request and their timings. */
function follow(request: ClientRequest, url: URL, progress: { stage: Stage }, result: PostResult): void {
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
    if (!isTls) return;
    socket.once('secureConnect', () => {
      result.tlsMs = performance.now() - startedAt - (result.connectMs ?? 0);
      progress.stage = 'response';
    });
  });
  let sentAt = performance.now();
  request.once('finish', () => {
    sentAt = performance.now();
  });
  const onHead = ({ statusCode }: IncomingMessage): void => {
    result.statusCode = statusCode ?? null;
    result.firstByteMs = performance.now() - sentAt;
  };
  request.once('response', onHead);
  // The request asks for no upgrade, so a 101 is invalid. Without a listener, Node reports a connection reset.
  request.once('upgrade', (response: IncomingMessage, socket: Socket) => {
    onHead(response);
    socket.destroy();
  });
}

/**
 * Resolves once the response is read: to the end of the body, until it exceeds what the log keeps, until its time is
 * up, or until the connection ends, whichever comes first.
 * @throws the error that prevented a complete response head.
 */
function answer(request: ClientRequest, result: PostResult): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    // The request may emit several errors, also after the head, for example while it is destroyed.
    const end = (error: Error): void => (result.statusCode === null ? reject(error) : resolve());
    request.on('error', end);
    request.once('close', () => end(new Error('the connection was closed')));
    request.once('response', (response: IncomingMessage) => {
      result.bodyTruncated = true;
      const chunks: Buffer[] = [];
      let length = 0;
      const timer = setTimeout(done, BODY_READ_MS);
      function done(): void {
        clearTimeout(timer);
        // Keeps one byte more than the log, so that `responseText` detects a cut and drops a split character.
        if (length > 0) result.body = Buffer.concat(chunks).subarray(0, RESPONSE_BODY_KEPT_BYTES + 1);
        resolve();
      }
      response.on('data', (chunk: Buffer) => {
        if (length > RESPONSE_BODY_KEPT_BYTES) return;
        chunks.push(chunk);
        length += chunk.length;
        if (length > RESPONSE_BODY_KEPT_BYTES) done();
      });
      response.once('end', () => {
        if (length <= RESPONSE_BODY_KEPT_BYTES) result.bodyTruncated = false;
        done();
      });
      response.on('error', done);
      response.once('close', done);
    });
  });
}

/** Returns the code of the system (`ECONNREFUSED`, `CERT_HAS_EXPIRED`) behind wrappers, or `<STAGE>_FAILED`. */
function codeOf(error: unknown, stage: Stage): string {
  for (let each = error as { code?: unknown; cause?: unknown } | undefined, depth = 0; each && depth < 5; depth += 1) {
    if (typeof each.code === 'string') return each.code;
    each = each.cause as typeof each;
  }
  return `${stage.toUpperCase()}_FAILED`;
}
