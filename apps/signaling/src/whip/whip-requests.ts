import { createHash } from 'node:crypto';
import { KeyedPace, paceTimes } from '@callplane/core';
import { findRoom, findSessionBySecret, type MediaOfSession } from '@callplane/db';
import { MediaError } from '@callplane/media';
import { hashOf } from '../arrivals/resume.js';
import { verifyToken, type TokenClaims } from '../arrivals/token.js';
import { declareTracks } from '../media/sdp-gate.js';
import type { MediaRecord, MediaWrites, WhipRecord } from '../media/media-writes.js';
import { credentialsIn, entityTag, fragmentOf, readFragment, restartOffer, type IceFragment } from './ice-fragment.js';
import type { WhipAnswer, WhipClient } from './whip-client.js';
import type { WhipClients, WhipClientsDeps } from './whip-clients.js';
import { errorOfAnswer, whipError } from './whip-errors.js';

export const SDP_TYPE = 'application/sdp';
export const FRAGMENT_TYPE = 'application/trickle-ice-sdpfrag';
export const WHIP_PATH = '/v1/whip';

/** PATCH and DELETE of one participant at one gateway. Each costs a query. */
const REQUESTS_PACE = { perMinute: 240, burst: 60 };
const KEYS_MAX = 10_000;
/** As in `join` of the signaling protocol. */
const TOKEN_CHARS_MAX = 8192;
/** The session may get another connection while it is ended. */
const DELETE_TRIES_MAX = 3;

export interface WhipAnswered {
  status: number;
  headers: Record<string, string | string[]>;
  text?: string;
}

export interface WhipCaller {
  address: string | undefined;
  addressKey: string;
  authorization: string | undefined;
}

export interface WhipDeps extends WhipClientsDeps {
  mediaWrites: Pick<MediaWrites, 'flush'>;
  clients: WhipClients;
}

interface Authentic {
  claims: TokenClaims;
  secret: string;
  token: string;
}

/** The work of each request of WHIP, apart from HTTP. Every function throws a PublicError or a RequestFailure. */
export class WhipRequests {
  readonly #pace = new KeyedPace(paceTimes(REQUESTS_PACE), KEYS_MAX);

  constructor(private readonly deps: WhipDeps) {}

  /** @param isStart false for a running session, which outlives its token */
  async authenticate({ authorization = '', addressKey }: WhipCaller, isStart: boolean): Promise<Authentic> {
    const { arrivalLimits, clock, keys, tokens } = this.deps;
    const [, token = ''] = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(authorization) ?? [];
    if (token === '' || token.length > TOKEN_CHARS_MAX) throw whipError('UNAUTHENTICATED');
    const now = clock.now();
    let verified = await verifyToken(keys, tokens, token, now);
    if (!verified.ok && verified.reason === 'token_expired' && !isStart) {
      verified = await verifyToken(keys, tokens, token, now, { mayBeExpired: true });
    }
    if (verified.ok) return { claims: verified.claims, secret: secretOf(token), token };
    if (verified.reason === 'token_expired') throw whipError('UNAUTHENTICATED');
    const waitMs = arrivalLimits.addressWaitMs({ addressKey });
    if (waitMs > 0) throw whipError('RATE_LIMITED', Math.ceil(waitMs / 1000));
    arrivalLimits.failed({ addressKey });
    throw whipError('UNAUTHENTICATED');
  }

  /** @param isWaiting whether the client still waits for the answer */
  async start(
    { claims, secret, token }: Authentic,
    address: string | undefined,
    sdp: string,
    isWaiting: () => boolean,
  ): Promise<WhipAnswered> {
    const tracks = declareTracks(sdp, claims.permissions);
    await this.#assertNotEncrypted(claims);
    const client = this.deps.clients.open(address, secret);
    try {
      const welcome = await client.ask({ type: 'join', token, autoSubscribe: false, requireMedia: true });
      if (welcome.type !== 'welcome') throw failed(client, welcome);
      const { offer, answer } = await this.#publish(client, sdp, tracks);
      // Without its answer the client cannot end the session.
      if (!isWaiting()) throw whipError('UNAVAILABLE');
      return {
        status: 201,
        headers: {
          'content-type': SDP_TYPE,
          location: `${WHIP_PATH}/${welcome.sessionId}`,
          etag: entityTag(offer),
          link: iceLinks(welcome.iceServers),
          'accept-patch': FRAGMENT_TYPE,
        },
        text: answer,
      };
    } catch (error) {
      await client.leave();
      throw error;
    }
  }

  /** ICE servers for a client that gathers its candidates before it posts: they last a minute. */
  async iceServers({ token }: Authentic, address: string | undefined): Promise<string[]> {
    const client = this.deps.clients.open(address, undefined);
    const answer = await client.ask({ type: 'test', token });
    if (answer.type !== 'iceServers') throw failed(client, answer);
    return iceLinks(answer.iceServers);
  }

  async patch(
    { claims, secret }: Authentic,
    address: string | undefined,
    { sessionId, match, body }: { sessionId: string; match: string | undefined; body: string },
  ): Promise<WhipAnswered> {
    this.#take(claims);
    const fragment = readFragment(body);
    if (match === undefined) throw whipError('PRECONDITION_REQUIRED');
    const found = await this.#find(claims, sessionId, secret);
    const { whip } = (found.media ?? {}) as Partial<MediaRecord>;
    if (whip === undefined || whip === null) throw whipError('UNAVAILABLE');
    const { credentials } = fragment;
    const restarts = credentials !== null && credentials.ufrag !== credentialsIn(whip.offer).ufrag;
    const tags = match.split(',').map((tag) => tag.trim());
    if (!tags.includes('*') && (restarts || !tags.includes(entityTag(whip.offer)))) {
      throw whipError('PRECONDITION_FAILED');
    }
    if (restarts) return this.#restart(address, secret, found, whip, fragment);
    await this.#trickle(found, whip, fragment);
    return { status: 204, headers: {} };
  }

  async end({ claims, secret }: Authentic, sessionId: string): Promise<WhipAnswered> {
    this.#take(claims);
    for (let tries = 1; tries <= DELETE_TRIES_MAX; tries++) {
      const held = await this.#find(claims, sessionId, secret);
      if (!(await this.deps.writes.end(held, held.roomId, 'left'))) continue;
      // The gateway that holds the session does the same, unless it is gone.
      const { nodeId, janusSession } = (held.media ?? {}) as Partial<MediaRecord>;
      const node = this.deps.places.up(nodeId ?? null);
      if (janusSession !== undefined) await node?.destroySession(janusSession).catch(() => undefined);
      return { status: 200, headers: {} };
    }
    throw whipError('UNAVAILABLE');
  }

  #take({ participantId }: TokenClaims): void {
    const nowMs = performance.now();
    const waitMs = this.#pace.waitMs(participantId, nowMs);
    if (waitMs > 0) throw whipError('RATE_LIMITED', Math.ceil(waitMs / 1000));
    this.#pace.charge(participantId, nowMs);
  }

  async #find({ tenant }: TokenClaims, sessionId: string, secret: string): Promise<MediaOfSession> {
    const which = { sessionId, resumeSecretHash: hashOf(secret) };
    const found = await findSessionBySecret(this.deps.database.sql, tenant, which);
    if (found === null) throw whipError('SESSION_NOT_FOUND');
    return found;
  }

  /** Before the join, so that a refused encoder leaves no session and no event. The publication checks it again. */
  async #assertNotEncrypted({ tenant, roomId, participantId }: TokenClaims): Promise<void> {
    if (this.deps.arrivalLimits.waitMs(participantId) > 0) return;
    const room = await findRoom(this.deps.database.sql, tenant, roomId);
    if (room?.encryption === 'required') throw whipError('ROOM_ENCRYPTED');
  }

  /** The record is written before the answer: the next request may reach another gateway. */
  async #publish(
    client: WhipClient,
    offer: string,
    tracks: WhipRecord['tracks'],
  ): Promise<{ offer: string; answer: string }> {
    const published = await client.ask({ type: 'publish', sdp: offer, tracks: [...tracks] });
    if (published.type !== 'published') throw failed(client, published);
    await this.deps.mediaWrites.flush();
    return { offer, answer: published.sdp };
  }

  async #trickle({ media }: MediaOfSession, { handle }: WhipRecord, { candidates }: IceFragment): Promise<void> {
    const { nodeId, janusSession } = media as MediaRecord;
    const node = this.deps.places.up(nodeId);
    if (node === null) throw whipError('UNAVAILABLE');
    try {
      if (candidates.length > 0) await node.addCandidates({ sessionId: janusSession, handleId: handle }, candidates);
    } catch (error) {
      if (error instanceof MediaError) throw whipError('UNAVAILABLE', null, error);
      throw error;
    }
  }

  async #restart(
    address: string | undefined,
    secret: string,
    { sessionId, roomId, media }: MediaOfSession,
    { offer, tracks }: WhipRecord,
    { credentials, candidates }: IceFragment,
  ): Promise<WhipAnswered> {
    // Nothing can be taken over before media has flowed, and the session would be lost.
    if (credentials === null || (media as MediaRecord).publisher === null) throw whipError('UNAVAILABLE');
    const client = this.deps.clients.open(address, secret);
    const peers = ['publisher' as const];
    const resume = { sessionId, roomId, resumeSecret: secret, autoSubscribe: false, peers };
    const welcome = await client.ask({ type: 'resume', ...resume });
    if (welcome.type !== 'welcome') throw failed(client, welcome);
    const published = await this.#publish(client, restartOffer(offer, credentials), tracks);
    for (const candidate of candidates) {
      if (client.ending !== null) break;
      await this.deps.sessions.of(client)?.media.publisher.handle?.addCandidate(candidate);
    }
    const headers = { 'content-type': FRAGMENT_TYPE, etag: entityTag(published.offer) };
    return { status: 200, headers, text: fragmentOf(published.answer) };
  }
}

/** The secret that resumes the session. Every gateway can derive it from the token of a request. */
function secretOf(token: string): string {
  return createHash('sha256').update(`whip:${token}`).digest('base64url');
}

function failed({ ending }: WhipClient, answer: WhipAnswer): Error {
  if (answer.type === 'closing') return errorOfAnswer(answer);
  // A request fails because the session has ended: the end says more.
  if (answer.type === 'error') return errorOfAnswer(ending === null ? answer : { type: 'closing', reason: ending });
  return new Error(`the gateway answered ${answer.type}`);
}

type IceServers = Extract<WhipAnswer, { type: 'iceServers' }>['iceServers'];

/** RFC 9725, section 4.6. */
function iceLinks(servers: IceServers): string[] {
  return servers.flatMap(({ urls, username, credential }) =>
    urls.map((url) => {
      const access = username === undefined ? '' : `; username="${username}"; credential="${credential}"`;
      return `<${url}>; rel="ice-server"${access}${access === '' ? '' : '; credential-type="password"'}`;
    }),
  );
}
