import { bucketTimes, TokenBucket, type Permission } from '@callplane/core';
import type { HeldSession, SessionState } from '@callplane/db';
import type { CloseReason, ServerMessage } from '@callplane/protocol';
import type { Client } from '../clients/client.js';
import type { SessionMedia } from '../media/session-media.js';
import type { RoomMember } from '../rooms/changes.js';
import type { Room } from '../rooms/room.js';

export type SessionStateName =
  /** Its row is written by a join. The client does not know the resume secret before the welcome. */
  | 'joining'
  /** Its row is written by a resumption. The welcome follows. */
  | 'resuming'
  /** In the lobby. Its room does not have it as a member yet. */
  | 'waiting'
  | 'connected'
  /** Without a client. Another one may resume it. */
  | 'grace'
  | 'ending'
  /** This gateway has let go of it, for whatever reason. */
  | 'gone';

export type SessionEvent =
  | 'welcomed'
  /** Welcomed in the lobby. */
  | 'held'
  /** The client ended in a way after which it may resume. */
  | 'lost'
  /** The client ended because this gateway drains. */
  | 'drained'
  /** The client ended in a way after which it cannot resume. */
  | 'closedForGood'
  | 'leave'
  /** Another client of this gateway has resumed the session. */
  | 'resumedHere'
  | 'resumedElsewhere'
  | 'graceOver'
  | 'endWritten'
  /** PostgreSQL says that this gateway does not hold the session any more, or it could not be asked. */
  | 'notHeld'
  /** PostgreSQL says that the session has ended, with a reason. */
  | 'ended';

const OVER = { resumedElsewhere: 'gone', notHeld: 'gone', ended: 'gone' } as const;
const KEPT = { ...OVER, resumedHere: 'resuming' } as const;
const WELCOMED = { ...KEPT, lost: 'grace', drained: 'gone', closedForGood: 'ending', leave: 'ending' } as const;

/** The state to which each event leads. An event that is missing is a defect: it is logged, and changes nothing. */
export const TRANSITIONS: Readonly<Record<SessionStateName, Partial<Record<SessionEvent, SessionStateName>>>> = {
  joining: {
    ...OVER,
    welcomed: 'connected',
    held: 'waiting',
    lost: 'ending',
    drained: 'ending',
    closedForGood: 'ending',
  },
  resuming: {
    ...{ ...KEPT, welcomed: 'connected', held: 'waiting' },
    ...{ lost: 'grace', drained: 'grace', closedForGood: 'ending' },
  },
  waiting: { ...WELCOMED, welcomed: 'connected' },
  connected: WELCOMED,
  grace: { ...KEPT, drained: 'gone', graceOver: 'ending' },
  // The client of a session that leaves may end first.
  ending: { ...KEPT, lost: 'ending', drained: 'ending', closedForGood: 'ending', endWritten: 'gone' },
  // Results that arrive after this gateway has released the session have no effect.
  gone: {},
};

/** How long the client of a session that leaves waits for PostgreSQL, in milliseconds. */
const LEAVE_WITHIN_MS = 1000;

export interface SessionOver {
  reason: CloseReason;
  cause: string;
}

export interface SessionFacts {
  sessionId: string;
  participantId: string;
  permissions: readonly Permission[];
  connectionNumber: number;
  autoSubscribe: boolean;
}

/** Limits of a client's requests. */
export interface RequestLimits {
  readonly messages: TokenBucket;
  readonly metadata: TokenBucket;
}

/** The registry that holds a session. Its methods return at once. */
export interface SessionPort {
  readonly reconnectGraceMs: number;
  /** Full buckets, for a client that has just come. */
  newLimits(): RequestLimits;
  /** How much longer the grace period lasts when it would be over, in milliseconds; 0 without an outage. */
  graceLeftMs(): number;
  markLost(session: Session): void;
  /** Writes the session's end. Dispatches `endWritten` or `notHeld`. */
  writeEnd(session: Session, reason: 'left' | 'connection_lost'): void;
  /** Called once. @param over why the session is over; null if another instance may continue it */
  onGone(session: Session, mediaEnded: Promise<void>, over: SessionOver | null): void;
  onUnexpected(session: Session, event: SessionEvent): void;
}

export class Session implements RoomMember {
  readonly sessionId: string;
  readonly roomId: string;
  readonly participantId: string;
  readonly media: SessionMedia;
  readonly isHeadless: boolean;
  readonly qualityBucket = new TokenBucket(bucketTimes({ perSecond: 0.5, burst: 3 }));
  /** Limits the requests for key frames: each costs every publisher that the client receives. */
  readonly refreshBucket = new TokenBucket(bucketTimes({ perSecond: 0.5, burst: 4 }));
  /** Limits the restarts of ICE: each costs the media server an offer. */
  readonly restartBucket = new TokenBucket(bucketTimes({ perSecond: 0.5, burst: 6 }));
  autoSubscribe: boolean;
  state: SessionStateName;
  /** Permissions of the token, unless the server has set others. */
  permissions: readonly Permission[];
  connectionNumber: number;
  client: Client | null;
  limits: RequestLimits;
  /** Sends the welcome that follows the lobby. */
  #welcome: (() => void) | undefined;
  #graceTimer: NodeJS.Timeout | undefined;
  #afterGone: (() => void) | undefined;

  constructor(
    private readonly port: SessionPort,
    readonly room: Room,
    client: Client,
    facts: SessionFacts & { isResumed: boolean },
    createMedia: (session: Session) => SessionMedia,
  ) {
    this.sessionId = facts.sessionId;
    this.roomId = room.roomId;
    this.participantId = facts.participantId;
    this.permissions = facts.permissions;
    this.autoSubscribe = facts.autoSubscribe;
    this.connectionNumber = facts.connectionNumber;
    this.client = client;
    this.isHeadless = client.isHeadless === true;
    this.limits = port.newLimits();
    this.state = facts.isResumed ? 'resuming' : 'joining';
    this.media = createMedia(this);
    if (facts.isResumed) this.media.expectTakeOver();
  }

  get isConnected(): boolean {
    return this.state === 'connected';
  }

  get isWaiting(): boolean {
    return this.state === 'waiting';
  }

  /** Keeps a client in the lobby. @param welcome is called when the client is let in */
  hold(welcome: () => void): void {
    this.#welcome = welcome;
    this.dispatch('held');
  }

  /** The room says that the session is not in the lobby any more. A client that is away learns of it when it resumes. */
  onAdmitted(): void {
    if (this.isWaiting) this.#welcome?.();
  }

  get isResumable(): boolean {
    return TRANSITIONS[this.state].resumedHere !== undefined;
  }

  get isGone(): boolean {
    return this.state === 'gone';
  }

  /** Fencing token of this session's writes: only the connection that holds the session may write. */
  get held(): HeldSession {
    return { sessionId: this.sessionId, connection: this.connectionNumber };
  }

  /** Sends a message, unless the client is waiting for the welcome, which contains the same facts. */
  send(message: ServerMessage): void {
    if (this.isConnected) this.client?.sendText(JSON.stringify(message));
  }

  sendText(text: string): void {
    if (this.isConnected) this.client?.sendText(text);
  }

  sendPart(text: string): boolean {
    return !this.isConnected || this.client === null || this.client.sendPart(text);
  }

  /** Takes over changes by the server: permissions and mutes. */
  onOwn({ permissions }: SessionState): void {
    if (this.isGone) return;
    const hasChanged = permissions.join() !== this.permissions.join();
    this.permissions = permissions;
    if (hasChanged) this.send({ type: 'permissions', permissions: [...permissions] });
    this.media.onOwn();
  }

  /** @param over for `endWritten` and `ended`: the close reason that the client gets */
  dispatch(event: SessionEvent, over: SessionOver | null = null): void {
    const from = this.state;
    if (from === 'gone') return;
    const to = TRANSITIONS[from][event];
    if (to === undefined) {
      this.port.onUnexpected(this, event);
      return;
    }
    this.state = to;
    clearTimeout(this.#graceTimer);
    if (event === 'lost' || event === 'drained' || event === 'closedForGood') this.client = null;
    if (to === 'gone') this.#letGo(from, event, over);
    else if (to === 'resuming') {
      this.#takeClient()?.drop();
      this.media.onConnectionLost();
    } else if (to === 'grace') {
      this.media.onConnectionLost();
      this.#startGrace(this.port.reconnectGraceMs);
      this.port.markLost(this);
    } else if (to === 'ending' && from !== 'ending') {
      if (event === 'closedForGood' && from !== 'joining') this.media.onConnectionLost();
      this.port.writeEnd(this, event === 'leave' ? 'left' : 'connection_lost');
    }
  }

  /** Another client of this instance has resumed the session. The welcome follows. */
  resumeHere(client: Client, connectionNumber: number): void {
    this.dispatch('resumedHere');
    if (this.state !== 'resuming') return;
    this.client = client;
    this.limits = this.port.newLimits();
    this.connectionNumber = connectionNumber;
  }

  /** The client does not wait for PostgreSQL longer than LEAVE_WITHIN_MS: the end is written once it is back. */
  async leave(): Promise<void> {
    const client = this.client;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LEAVE_WITHIN_MS);
      this.#afterGone = () => {
        clearTimeout(timer);
        resolve();
      };
      this.dispatch('leave');
    });
    client?.close('left', { cause: 'The client left.' });
  }

  /** Media ends only after PostgreSQL has said that the session is over: another gateway may have claimed it. */
  #letGo(from: SessionStateName, event: SessionEvent, over: SessionOver | null): void {
    const isOver = event === 'ended' || event === 'endWritten';
    if (isOver && over === null) throw new Error(`${this.sessionId} is over without a reason`);
    if (event === 'drained' && (from === 'connected' || from === 'waiting')) this.port.markLost(this);
    const client = this.#takeClient();
    if (isOver && over !== null) client?.close(over.reason, { cause: over.cause });
    else client?.drop();
    if (!isOver) this.media.abandon();
    const mediaEnded = isOver ? this.media.destroy() : Promise.resolve();
    this.port.onGone(this, mediaEnded, isOver ? over : null);
    this.#afterGone?.();
  }

  #startGrace(milliseconds: number): void {
    this.#graceTimer = setTimeout(() => {
      const leftMs = this.port.graceLeftMs();
      if (leftMs > 0) this.#startGrace(leftMs);
      else this.dispatch('graceOver');
    }, milliseconds);
  }

  /** Clears the client first, so that its end does not dispatch `lost`. */
  #takeClient(): Client | null {
    const client = this.client;
    this.client = null;
    return client;
  }
}
