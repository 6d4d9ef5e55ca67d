import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { MediaError, type MediaNode, type MediaNodeEvents, type MediaRoom, type MediaSession } from '../media-node.js';
import { DEFAULT_DEADLINES, JanusConnection, type JanusDeadlines } from './janus-connection.js';
import { isJanusError, JANUS } from './janus-errors.js';
import { JanusHandle } from './janus-handle.js';
import { JanusMediaSession } from './janus-media-session.js';
import { janusRooms } from './janus-rooms.js';
import { JanusSession } from './janus-session.js';

export interface JanusNodeOptions {
  /** Its name in MEDIA_NODES or in the registry. */
  id: string;
  /** Its WebSocket interface, `ws://host:port`. */
  url: string;
  /** Janus' `api_secret`, which every request carries. */
  apiSecret: string;
  /** The VideoRoom plug-in's `admin_key`, which requests to create or list rooms carry. */
  adminKey: string;
  /** From 0 up to 1. Spreads the reconnections of many processes. */
  random: () => number;
  /** Upper limit for all video of one publisher together, in bits per second. Default 2500000. */
  videoBitrateMaxBps?: number;
  deadlines?: Partial<JanusDeadlines>;
}

const VIDEO_BITRATE_MAX_BPS = 2_500_000;
const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 2_000;

interface Standing {
  connection: JanusConnection;
  /** Session of the room requests and the pings. */
  control: JanusSession;
  rooms: ReturnType<typeof janusRooms>;
}

/** A media node backed by Janus 1.1.2 or later with its VideoRoom plug-in (`string_ids`, `admin_key`). */
export class JanusNode extends EventEmitter<MediaNodeEvents> implements MediaNode {
  readonly id: string;
  readonly #options: JanusNodeOptions;
  readonly #deadlines: JanusDeadlines;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #standing: Standing | undefined;
  /** The reason why the node is down. */
  #absence: unknown;

  constructor(options: JanusNodeOptions) {
    super();
    // Each waiting caller adds a listener: a large number of listeners is no leak.
    this.setMaxListeners(0);
    this.id = options.id;
    this.#options = options;
    this.#deadlines = { ...DEFAULT_DEADLINES, ...options.deadlines };
    this.#running = this.#run();
  }

  get state(): 'up' | 'down' {
    return this.#standing === undefined ? 'down' : 'up';
  }

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

  async destroyRoom(roomId: string): Promise<'destroyed' | 'absent'> {
    return this.#up().rooms.destroy(roomId);
  }

  async listRooms(): Promise<MediaRoom[]> {
    return this.#up().rooms.list();
  }

  async listFeeds(roomId: string): Promise<string[]> {
    return this.#up().rooms.feeds(roomId);
  }

  async removeFeed(roomId: string, feedId: string): Promise<'removed' | 'absent'> {
    return this.#up().rooms.removeFeed(roomId, feedId);
  }

  async moderate(roomId: string, feedId: string, mid: string, muted: boolean): Promise<void> {
    await this.#up().rooms.moderate(roomId, feedId, mid, muted);
  }

  async openSession(): Promise<MediaSession> {
    return new JanusMediaSession(await JanusSession.create(this.#up().connection), this.#deadlines);
  }

  async claimSession(sessionId: number): Promise<MediaSession> {
    return new JanusMediaSession(await JanusSession.claim(this.#up().connection, sessionId), this.#deadlines);
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

  async ping(): Promise<void> {
    await this.#ping(this.#up().control);
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
        this.#standing = undefined;
        // Closing the node is not a loss.
        if (!this.#closing.signal.aborted) this.emit('down', error);
      }
      failures += 1;
      const pauseMs = reconnectDelayMs(failures, this.#options.random);
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #connect(): Promise<Standing> {
    const { url, apiSecret, adminKey, videoBitrateMaxBps = VIDEO_BITRATE_MAX_BPS } = this.#options;
    const connection = await JanusConnection.open({ url, apiSecret, deadlines: this.#deadlines }, this.#closing.signal);
    try {
      const control = await JanusSession.create(connection);
      // Room requests and pings need this session and its handle, so their end closes the connection.
      void control.ended.then((error) => connection.close('control session ended', error));
      const handle = await JanusHandle.attach(control, 'control', {
        onNotice: (notice) => {
          if (notice.janus === 'detached') connection.close();
        },
        onLost: () => undefined,
      });
      void this.#keepPinging(connection, control);
      return { connection, control, rooms: janusRooms(handle, { adminKey, videoBitrateMaxBps }) };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Requests an acknowledgement. */
  async #ping(control: JanusSession): Promise<void> {
    await control.request({ janus: 'keepalive' }, { name: 'ping', deadlineMs: this.#deadlines.pingMs });
  }

  /** Pings until the connection has ended. Ends it when a ping stays unanswered. */
  async #keepPinging(connection: JanusConnection, control: JanusSession): Promise<void> {
    const ended = new AbortController();
    void connection.ended.then(() => ended.abort());
    for (;;) {
      await delay(this.#deadlines.pingEveryMs, undefined, { signal: ended.signal }).catch(() => undefined);
      if (ended.signal.aborted) return;
      await this.#ping(control).catch((error: unknown) => connection.close('no answer to a ping', error));
    }
  }
}

/** The pause before a reconnection: doubles from 100 ms to 2 s, less a random part of up to one half. */
export function reconnectDelayMs(failures: number, random: () => number): number {
  const full = Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** Math.min(failures - 1, 16));
  return Math.round(full * (1 - random() / 2));
}
