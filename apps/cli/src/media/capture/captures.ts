import { readdir, rm, rmdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
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

export interface CaptureDeps {
  db: TypedSql;
  /** @returns false if the media server has no such room */
  record: MediaNode['record'];
  store: ObjectStore;
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
}

/**
 * Makes a media server record what the rows say, and ships its files to the store while they grow. Every pass compares
 * everything anew, so a restarted media server, room or agent needs no care.
 */
export class Captures {
  readonly #deps: CaptureDeps;
  /** The recordings of each room that this process has begun, and its passes since. */
  readonly #begun = new Map<string, { recordings: string; passes: number }>();
  /** The files of each room, as far as the store has them. */
  readonly #stored = new Map<string, Map<string, Shipping>>();

  constructor(deps: CaptureDeps) {
    this.#deps = deps;
  }

  /**
   * One comparison. Tries all rooms, although some fail.
   * @throws the first error; then the pass does not count as one.
   */
  async pass(): Promise<PassOutcome> {
    const { db, nodeId, folder, nowMs } = this.#deps;
    const beforeMs = nowMs();
    const { now, wanted } = await wantedCaptures(db, nodeId);
    const aheadMs = (beforeMs + nowMs()) / 2 - now.getTime();
    const { bavail, bsize } = await statfs(folder);
    const isDiskFull = bavail * bsize < FREE_BYTES_MIN;
    const recordings = new Map(isDiskFull ? [] : wanted.map((each) => [each.roomId, each.recordings]));
    const failures: unknown[] = [];
    const each = async (rooms: Iterable<string>, work: (roomId: string) => Promise<void>): Promise<void> => {
      for (const roomId of rooms) await work(roomId).catch((error: unknown) => failures.push(error));
    };
    let absent = 0;
    await each(recordings.keys(), async (roomId) => {
      if (!(await this.#begin(roomId, recordings.get(roomId) ?? ''))) absent += 1;
    });
    const rooms = await readdir(folder);
    await each(new Set([...rooms, ...this.#begun.keys()]), async (roomId) => {
      let isOpen = recordings.has(roomId);
      if (!isOpen) {
        await this.#end(roomId).catch((error: unknown) => {
          // A media server that does not answer may still write: its files count as open.
          isOpen = true;
          failures.push(error);
        });
      }
      if (!rooms.includes(roomId)) return;
      if (recordings.has(roomId) || (await areCapturesNeeded(db, roomId, ''))) {
        await this.#ship(roomId, isOpen, aheadMs);
      } else if (!isOpen) {
        await rm(join(folder, roomId), { recursive: true, force: true });
        this.#stored.delete(roomId);
      }
    });
    if (failures.length > 0) throw failures[0];
    // With a full disk nothing is left to ship, either, but a pass of now would allow further recordings.
    await saveCapturePass(db, nodeId, isDiskFull ? new Date(now.getTime() - CAPTURE_SILENT_SECONDS * 1000) : now);
    return { absent, isDiskFull };
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

  /** @param isOpen whether the media server may still write into the room's files */
  async #ship(roomId: string, isOpen: boolean, aheadMs: number): Promise<void> {
    const { db, store, nodeId, nowMs } = this.#deps;
    const folder = join(this.#deps.folder, roomId);
    const stored = await this.#storedOf(roomId);
    for (const file of await readdir(folder)) {
      const found = stored.get(file.replace(/\.part$/, ''));
      const shipping = found ?? { nodeId, roomId, aheadMs, row: null, shippedAtMs: nowMs() };
      const isClosed = !isOpen || !file.endsWith('.part');
      await shipFile({ db, store, nowMs }, join(folder, file), shipping, isClosed);
      stored.set(file.replace(/\.part$/, ''), shipping);
    }
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
