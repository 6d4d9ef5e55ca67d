import { randomBytes } from 'node:crypto';
import {
  addressesToTry,
  checkUrl,
  type EarlierAddress,
  mayConnectTo,
  nextTraceparent,
  requestHeaders,
  RESPONSE_BODY_KEPT_BYTES,
  signDelivery,
  standardWebhooksHeaders,
  toStoredRequest,
} from '@callplane/core';
import type { AttemptRecord, ClaimedDelivery } from '@callplane/db';
import { type Span, startSpan } from '@callplane/runtime';
import type { Deps } from '../deps.js';
import { DnsFailure, literalAddress } from '../destinations/resolver.js';
import { Deadline, post } from './post.js';

type SendableDelivery = Pick<
  ClaimedDelivery,
  'id' | 'eventId' | 'replayCount' | 'secretVersion' | 'url' | 'body' | 'traceparent' | 'standardWebhooks' | 'startedAt'
> & {
  /** With their opened values. */
  headers: Readonly<Record<string, string>>;
};

export type SendDeps = Pick<
  Deps,
  | 'resolver'
  | 'agents'
  | 'isAllowedAddress'
  | 'isAllowedPort'
  | 'allowHttp'
  | 'deliveryDeadlineMs'
  | 'dnsDeadlineMs'
  | 'certificateAuthority'
>;

const NO_TIMINGS = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null } as const;

/**
 * Makes one attempt: resolves the name, checks the addresses, connects to a checked address, sends the request and
 * reads the answer. Failures of the receiver or the network do not throw. One deadline covers the whole attempt.
 */
export async function send(deps: SendDeps, claim: SendableDelivery, secret: string): Promise<AttemptRecord> {
  const startedAt = performance.now();
  const deadline = new Deadline(deps.deliveryDeadlineMs);
  try {
    const attempt = await attemptTo(deps, claim, secret, deadline);
    return { ...attempt, durationMs: performance.now() - startedAt };
  } finally {
    deadline.end();
  }
}

async function attemptTo(
  deps: SendDeps,
  claim: SendableDelivery,
  secret: string,
  deadline: Deadline,
): Promise<Omit<AttemptRecord, 'durationMs'>> {
  const startedAt = performance.now();
  // Checks the URL again, because allowed ranges, ports and http may have changed since it was stored.
  const checked = checkUrl(claim.url, {
    allowHttp: deps.allowHttp,
    isAllowed: deps.isAllowedAddress,
    isAllowedPort: deps.isAllowedPort,
  });
  if (!checked.ok) return unsent('blocked', 'URL_NOT_ALLOWED');
  const { url } = checked;
  const literal = literalAddress(url);
  if (literal === null && deps.agents.proxyResolves) {
    const attempt = await postTo(deps, claim, secret, { url, address: url.hostname, dnsMs: null, deadline, startedAt });
    return { ...attempt, address: null };
  }
  let addresses: readonly string[];
  try {
    addresses = literal === null ? await resolve(deps, url.hostname, deadline) : [literal];
  } catch (error) {
    const code = error instanceof DnsFailure ? error.code : 'DNS_FAILED';
    return { ...unsent('dns', code), timings: { ...NO_TIMINGS, dnsMs: performance.now() - startedAt } };
  }
  const dnsMs = literal === null ? performance.now() - startedAt : null;
  if (!mayConnectTo(addresses, deps.isAllowedAddress)) {
    return { ...unsent('blocked', 'ADDRESS_NOT_PUBLIC'), timings: { ...NO_TIMINGS, dnsMs } };
  }
  // All addresses are checked. If a connection fails, nothing was sent, so the next address can be tried.
  let attempt = unsent('dns', 'ENODATA');
  const earlierAddresses: EarlierAddress[] = [];
  let triedAt = performance.now();
  for (const address of addressesToTry(addresses)) {
    if (attempt.address !== null) {
      const { address: earlier, errorCode } = attempt;
      earlierAddresses.push({ address: earlier, errorCode, durationMs: Math.round(performance.now() - triedAt) });
      triedAt = performance.now();
    }
    attempt = await postTo(deps, claim, secret, { url, address, dnsMs, deadline, startedAt });
    if (attempt.outcome !== 'connect') break;
  }
  if (earlierAddresses.length > 0) attempt.exchange = { request: null, ...attempt.exchange, earlierAddresses };
  return attempt;
}

interface Target {
  url: URL;
  address: string;
  dnsMs: number | null;
  deadline: Deadline;
  /** Start of the attempt, by `performance.now()`. */
  startedAt: number;
}

async function postTo(
  deps: SendDeps,
  claim: SendableDelivery,
  secret: string,
  { url, address, dnsMs, deadline, startedAt }: Target,
): Promise<Omit<AttemptRecord, 'durationMs'>> {
  const agent = deps.agents.of(url, address);
  const span = spanOf(claim, url);
  // PostgreSQL's time: a receiver would refuse every signature of a machine whose clock is wrong.
  const signedAt = Math.floor((claim.startedAt.getTime() + performance.now() - startedAt) / 1000);
  const headers = headersOf(claim, secret, signedAt, span);
  const answer = await post({
    url,
    agent,
    headers,
    body: claim.body,
    deadline,
    ...(deps.certificateAuthority === undefined ? {} : { certificateAuthority: deps.certificateAuthority }),
  });
  span?.end({
    attributes: { 'http.response.status_code': answer.statusCode ?? undefined },
    error: answer.outcome === 'success' ? null : (answer.errorCode ?? answer.outcome),
  });
  return {
    outcome: answer.outcome,
    errorCode: answer.errorCode,
    statusCode: answer.statusCode,
    address,
    timings: { dnsMs, connectMs: answer.connectMs, tlsMs: answer.tlsMs, firstByteMs: answer.firstByteMs },
    responseBody: answer.statusCode === null ? null : responseText(answer.body),
    responseTruncated: answer.bodyTruncated || answer.body.length > RESPONSE_BODY_KEPT_BYTES,
    exchange: answer.isSent
      ? {
          request: toStoredRequest(headers, signedAt, Object.keys(claim.headers)),
          ...(answer.headers === undefined ? {} : { responseHeaders: answer.headers }),
        }
      : null,
  };
}

/**
 * Resolves a name. It ends at the deadline of DNS or of the attempt, even if the resolver ignores the cancellation.
 */
async function resolve(deps: SendDeps, hostname: string, deadlineOfAttempt: Deadline): Promise<string[]> {
  const end = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_, reject) => {
    const late = (): void => {
      reject(new DnsFailure('DNS_TIMEOUT'));
      end.abort();
    };
    timer = setTimeout(late, deps.dnsDeadlineMs);
    deadlineOfAttempt.onPass(late);
  });
  try {
    const addresses = await Promise.race([deps.resolver.resolve(hostname, end.signal), passed]);
    if (addresses.length === 0) throw new DnsFailure('ENODATA');
    return addresses;
  } finally {
    clearTimeout(timer);
  }
}

/** The path and query of a receiver may hold secrets, so the span has only host and port. */
function spanOf(claim: SendableDelivery, url: URL): Span | null {
  return startSpan('POST', {
    kind: 'client',
    parent: claim.traceparent,
    attributes: {
      'http.request.method': 'POST',
      'url.scheme': url.protocol.slice(0, -1),
      'server.address': url.hostname,
      'server.port': url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port),
    },
  });
}

/** @param span the parent of the receiver's spans; null without OpenTelemetry */
function headersOf(
  claim: SendableDelivery,
  secret: string,
  timestampUnixSeconds: number,
  span: Span | null,
): Record<string, string> {
  const { id: deliveryId, eventId, replayCount, secretVersion, body } = claim;
  return requestHeaders({
    deliveryId,
    replayCount,
    secretVersion,
    signature: signDelivery({ secret, timestampUnixSeconds, deliveryId, replayCount, body }),
    standardWebhooks: claim.standardWebhooks
      ? standardWebhooksHeaders({ secret, timestampUnixSeconds, eventId, body })
      : {},
    traceparent: span === null ? forwarded(claim.traceparent) : span.traceparent,
    own: claim.headers,
  });
}

function forwarded(traceparent: string | null): string | null {
  return traceparent === null ? null : nextTraceparent(traceparent, randomBytes(8).toString('hex'));
}

function unsent(outcome: 'dns' | 'blocked', errorCode: string): Omit<AttemptRecord, 'durationMs'> {
  return {
    outcome,
    errorCode,
    statusCode: null,
    address: null,
    timings: NO_TIMINGS,
    responseBody: null,
    responseTruncated: false,
    exchange: null,
  };
}

/**
 * Returns the first 1 KiB of an answer as text that PostgreSQL can store. Invalid UTF-8 becomes U+FFFD, a character
 * that the cut splits is dropped, and U+0000 is removed.
 */
function responseText(body: Buffer): string {
  if (body.length === 0) return '';
  const kept = body.subarray(0, RESPONSE_BODY_KEPT_BYTES);
  const isCut = body.length > kept.length;
  return new TextDecoder('utf-8').decode(kept, { stream: isCut }).replaceAll('\u0000', '');
}
