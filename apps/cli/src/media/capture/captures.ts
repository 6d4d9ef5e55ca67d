import { readdir, rm, rmdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { ID_PREFIXES } from '@callplane/core';
import {
  areCapturesNeeded,
  CAPTURE_SILENT_SECONDS,
  saveCapturePass,
  storedCaptures,
  wantedCaptures,
  type StoredCapture,
  type TypedSql,
} from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import type { ObjectStore } from '@callplane/store';
import { isVanished, shipFile, type Shipping } from './ship-file.js';

/** Below this room on the disk, nothing is recorded: a full disk would leave holes without a notice. */
const FREE_BYTES_MIN = 512 * 1024 * 1024;

/**
 * After this time without a key frame, one is requested, in seconds. A file of video begins with one. A browser ignores a
 * request right after another one, so the first passes ask more often.
 */
const KEY_FRAME_SECONDS = 10;
const FIRST_KEY_FRAME_SECONDS = 1;
const FIRST_PASSES = 5;
/** With more rooms that fail, the whole server counts as failing. */
const FAILING_ROOMS_MAX = 100;

/** The file of a feed that the server receives from another one. */
const OF_FORWARD = /-user-.+\+[0-9a-f]{8}-\d+-/;

export interface CaptureDeps {
  db: TypedSql;
  /** @returns false if the media server has no such room */
  record: MediaNode['record'];
  store: Pick<ObjectStore, 'put'>;
  nodeId: string;
  /** The folder that the media server writes into, under the same path. */
  folder: string;
  /** By the clock of this machine, which the media server shares. */
  nowMs: () => number;
}

export interface PassOutcome {
  /** Rooms that are wanted and not on the media server yet. */
  absent: number;
  isDiskFull: boolean;
  /** Why the first of the rooms failed whose files could not all be shipped; null if none did. */
  failure: Error | null;
}

/** For the metrics of the agent. */
export interface CaptureFigures {
  shippedBytes: Record<'audio' | 'video', number>;
  /** Passes that did not count, and rooms that failed in a pass. */
  failures: Record<'pass' | 'room', number>;
  freeBytes: number | null;
  /** Since when the store lacks a part of a file, in milliseconds; null if it lacks none. */
  behindSinceMs: number | null;
}

/** The calls to a service that all rooms need. */
class Service {
  #workedAtMs = -Infinity;
  #failedAtMs = -Infinity;

  constructor(private readonly nowMs: () => number) {}

  async call<T>(work: Promise<T>): Promise<T> {
    try {
      const result = await work;
      this.#workedAtMs = this.nowMs();
      return result;
    } catch (error) {
      this.#failedAtMs = this.nowMs();
      throw error;
    }
  }

  /** Whether a call has failed since a time, and none has worked for long, for any room. */
  isAway(sinceMs: number): boolean {
    return this.#failedAtMs >= sinceMs && this.#failedAtMs - this.#workedAtMs >= CAPTURE_SILENT_SECONDS * 1000;
  }
}

/**
 * Makes a media server record what the rows say, and ships its files to the store while they grow. Every pass compares
 * everything anew, so a restarted media server, room or agent needs no care.
 */
export class Captures {
  readonly figures: CaptureFigures = {
    shippedBytes: { audio: 0, video: 0 },
    failures: { pass: 0, room: 0 },
    freeBytes: null,
    behindSinceMs: null,
  };
  readonly #deps: CaptureDeps;
  readonly #mediaServer: Service;
  readonly #store: Service;
  /** The recordings of each room that this process has begun, and its passes since. */
  readonly #begun = new Map<string, { recordings: string; passes: number }>();
  /** The files of each room, as far as the store has them. */
  readonly #stored = new Map<string, Map<string, Shipping>>();

  constructor(deps: CaptureDeps) {
    const { nowMs, store } = deps;
    this.#mediaServer = new Service(nowMs);
    this.#store = new Service(nowMs);
    this.#deps = {
      ...deps,
      record: (...args) => this.#mediaServer.call(deps.record(...args)),
      store: { put: (...args) => this.#store.call(store.put(...args)) },
    };
  }

  /**
   * One comparison. Tries all rooms, although some fail. The recordings of these rooms wait, and no others.
   * @throws an error if the store or the media server seems to be away; then the pass does not count as one.
   */
  async pass(): Promise<PassOutcome> {
    try {
      return await this.#pass();
    } catch (error) {
      this.figures.failures.pass += 1;
      throw error;
    }
  }

  async #pass(): Promise<PassOutcome> {
    const { db, nodeId, folder, nowMs } = this.#deps;
    const beforeMs = nowMs();
    const { now, wanted } = await wantedCaptures(db, nodeId);
    const aheadMs = (beforeMs + nowMs()) / 2 - now.getTime();
    const { bavail, bsize } = await statfs(folder);
    this.figures.freeBytes = bavail * bsize;
    const isDiskFull = bavail * bsize < FREE_BYTES_MIN;
    const recordings = new Map(isDiskFull ? [] : wanted.map((each) => [each.roomId, each.recordings]));
    const failures = new Map<string, Error>();
    const fail = (roomId: string, error: Error) => void failures.set(roomId, failures.get(roomId) ?? error);
    const each = async (rooms: Iterable<string>, work: (roomId: string) => Promise<void>): Promise<void> => {
      for (const roomId of rooms) await work(roomId).catch((error: unknown) => fail(roomId, error as Error));
    };
    let absent = 0;
    await each(recordings.keys(), async (roomId) => {
      if (!(await this.#begin(roomId, recordings.get(roomId) ?? ''))) absent += 1;
    });
    // A disk of its own has further folders, such as lost+found.
    const rooms = (await readdir(folder)).filter((name) => name.startsWith(`${ID_PREFIXES.room}_`));
    const behind: number[] = [];
    await each(new Set([...rooms, ...this.#begun.keys()]), async (roomId) => {
      let isOpen = recordings.has(roomId);
      if (!isOpen) {
        await this.#end(roomId).catch((error: unknown) => {
          // A media server that does not answer may still write: its files count as open.
          isOpen = true;
          fail(roomId, error as Error);
        });
      }
      if (!rooms.includes(roomId)) return;
      if (recordings.has(roomId) || (await areCapturesNeeded(db, roomId, ''))) {
        await this.#ship(roomId, isOpen, aheadMs, behind);
      } else if (!isOpen) {
        await rm(join(folder, roomId), { recursive: true, force: true });
        this.#stored.delete(roomId);
      }
    });
    this.figures.behindSinceMs = behind.length === 0 ? null : Math.min(...behind);
    // The media server renames files when it closes them: the next pass finds them.
    const reasons = [...failures.values()].filter((error) => !isVanished(error));
    this.figures.failures.room += reasons.length;
    const isAway = this.#store.isAway(beforeMs) || this.#mediaServer.isAway(beforeMs);
    if (reasons[0] !== undefined && (isAway || failures.size > FAILING_ROOMS_MAX)) throw reasons[0];
    // With a full disk nothing is left to ship, either, but a pass of now would allow further recordings.
    const at = isDiskFull ? new Date(now.getTime() - CAPTURE_SILENT_SECONDS * 1000) : now;
    await saveCapturePass(db, nodeId, at, [...failures.keys()]);
    return { absent, isDiskFull, failure: reasons[0] ?? null };
  }

  /** Files begin anew with each set of recordings: then each file belongs to a recording as a whole. */
  async #begin(roomId: string, recordings: string): Promise<boolean> {
    const { record, folder } = this.#deps;
    const begun = this.#begun.get(roomId);
    const isSame = begun?.recordings === recordings;
    if (begun !== undefined && !isSame) await record(roomId, null);
    const passes = isSame ? begun.passes + 1 : 1;
    const keyFrameSeconds = passes > FIRST_PASSES ? KEY_FRAME_SECONDS : FIRST_KEY_FRAME_SECONDS;
    const isThere = await record(roomId, { folder: join(folder, roomId), keyFrameSeconds });
    if (isThere) this.#begun.set(roomId, { recordings, passes });
    return isThere;
  }

  async #end(roomId: string): Promise<void> {
    await this.#deps.record(roomId, null);
    this.#begun.delete(roomId);
  }

  /**
   * Tries all files, although some fail.
   * @param isOpen whether the media server may still write into the room's files
   * @param behind since when the store lacks a part of each file; this adds to it
   */
  async #ship(roomId: string, isOpen: boolean, aheadMs: number, behind: number[]): Promise<void> {
    const { nodeId, nowMs } = this.#deps;
    const folder = join(this.#deps.folder, roomId);
    const stored = await this.#storedOf(roomId);
    const failures: Error[] = [];
    for (const file of await readdir(folder)) {
      // Another media server records it: the one of its publisher.
      if (OF_FORWARD.test(file)) {
        if (!isOpen || !file.endsWith('.part')) await rm(join(folder, file), { force: true });
        continue;
      }
      const name = file.replace(/\.part$/, '');
      const shipping = stored.get(name) ?? { nodeId, roomId, aheadMs, row: null, shippedAtMs: nowMs() };
      stored.set(name, shipping);
      const before = shipping.row?.bytes ?? 0;
      const isClosed = !isOpen || !file.endsWith('.part');
      const isShipped = await shipFile(this.#deps, join(folder, file), shipping, isClosed).catch((error: unknown) => {
        failures.push(error as Error);
        return false;
      });
      if (!isShipped) behind.push(shipping.shippedAtMs);
      if (shipping.row !== null) this.figures.shippedBytes[shipping.row.kind] += shipping.row.bytes - before;
    }
    if (failures[0] !== undefined) throw failures[0];
    if (isOpen) return;
    await rmdir(folder).catch((error: unknown) => {
      if (!isVanished(error)) throw error;
    });
    this.#stored.delete(roomId);
  }

  async #storedOf(roomId: string): Promise<Map<string, Shipping>> {
    const { db, nodeId, nowMs } = this.#deps;
    let stored = this.#stored.get(roomId);
    if (stored === undefined) {
      const rows = await storedCaptures(db, nodeId, roomId);
      const shippingOf = (row: StoredCapture): Shipping => ({ nodeId, roomId, aheadMs: 0, row, shippedAtMs: nowMs() });
      stored = new Map(rows.map((row) => [`${row.name}.mjr`, shippingOf(row)]));
      this.#stored.set(roomId, stored);
    }
    return stored;
  }
}
