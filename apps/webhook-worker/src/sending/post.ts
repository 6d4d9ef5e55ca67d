import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type AttemptOutcome, classifyStatus, keptResponseHeaders, RESPONSE_BODY_KEPT_BYTES } from '@callplane/core';
import got, { type Request } from 'got';
import type { PinnedAgent } from './pinned-agents.js';
import { followStatusLine } from './status-line.js';
import { TunnelFailure, tunnelTimings } from './tunnel.js';

/** The deadline of a whole attempt. It is cheaper than an AbortSignal, and nearly no deadline ever passes. */
export class Deadline {
  readonly #timer: NodeJS.Timeout;
  #onPass: (() => void) | undefined;
  #hasPassed = false;

  constructor(afterMs: number) {
    this.#timer = setTimeout(() => {
      this.#hasPassed = true;
      this.#onPass?.();
    }, afterMs);
  }

  get hasPassed(): boolean {
    return this.#hasPassed;
  }

  /**
   * Calls `what` when the deadline passes, or at once if it has passed. A new callback replaces the previous one,
   * because the stages of an attempt run one after another.
   */
  onPass(what: () => void): void {
    this.#onPass = what;
    if (this.#hasPassed) what();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#onPass = undefined;
  }
}

/**
 * How long the body is read after the response head has arrived, in milliseconds. The status is known by then, and only
 * the log needs the body. A receiver that drips its body must not occupy a slot until the deadline.
 */
const BODY_READ_MS = 1000;

interface PostInput {
  url: URL;
  /** Connects to one validated address, even if the host name resolves to another one by now. */
  agent: Pick<PinnedAgent, 'agent' | 'fresh'>;
  headers: Record<string, string>;
  body: string;
  deadline: Deadline;
  /** Certificates to trust instead of the system's; for tests. */
  certificateAuthority?: string;
}

interface PostResult {
  outcome: Extract<AttemptOutcome, 'success' | 'connect' | 'tls' | 'timeout' | 'response'>;
  errorCode: string | null;
  statusCode: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  firstByteMs: number | null;
  /** Whether the connection was ready, so that the request was written to it. */
  isSent: boolean;
  /** Selected headers of an answer that is not 2xx. */
  headers: Record<string, string> | undefined;
  /** The first bytes of the body, at most one more than the log keeps. */
  body: Buffer;
  /** True if the body was longer, or if its end did not arrive. */
  bodyTruncated: boolean;
}

/** The stage that a request has reached. It classifies failures, because error texts are unreliable. */
type Stage = 'connect' | 'tls' | 'response';

interface Progress {
  stage: Stage;
  /** A connection that an earlier request has used, and the bytes that it had received before; else null. */
  reused: { socket: Socket; bytesBefore: number } | null;
}

const CLOSED = new Set<string | null>(['ECONNRESET', 'EPIPE']);

const TIMEOUT_CODE: Record<Stage, string> = {
  connect: 'CONNECT_TIMEOUT',
  tls: 'TLS_TIMEOUT',
  response: 'RESPONSE_TIMEOUT',
};

const NOTHING = Buffer.alloc(0);

/** Options of all requests, merged only once because merging costs time. */
const client = got.extend({
  followRedirect: false,
  throwHttpErrors: false,
  decompress: false,
  retry: { limit: 0 },
  http2: false,
});

/**
 * Sends a request and reads its answer. Failures of the receiver or the network do not throw. It follows no redirect and
 * decompresses nothing.
 *
 * A receiver may close an idle connection at the moment at which a request reaches it. If no byte of an answer has come
 * over a connection that was used before, the request is sent again at once, on a fresh connection and only once.
 */
export async function post(input: PostInput): Promise<PostResult> {
  const first = await postOnce(input, input.agent.agent);
  return first.wasStale && !input.deadline.hasPassed ? postOnce(input, input.agent.fresh()) : first;
}

/**
 * Once the response head has arrived, its status decides the outcome. A body that never ends, drips or breaks off does
 * not change it. Otherwise a delivery that the receiver has accepted would be sent again.
 */
async function postOnce(input: PostInput, agent: PinnedAgent['agent']): Promise<PostResult & { wasStale: boolean }> {
  const { url, deadline } = input;
  const result: PostResult & { wasStale: boolean } = {
    wasStale: false,
    outcome: 'response',
    errorCode: null,
    statusCode: null,
    connectMs: null,
    tlsMs: null,
    firstByteMs: null,
    isSent: false,
    headers: undefined,
    body: NOTHING,
    bodyTruncated: false,
  };
  const progress: Progress = { stage: 'connect', reused: null };
  const request = client.stream.post(url, {
    body: input.body,
    headers: input.headers,
    agent,
    ...(input.certificateAuthority === undefined
      ? {}
      : { https: { certificateAuthority: input.certificateAuthority } }),
  });
  request.once('request', (clientRequest: ClientRequest) =>
    follow(clientRequest, url, progress, result, () => request.destroy(new Error('the receiver switched protocols'))),
  );
  deadline.onPass(() => request.destroy(new Error('the deadline has passed')));
  try {
    await readHead(request, result);
    await readBody(request, result);
  } catch (error) {
    // Reading the body never rejects. With a status, the receiver has switched protocols or Node refuses the head.
    if (result.statusCode === null) {
      const stage = tunnelFailureOf(error)?.stage ?? progress.stage;
      const code = codeOf(error, stage);
      result.errorCode = deadline.hasPassed ? TIMEOUT_CODE[stage] : code;
      // Over TLS 1.3 a receiver refuses the client once the handshake has ended for it.
      result.outcome = deadline.hasPassed ? 'timeout' : code.startsWith('ERR_SSL_') ? 'tls' : stage;
      result.wasStale = CLOSED.has(result.errorCode) && hasReceivedNothing(progress);
    }
  } finally {
    request.destroy();
    result.isSent = progress.stage === 'response';
  }
  if (result.statusCode === null) return result;
  if (classifyStatus(result.statusCode) === 'success') result.outcome = 'success';
  else result.errorCode = `HTTP_${result.statusCode}`;
  return result;
}

function hasReceivedNothing({ reused }: Progress): boolean {
  return reused !== null && reused.socket.bytesRead === reused.bytesBefore;
}

function follow(request: ClientRequest, url: URL, progress: Progress, result: PostResult, abandon: () => void): void {
  const isTls = url.protocol === 'https:';
  request.once('socket', (socket: Socket) => {
    if (!socket.connecting) {
      progress.stage = 'response';
      if (request.reusedSocket) progress.reused = { socket, bytesBefore: socket.bytesRead };
      else Object.assign(result, tunnelTimings.get(socket));
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
  });
  followStatusLine(request, (statusCode) => {
    result.statusCode = statusCode;
    result.firstByteMs = performance.now() - sentAt;
    result.bodyTruncated = true;
  });
  // The request asks for no upgrade, so a 101 is invalid. Without a listener, Node reports a connection reset.
  request.once('upgrade', (response: IncomingMessage, socket: Socket) => {
    result.statusCode = response.statusCode ?? null;
    result.firstByteMs = performance.now() - sentAt;
    socket.destroy();
    abandon();
  });
}

/** @throws the error that prevented a complete response head. */
function readHead(request: Request, result: PostResult): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    request.once('response', (response: { statusCode: number; headers: IncomingHttpHeaders }) => {
      result.statusCode = response.statusCode;
      // A success raises no question that its headers could answer, and its row stays small.
      if (classifyStatus(response.statusCode) !== 'success') result.headers = keptResponseHeaders(response.headers);
      resolve();
    });
    // The request may emit several errors, also after the head, for example while it is destroyed.
    request.on('error', reject);
    request.once('close', () => reject(new Error('the connection was closed')));
  });
}

/**
 * Reads until the end of the body, until it exceeds the bytes that the log keeps, until its time is up, or until the
 * connection ends, whichever comes first.
 */
async function readBody(request: Request, result: PostResult): Promise<void> {
  const chunks: Buffer[] = [];
  let length = 0;
  let timer: NodeJS.Timeout | undefined;
  result.bodyTruncated = true;
  await new Promise<void>((resolve) => {
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > RESPONSE_BODY_KEPT_BYTES) resolve();
    });
    request.once('end', () => {
      result.bodyTruncated = false;
      resolve();
    });
    request.once('error', () => resolve());
    request.once('close', () => resolve());
    timer = setTimeout(resolve, BODY_READ_MS);
    if (request.destroyed) resolve();
  });
  clearTimeout(timer);
  // Keeps one byte more than the log, so that `responseText` detects a cut and drops a split character.
  if (length > 0) result.body = Buffer.concat(chunks).subarray(0, RESPONSE_BODY_KEPT_BYTES + 1);
}

function tunnelFailureOf(error: unknown): TunnelFailure | null {
  const { cause } = error as Error;
  return error instanceof TunnelFailure ? error : cause instanceof TunnelFailure ? cause : null;
}

/**
 * Returns the code of the system (`ECONNREFUSED`, `CERT_HAS_EXPIRED`) or of OpenSSL (`ERR_SSL_WRONG_VERSION_NUMBER`)
 * behind got's wrappers, or `<STAGE>_FAILED`.
 */
function codeOf(error: unknown, stage: Stage): string {
  for (let each = error as Partial<NodeJS.ErrnoException> | undefined, depth = 0; each && depth < 5; depth += 1) {
    // While it writes, Node reports OpenSSL's reason only in the message.
    const reason = each.code === 'EPROTO' ? /:SSL routines:[^:]*:([^:]+):/.exec(each.message ?? '')?.[1] : undefined;
    if (reason !== undefined) return `ERR_SSL_${reason.toUpperCase().replaceAll(' ', '_')}`;
    if (typeof each.code === 'string' && !/^ERR_(GOT|READING|BODY|NON_2XX|HTTP_)/.test(each.code)) return each.code;
    each = each.cause as typeof each;
  }
  return `${stage.toUpperCase()}_FAILED`;
}
