import type { Permission, Tenant } from '@callplane/core';
import type { HeldSession, SessionState } from '@callplane/db';
import type { ServerMessage } from '@callplane/protocol';
import type { Connection } from '../connections/connection.js';
import { TokenBucket } from '../connections/token-bucket.js';
import type { SessionMedia } from '../media/session-media.js';
import type { Room, RoomMember } from '../rooms/room.js';
import { IGNORE, NEVER } from '../states/state-table.js';
import type { SessionFacts, SessionOver } from './session-facts.js';
import { Grace, type GracePeriod } from './grace.js';
import { SESSION_STATES, type SessionAction, type SessionEvent, type SessionStateName } from './session-states.js';

export type { SessionFacts, SessionOver } from './session-facts.js';

/** How long the client of a session that leaves waits for PostgreSQL, in milliseconds. */
const LEAVE_WITHIN_MS = 1000;

/** What a session needs of the registry that holds it. Its methods return at once. */
export interface SessionPort extends GracePeriod {
  /** Marks the session as disconnected in PostgreSQL. */
  markLost(session: Session): void;
  /** Writes the session's end. Dispatches `endWritten` or `notHeld`. */
  writeEnd(session: Session, reason: 'left' | 'connection_lost'): void;
  /**
   * Called once, when this instance has let go of the session.
   * @param mediaEnded resolves when the session's media is released
   * @param over why the session is over; null if another instance may go on with it
   */
  onGone(session: Session, mediaEnded: Promise<void>, over: SessionOver | null): void;
  /** Called for an event that cannot happen in the session's state. */
  onUnexpected(session: Session, event: SessionEvent): void;
}

/** A session that this instance holds. `SESSION_STATES` says what each event does; this class runs the actions. */
export class Session implements RoomMember {
  readonly sessionId: string;
  readonly tenant: Tenant;
  readonly roomId: string;
  readonly participantId: string;
  readonly room: Room;
  readonly media: SessionMedia;
  /** Limits the reports of quality to one in 2 s. */
  readonly qualityBucket = new TokenBucket({ perSecond: 0.5, burst: 3 }, performance.now());
  /** Limits the requests for key frames: each costs every publisher that the client receives. */
  readonly refreshBucket = new TokenBucket({ perSecond: 0.5, burst: 4 }, performance.now());
  /** Limits the restarts of ICE: each costs the media server an offer. */
  readonly restartBucket = new TokenBucket({ perSecond: 0.5, burst: 6 }, performance.now());
  autoSubscribe: boolean;
  readonly #port: SessionPort;
  #state: SessionStateName;
  #permissions: readonly Permission[];
  #connectionNumber: number;
  #connection: Connection | null;
  readonly #grace = new Grace();
  #afterGone: (() => void) | undefined;

  constructor(
    port: SessionPort,
    room: Room,
    connection: Connection,
    facts: SessionFacts & { isResumed: boolean },
    createMedia: (session: Session) => SessionMedia,
  ) {
    this.#port = port;
    this.room = room;
    this.sessionId = facts.sessionId;
    this.tenant = facts.tenant;
    this.roomId = facts.roomId;
    this.participantId = facts.participantId;
    this.#permissions = facts.permissions;
    this.autoSubscribe = facts.autoSubscribe;
    this.#connectionNumber = facts.connectionNumber;
    this.#connection = connection;
    this.#state = facts.isResumed ? 'resuming' : 'joining';
    this.media = createMedia(this);
    if (facts.isResumed) this.media.expectTakeOver();
  }

  get state(): SessionStateName {
    return this.#state;
  }

  /** Those of the token, unless the server has set others. */
  get permissions(): readonly Permission[] {
    return this.#permissions;
  }

  get connection(): Connection | null {
    return this.#connection;
  }

  /** Number of the session's current connection. Each resumption increments it. */
  get connectionNumber(): number {
    return this.#connectionNumber;
  }

  /** Whether a change of the room's tracks can matter to the client. */
  get wantsTracks(): boolean {
    return this.media.wantsTracks;
  }

  get isConnected(): boolean {
    return this.#state === 'connected';
  }

  /** Whether another connection to this instance may take the session over. */
  get isResumable(): boolean {
    return SESSION_STATES[this.#state].resumedHere !== NEVER;
  }

  get isGone(): boolean {
    return this.#state === 'gone';
  }

  /** Fencing token of this session's writes: only the connection that holds the session may write. */
  get held(): HeldSession {
    return { sessionId: this.sessionId, connection: this.#connectionNumber };
  }

  /** Where its media is; see `SessionMedia`. */
  get mediaState(): unknown {
    return this.media.mediaState;
  }

  /** Sends a message, unless the client is waiting for the welcome, which contains what the message says. */
  send(message: ServerMessage): void {
    if (this.isConnected) this.#connection?.send(message);
  }

  sendText(text: string): void {
    if (this.isConnected) this.#connection?.sendText(text);
  }

  /** Takes over what the server has changed: permissions and mutes. */
  onOwn({ permissions }: SessionState): void {
    if (this.isGone) return;
    const hasChanged = permissions.join() !== this.#permissions.join();
    this.#permissions = permissions;
    if (hasChanged) this.send({ type: 'permissions', permissions: [...permissions] });
    this.media.onOwn();
  }

  onTracks(): void {
    if (!this.isGone) this.media.onTracks();
  }

  onPlacement(): void {
    if (!this.isGone) this.media.onPlacement();
  }

  /** @param over for `endWritten` and `ended`: the close reason that the client gets */
  dispatch(event: SessionEvent, over: SessionOver | null = null): void {
    const cell = SESSION_STATES[this.#state][event];
    if (cell === IGNORE) return;
    if (cell === NEVER) {
      this.#port.onUnexpected(this, event);
      return;
    }
    this.#state = cell.to;
    let mediaEnded = Promise.resolve();
    for (const action of cell.actions) mediaEnded = this.#run(action, over) ?? mediaEnded;
    if (cell.to !== 'gone') return;
    const isOver = cell.actions.some((action) => action === 'destroyMedia');
    this.#port.onGone(this, mediaEnded, isOver ? over : null);
    this.#afterGone?.();
  }

  /** The client resumed the session over another connection to this instance. The welcome follows. */
  resumeHere(connection: Connection, connectionNumber: number): void {
    this.dispatch('resumedHere');
    if (this.#state !== 'resuming') return;
    this.#connection = connection;
    this.#connectionNumber = connectionNumber;
  }

  /**
   * Ends the session and closes its connection with the reason `left`. The client does not wait for PostgreSQL longer
   * than LEAVE_WITHIN_MS: the end is written once PostgreSQL is back.
   */
  async leave(): Promise<void> {
    const connection = this.#connection;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LEAVE_WITHIN_MS);
      this.#afterGone = () => {
        clearTimeout(timer);
        resolve();
      };
      this.dispatch('leave');
    });
    connection?.close('left', { cause: 'The client left.' });
  }

  /** @returns when the media is released, for the actions that end it */
  #run(action: SessionAction, over: SessionOver | null): Promise<void> | undefined {
    switch (action) {
      case 'detach':
        this.#connection = null;
        return;
      case 'dropConnection':
        this.#takeConnection()?.drop();
        return;
      case 'closeConnection':
        if (over === null) throw new Error(`${this.sessionId} is over without a reason`);
        this.#takeConnection()?.close(over.reason, { cause: over.cause });
        return;
      case 'pauseMedia':
        this.media.onConnectionLost();
        return;
      case 'markLost':
        this.#port.markLost(this);
        return;
      case 'startGrace':
        this.#grace.start(this.#port, () => this.dispatch('graceOver'));
        return;
      case 'stopGrace':
        this.#grace.stop();
        return;
      case 'writeLeft':
        this.#port.writeEnd(this, 'left');
        return;
      case 'writeLost':
        this.#port.writeEnd(this, 'connection_lost');
        return;
      case 'destroyMedia':
        return this.media.destroy();
      case 'abandonMedia':
        this.media.abandon();
        return;
    }
  }

  /** Clears the connection first, so that closing it does not dispatch `lost`. */
  #takeConnection(): Connection | null {
    const connection = this.#connection;
    this.#connection = null;
    return connection;
  }
}
