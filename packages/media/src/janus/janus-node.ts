import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import {
  MediaError,
  type MediaNode,
  type MediaNodeEvents,
  type MediaPublisher,
  type MediaRoom,
  type MediaSubscriber,
} from '../media-node.js';
import { DEFAULT_DEADLINES, JanusConnection, type JanusDeadlines } from './janus-connection.js';
import { JanusHandle } from './janus-handle.js';
import { JanusPublisher } from './janus-publisher.js';
import { janusRooms, publishedStreams } from './janus-rooms.js';
import { JanusSubscriber } from './janus-subscriber.js';

export interface JanusNodeOptions {
  /** Its name in MEDIA_NODES. */
  id: string;
  /** Its WebSocket interface, `ws://host:port`. */
  url: string;
  /** Janus' `api_secret`, asked in every request. */
  apiSecret: string;
  /** The VideoRoom plug-in's `admin_key`, asked of whoever creates rooms. */
  adminKey: string;
  /** From 0 up to 1: spreads the reconnections of many processes. */
  random: () => number;
  /** Most that one publisher may send, over all of its video, in bits per second. Default 2500000. */
  videoBitrateMaxBps?: number;
  deadlines?: Partial<JanusDeadlines>;
}

const VIDEO_BITRATE_MAX_BPS = 2_500_000;
const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 2_000;

interface Standing {
  connection: JanusConnection;
  control: JanusHandle;
  rooms: ReturnType<typeof janusRooms>;
}

/** A media node that is a Janus 1.1.2 or later, with its VideoRoom plug-in (`string_ids`, `admin_key`). */
export class JanusNode extends EventEmitter<MediaNodeEvents> implements MediaNode {
  readonly id: string;
  readonly #options: JanusNodeOptions;
  readonly #deadlines: JanusDeadlines;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #standing: Standing | undefined;
  /** Why it is not up. */
  #absence: unknown;

  constructor(options: JanusNodeOptions) {
    super();
    // One for each process that waits for it; not a leak.
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
    const signal = AbortSignal.any([AbortSignal.timeout(deadlineMs), this.#closing.signal]);
    try {
      await once(this, 'up', { signal });
    } catch {
      throw this.#away();
    }
  }

  async ensureRoom(roomId: string): Promise<void> {
    await this.#up().rooms.ensure(roomId);
  }

  async destroyRoom(roomId: string): Promise<'destroyed' | 'absent'> {
    return this.#up().rooms.destroy(roomId);
  }

  async hasRoom(roomId: string): Promise<boolean> {
    return this.#up().rooms.exists(roomId);
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

  async attachPublisher(roomId: string, feedId: string): Promise<MediaPublisher> {
    return JanusPublisher.attach(this.#up().connection, roomId, feedId, this.#deadlines.requestMs);
  }

  async attachSubscriber(roomId: string, label: string): Promise<MediaSubscriber> {
    const { connection } = this.#up();
    const published = async () => {
      const probe = await JanusHandle.attach(connection, `${label} looks`);
      try {
        return await publishedStreams(probe, roomId, randomUUID());
      } finally {
        await probe.detach();
      }
    };
    return JanusSubscriber.attach(connection, { roomId, label, offerWithinMs: this.#deadlines.offerMs, published });
  }

  async ping(): Promise<void> {
    await this.#up().connection.ping();
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

  /** Connects, stays connected, and connects again, until it is closed. */
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
        // Who closes it has lost nothing.
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
      // Without this handle nothing can be asked about rooms: its end is the connection's.
      const control = await JanusHandle.attach(connection, 'control', {
        onNotice: (notice) => {
          if (notice.janus === 'detached') connection.close();
        },
        onLost: () => undefined,
      });
      return { connection, control, rooms: janusRooms(control, { adminKey, videoBitrateMaxBps }) };
    } catch (error) {
      connection.close();
      throw error;
    }
  }
}

/** Doubles from 100 ms to 2 s, of which up to a half is taken off at random. */
export function reconnectDelayMs(failures: number, random: () => number): number {
  const full = Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** Math.min(failures - 1, 16));
  return Math.round(full * (1 - random() / 2));
}
