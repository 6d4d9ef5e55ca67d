import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import {
  MediaError,
  type IceCandidate,
  type MediaNodeEvents,
  type MediaRoom,
  type RemoteFeed,
  type RoomRecording,
} from '../types.js';
import { DEFAULT_DEADLINES, JanusConnection, type JanusDeadlines } from './connection.js';
import { JanusHandle, trickle } from './handle.js';
import { isJanusError, JANUS } from './messages.js';
import { janusRooms, streamsOfFeed } from './rooms.js';
import { MediaSession } from './session.js';
import { videoRoomProbe } from './probe.js';
import { isOutdated, JANUS_VERSION_MIN, versionIn } from './version.js';

export interface MediaNodeOptions {
  id: string;
  /** Its WebSocket interface, `ws://host:port`. */
  url: string;
  /** Janus' `api_secret`, which every request carries. */
  apiSecret: string;
  /** The VideoRoom plug-in's `admin_key`, which requests to create or list rooms carry. */
  adminKey: string;
  /** From 0 up to 1. Spreads the reconnections of many processes. */
  random: () => number;
  /** Whether a Janus before {@link JANUS_VERSION_MIN} may be used. By default the node stays down. */
  allowOutdated?: boolean | undefined;
  deadlines?: Partial<JanusDeadlines>;
}

const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 2_000;

interface Standing {
  connection: JanusConnection;
  /** Session of the room requests and the pings. */
  control: MediaSession;
  /** Asks VideoRoom, and resolves once it has answered. */
  probe: () => Promise<void>;
  rooms: ReturnType<typeof janusRooms>;
}

/**
 * A media server (a node): Janus with its VideoRoom plug-in (`string_ids`, `admin_key`). Every call has a deadline and
 * rejects with a {@link MediaError}, so no caller waits for a server that does not answer.
 */
export class MediaNode extends EventEmitter<MediaNodeEvents> {
  readonly id: string;
  readonly #deadlines: JanusDeadlines;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #standing: Standing | undefined;
  #version: string | null = null;
  #absence: unknown;
  #downSinceMs = performance.now();

  constructor(private readonly options: MediaNodeOptions) {
    super();
    // Each waiting caller adds a listener: a large number of listeners is no leak.
    this.setMaxListeners(0);
    this.id = options.id;
    this.#deadlines = { ...DEFAULT_DEADLINES, ...options.deadlines };
    this.#running = this.#run();
  }

  /** `up` while the connection is open and the server, with its VideoRoom plug-in, answers pings. Starts as `down`. */
  get state(): 'up' | 'down' {
    return this.#standing?.connection.isOpen === true ? 'up' : 'down';
  }

  /** The version of the Janus that answered last, even if the node refused it; null until one has answered. */
  get version(): string | null {
    return this.#version;
  }

  get isOutdated(): boolean {
    return this.#version !== null && isOutdated(this.#version);
  }

  /** How long the node has been down, in milliseconds; 0 while it is up. */
  get downForMs(): number {
    return this.#standing === undefined ? performance.now() - this.#downSinceMs : 0;
  }

  /**
   * Whether the last attempt to connect was refused: the machine answers, and no Janus listens there. A busy or frozen
   * Janus refuses nothing, because the kernel accepts connections for it.
   */
  get isRefusing(): boolean {
    return this.#standing === undefined && isConnectionRefused(this.#absence);
  }

  /** Resolves once the node is up; rejects after the deadline. The node keeps trying to connect in either case. */
  async untilUp(deadlineMs: number): Promise<void> {
    if (this.state === 'up') return;
    if (this.#closing.signal.aborted) throw this.#away();
    // Not `AbortSignal.any` with `AbortSignal.timeout`: Node 20 may collect the timeout as garbage, and it never fires.
    const waiting = new AbortController();
    const abort = (): void => waiting.abort();
    const timer = setTimeout(abort, deadlineMs);
    this.#closing.signal.addEventListener('abort', abort, { once: true });
    try {
      await once(this, 'up', { signal: waiting.signal });
    } catch {
      throw this.#away();
    } finally {
      clearTimeout(timer);
      this.#closing.signal.removeEventListener('abort', abort);
    }
  }

  async ensureRoom(roomId: string): Promise<void> {
    await this.#up().rooms.ensure(roomId);
  }

  /** Destroys the room, removes everyone in it, and verifies that the room is gone. */
  async destroyRoom(roomId: string): Promise<'destroyed' | 'absent'> {
    return this.#up().rooms.destroy(roomId);
  }

  /** Every room on this node, including rooms of other clients of the server. */
  async listRooms(): Promise<MediaRoom[]> {
    return this.#up().rooms.list();
  }

  /** The feeds in a room, including feeds that publish nothing at the moment. Empty if the room does not exist. */
  async listFeeds(roomId: string): Promise<string[]> {
    return this.#up().rooms.feeds(roomId);
  }

  /** Removes a feed, whichever process owns it. `absent` if there is no such feed. */
  async removeFeed(roomId: string, feedId: string): Promise<'removed' | 'absent'> {
    return this.#up().rooms.removeFeed(roomId, feedId);
  }

  /** Stops (`muted`) or resumes the forwarding of one stream, whatever its publisher sends. */
  async moderate(roomId: string, feedId: string, mid: string, muted: boolean): Promise<void> {
    await this.#up().rooms.moderate(roomId, feedId, mid, muted);
  }

  /**
   * Starts or stops the recording of all streams of a room, later ones included.
   * @param how null stops the recording.
   * @returns false if the server has no such room
   */
  async record(roomId: string, how: RoomRecording | null): Promise<boolean> {
    return this.#up().rooms.record(roomId, how);
  }

  /**
   * Receives a feed of the same room from another node, from now on.
   * @returns the mids of its streams; the place of each is its mid on this node
   * @throws MediaError `no_such_feed` if it publishes nothing there (any more). After any failure, both nodes may have
   *   their part of the forward.
   */
  async receiveFrom(from: MediaNode, roomId: string, feedId: string, remote: RemoteFeed): Promise<string[]> {
    const { hostname } = new URL(this.options.url);
    const streams = await streamsOfFeed(from.#up().control, roomId, feedId);
    const { rooms } = this.#up();
    await rooms.ensure(roomId);
    await rooms.forwards.receive(roomId, remote, streams, this.id);
    await from.#up().rooms.forwards.send(roomId, feedId, remote, this.id, hostname.replace(/^\[|\]$/g, ''));
    return streams.map(({ mid }) => mid);
  }

  /** Requests about forwards to and from this node. @throws MediaError `unavailable` */
  get forwards(): Standing['rooms']['forwards'] {
    return this.#up().rooms.forwards;
  }

  async openSession(): Promise<MediaSession> {
    return MediaSession.create(this.#up().connection);
  }

  /**
   * Takes over a session that any process has opened, with its peers and their running media. The process that held it
   * gets no notice.
   * @throws MediaError `unavailable` if the session does not exist (any more)
   */
  async claimSession(sessionId: number): Promise<MediaSession> {
    return MediaSession.claim(this.#up().connection, sessionId);
  }

  async destroySession(sessionId: number): Promise<'destroyed' | 'absent'> {
    try {
      await this.#up().connection.request({ janus: 'destroy', session_id: sessionId });
      return 'destroyed';
    } catch (error) {
      if (isJanusError(error, JANUS.sessionNotFound)) return 'absent';
      throw error;
    }
  }

  /**
   * Adds remote candidates to a peer of a session that any process holds.
   * @param candidates null marks their end
   * @throws MediaError `closed` or `unavailable` if the peer or session does not exist (any more)
   */
  async addCandidates(
    peer: { sessionId: number; handleId: number },
    candidates: readonly (IceCandidate | null)[],
  ): Promise<void> {
    await this.#up().connection.request({ ...trickle(peer.handleId, candidates), session_id: peer.sessionId });
  }

  /** Requests answers of Janus and of its VideoRoom plug-in within their deadlines, which detects a frozen server. */
  async ping(): Promise<void> {
    await this.#ping(this.#up());
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  #up(): Standing {
    if (this.#standing === undefined) throw this.#away();
    return this.#standing;
  }

  #away(): MediaError {
    const reason = this.#closing.signal.aborted ? 'closed' : 'away';
    return new MediaError('unavailable', `The media node ${this.id} is ${reason}`, { cause: this.#absence });
  }

  /** Connects, and reconnects after each loss, until the node is closed. */
  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let failures = 0;
    while (!signal.aborted) {
      const standing = await this.#connect().catch((error: unknown) => {
        this.#absence = error;
      });
      if (standing !== undefined) {
        failures = 0;
        this.#standing = standing;
        this.emit('up');
        const error = await standing.connection.ended;
        this.#absence = error;
        this.#downSinceMs = performance.now();
        this.#standing = undefined;
        // Closing the node is not a loss.
        if (!this.#closing.signal.aborted) this.emit('down', error);
      }
      failures += 1;
      const pauseMs = reconnectDelayMs(failures, this.options.random);
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #connect(): Promise<Standing> {
    const { url, apiSecret, adminKey } = this.options;
    const connection = await JanusConnection.open({ url, apiSecret, deadlines: this.#deadlines }, this.#closing.signal);
    try {
      await this.#checkVersion(connection);
      const control = await MediaSession.create(connection);
      const handle = new JanusHandle(control, await control.attach('control'));
      // Room requests and pings need this handle, so its end closes the connection.
      handle.on('closed', (reason) => connection.close(`control handle ended: ${reason}`));
      const rooms = janusRooms(handle, adminKey);
      const makeRoom = adminKey === '' ? null : (roomId: string) => rooms.ensure(roomId);
      const probe = videoRoomProbe(handle, makeRoom, this.#deadlines.videoRoomMs);
      const standing = { connection, control, probe, rooms };
      // The core of a Janus whose VideoRoom is frozen answers all the same.
      await probe();
      void this.#keepPinging(standing);
      return standing;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async #checkVersion(connection: JanusConnection): Promise<void> {
    const version = versionIn(await connection.request({ janus: 'info' }));
    const isNews = version !== this.#version;
    this.#version = version;
    if (isNews && this.isOutdated) this.emit('outdated', version);
    if (!this.isOutdated || this.options.allowOutdated === true) return;
    throw new MediaError('outdated', `Janus ${version} is older than ${JANUS_VERSION_MIN}`);
  }

  async #ping({ control, probe }: Standing): Promise<void> {
    const core = control.request({ janus: 'keepalive' }, { name: 'ping', deadlineMs: this.#deadlines.pingMs });
    await Promise.all([core, probe()]);
  }

  /** Pings until the connection has ended. Ends it when a ping stays unanswered. */
  async #keepPinging(standing: Standing): Promise<void> {
    const { connection } = standing;
    const ended = new AbortController();
    void connection.ended.then(() => ended.abort());
    for (;;) {
      await delay(this.#deadlines.pingEveryMs, undefined, { signal: ended.signal }).catch(() => undefined);
      if (ended.signal.aborted) return;
      await this.#ping(standing).catch((error: unknown) => connection.close('no answer to a ping', error));
    }
  }
}

/** Whether the error, or a cause of it, is a refused connection. If a name has several addresses, all must refuse. */
export function isConnectionRefused(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, errors, cause } = error as { code?: unknown; errors?: unknown; cause?: unknown };
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(isConnectionRefused);
  return code === 'ECONNREFUSED' || isConnectionRefused(cause);
}

/** The pause before a reconnection: doubles from 100 ms to 2 s, less a random part of up to one half. */
export function reconnectDelayMs(failures: number, random: () => number): number {
  const full = Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** Math.min(failures - 1, 16));
  return Math.round(full * (1 - random() / 2));
}
