import type { TrackState } from '@callplane/db';
import { MediaError, type MediaNode, type MediaSession } from '@callplane/media';
import type { PeerTarget } from '@callplane/protocol';
import type { ClaimOutcome } from '../metrics.js';
import type { MediaDeps, MediaOwner, MediaRecord } from './media-writes.js';
import type { MediaPlace, Where } from './places.js';
import type { Publisher } from './publisher.js';
import type { Subscriber } from './subscriber.js';

/**
 * The session on a media server that holds both peer connections of one participant session, so that another gateway
 * can take over exactly these. The first peer connection opens it: a viewer that receives nothing has no such session.
 */
export class OwnSession {
  #opened: { readonly node: MediaNode; readonly session: MediaSession } | null = null;
  #opening: { node: MediaNode; session: Promise<MediaSession> } | null = null;
  #end: 'destroyed' | 'abandoned' | null = null;

  /** The session; null if there is none, or the media server has ended it. */
  get current() {
    return this.#opened?.session.isOpen === true ? this.#opened : null;
  }

  /**
   * Opens a session on the node, unless there is one.
   * @throws MediaError
   */
  open(node: MediaNode): Promise<MediaSession> {
    const { current } = this;
    if (current?.node === node) return Promise.resolve(current.session);
    if (this.#opening?.node !== node) this.#opening = { node, session: this.#open(node) };
    return this.#opening.session;
  }

  adopt(node: MediaNode, session: MediaSession): void {
    if (this.#end === null) this.#opened = { node, session };
    else if (this.#end === 'destroyed') void session.destroy();
    else session.abandon();
  }

  /** Ends the session with its peer connections. Only for a gateway that holds the participant session. Idempotent. */
  async destroy(): Promise<void> {
    this.#end ??= 'destroyed';
    await this.#opened?.session.destroy();
  }

  /** Forgets the session, which another gateway may have taken over. Idempotent. */
  abandon(): void {
    this.#end ??= 'abandoned';
    this.#opened?.session.abandon();
  }

  async #open(node: MediaNode): Promise<MediaSession> {
    try {
      const session = await node.openSession();
      if (this.#end === null && this.#opening?.node === node) {
        // The peer connections of a room that has moved are gone already.
        void this.#opened?.session.destroy();
        this.#opened = { node, session };
        return session;
      }
      await session.destroy();
      throw new MediaError('closed', 'The session was given up');
    } finally {
      if (this.#opening?.node === node) this.#opening = null;
    }
  }
}

/** The media of a session that a client has resumed at this gateway. */
export interface ResumedMedia {
  media: unknown;
  /** Number of the connection before this resumption. */
  previousConnection: number;
  clientHasPeers: boolean;
  /** The peer connections that the client has, if it said so. */
  clientPeers: readonly PeerTarget[] | undefined;
  /** The last offer that the client has answered; undefined if it did not say. */
  answeredOffer: number | undefined;
  tracks: readonly TrackState[];
}

export interface HandoverParts {
  deps: MediaDeps;
  session: MediaOwner;
  own: OwnSession;
  publisher: Publisher;
  subscriber: Subscriber;
  lost: Set<PeerTarget>;
  /** The session's media server, and the generation of its place. */
  where: () => Where;
}

export function recordOf({ session, own, publisher, subscriber, where }: HandoverParts): MediaRecord | null {
  const opened = own.current;
  const { nodeId, generation } = where();
  if (opened === null || opened.node.id !== nodeId) return null;
  return {
    connection: session.connectionNumber,
    nodeId,
    generation,
    janusSession: opened.session.id,
    publisher: publisher.record,
    subscriber: subscriber.record,
    choices: subscriber.selector.choices,
    ...(session.isHeadless === true ? { whip: publisher.whipRecord } : {}),
  };
}

/**
 * Continues the media that another gateway has handed over, as far as possible.
 * @param mayTakeOver false once the client is welcomed: it may have resumed the session once more
 * @returns null if there is nothing to take over
 */
export async function takeOver(
  { deps, own, publisher, subscriber, lost }: HandoverParts,
  place: MediaPlace | null,
  resumed: ResumedMedia,
  mayTakeOver: () => boolean,
): Promise<ClaimOutcome | null> {
  const record = resumed.media as MediaRecord | null;
  if (record === null || !mayTakeOver()) return null;
  const claimed = await claimSession(deps, record, place, resumed);
  if (typeof claimed === 'string' || place === null) return claimed as ClaimOutcome;
  if (!mayTakeOver()) {
    await claimed.destroy();
    return 'outdated';
  }
  own.adopt(place.node, claimed);
  if (!claimed.isOpen) return 'lost';
  // A peer connection that the client does not have is not lost, unless there are tracks that nothing sends.
  const has = (target: PeerTarget) => resumed.clientPeers?.includes(target) !== false;
  const { publisher: sending, subscriber: receiving } = record;
  const whip = record.whip ?? {};
  const isSending = sending !== null && publisher.claim(place.node, claimed, { ...whip, ...sending }, resumed.tracks);
  if (!isSending && sending !== null) void claimed.detach(sending.handle);
  if (isSending || (!has('publisher') && resumed.tracks.length === 0)) lost.delete('publisher');
  subscriber.selector.restore(record.choices);
  // The client may know another peer connection than the other gateway did.
  const isKnown = receiving !== null && receiving.offerId === resumed.answeredOffer;
  const isReceiving = isKnown && (await subscriber.claim(place.node, claimed, receiving));
  if (!isReceiving && receiving !== null) void claimed.detach(receiving.handle);
  if (isReceiving || !has('subscriber')) lost.delete('subscriber');
  if (!isSending && !isReceiving && lost.size > 0) return 'outdated';
  return isSending === (sending !== null) && isReceiving === (receiving !== null) ? 'continued' : 'partly';
}

/**
 * Claims the session that another gateway has handed over. One that cannot be continued is ended: this gateway has just
 * written the resumption, so no other one holds it.
 */
export async function claimSession(
  { logger }: Pick<MediaDeps, 'logger'>,
  record: MediaRecord,
  place: Pick<MediaPlace, 'node' | 'generation'> | null,
  { previousConnection, clientHasPeers }: Pick<ResumedMedia, 'previousConnection' | 'clientHasPeers'>,
): Promise<MediaSession | Exclude<ClaimOutcome, 'continued' | 'partly'>> {
  if (place === null) return 'lost';
  const { node, generation } = place;
  const { janusSession } = record;
  if (record.nodeId !== node.id || record.generation !== generation) return 'outdated';
  try {
    if (record.connection === previousConnection && clientHasPeers) return await node.claimSession(janusSession);
    await node.destroySession(janusSession);
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    logger.warn('media session not claimed', { janusSession, mediaNodeId: node.id, error });
    // The media server may have carried out the claim, and no other process knows the session any more.
    if (error.code === 'timeout') void node.destroySession(janusSession).catch(() => undefined);
    return 'lost';
  }
  return clientHasPeers ? 'outdated' : 'reset';
}
