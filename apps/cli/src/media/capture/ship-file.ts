import { open, rm, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { captureChunkKey } from '@callplane/core';
import { saveCapture, type StoredCapture, type TypedSql } from '@callplane/db';
import type { ObjectStore } from '@callplane/store';

/** A file that grows is shipped at this interval, in milliseconds, or once this number of bytes is new. */
const SHIP_EVERY_MS = 30_000;
const SHIP_BYTES = 4 * 1024 * 1024;
const CHUNK_BYTES_MAX = 8 * 1024 * 1024;
/** Enough for the header of a capture. */
const HEADER_BYTES_MAX = 4096;
/** As Janus names them: room, feed, time, kind and place of the section. */
const FILE_NAME = /^videoroom-.+-user-(.+)-\d+-(audio|video)-(\d+)\.mjr(\.part)?$/;

export interface Shipping {
  nodeId: string;
  roomId: string;
  /** How far the clock of this machine was ahead of PostgreSQL's when the file was found, in milliseconds. */
  aheadMs: number;
  /** Null until the store has something. */
  row: Omit<StoredCapture, 'shippedAt'> | null;
  /** When the store had all of the file, or the file was found. */
  shippedAtMs: number;
}

export interface ShipDeps {
  db: TypedSql;
  store: Pick<ObjectStore, 'put'>;
  nowMs: () => number;
}

/**
 * Ships the new part of a file, and deletes a closed one once the store has all of it and its row says so.
 * @returns whether the store has all of it
 * @throws an error with the code ENOENT if the media server has just closed and renamed the file
 */
export async function shipFile(deps: ShipDeps, path: string, shipping: Shipping, isClosed: boolean): Promise<boolean> {
  const file = await open(path);
  let hasAll: boolean;
  try {
    const { size } = await file.stat();
    // A new file is shipped at once: its row tells recorders that this media server has media of the room.
    const isDue = shipping.row === null || deps.nowMs() - shipping.shippedAtMs >= SHIP_EVERY_MS;
    const isNew = size - (shipping.row?.bytes ?? 0) >= (isClosed || isDue ? 1 : SHIP_BYTES);
    if (isNew) await shipNew(deps, file, path, shipping, size);
    // A file without packets has no header, and gets no row.
    hasAll = shipping.row === null || shipping.row.bytes === size;
  } finally {
    await file.close();
  }
  if (hasAll) shipping.shippedAtMs = deps.nowMs();
  if (!isClosed || !hasAll) return hasAll;
  if (shipping.row?.closed === false) {
    const row = { ...shipping.row, closed: true };
    await saveCapture(deps.db, row);
    shipping.row = row;
  }
  await rm(path);
  return true;
}

async function shipNew(deps: ShipDeps, file: FileHandle, path: string, shipping: Shipping, size: number) {
  let row = shipping.row ?? (await describe(file, path, shipping));
  if (row === null) return;
  while (row.bytes < size) {
    const chunk = await read(file, row.bytes, Math.min(CHUNK_BYTES_MAX, size - row.bytes));
    // A chunk without its row is put again, perhaps longer.
    await deps.store.put(captureChunkKey(row, row.chunks), chunk);
    row = { ...row, bytes: row.bytes + chunk.length, chunks: row.chunks + 1 };
    await saveCapture(deps.db, row);
    shipping.row = row;
  }
}

/** @returns null if the file has no header yet, or an unknown name */
async function describe(file: FileHandle, path: string, { nodeId, roomId, aheadMs }: Shipping) {
  const [, feedId, kind, section] = FILE_NAME.exec(basename(path)) ?? [];
  const firstPacketMs = firstPacketOf(await read(file, 0, HEADER_BYTES_MAX));
  if (feedId === undefined || firstPacketMs === null) return null;
  return {
    ...{ roomId, nodeId, name: basename(path).replace(/\.mjr(\.part)?$/, ''), feedId, section: Number(section) },
    kind: kind === 'audio' ? ('audio' as const) : ('video' as const),
    startedAt: new Date(Math.round(firstPacketMs - aheadMs)),
    ...{ bytes: 0, chunks: 0, closed: false },
  };
}

/** When Janus received the first packet, in milliseconds by the clock of its machine. */
function firstPacketOf(head: Buffer): number | null {
  const textAt = 10;
  if (head.length < textAt) return null;
  const text = head.toString('utf8', textAt, textAt + head.readUInt16BE(textAt - 2));
  try {
    const micros = (JSON.parse(text) as { u?: unknown }).u;
    return typeof micros === 'number' ? micros / 1000 : null;
  } catch {
    return null;
  }
}

async function read(file: FileHandle, from: number, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, from);
  return buffer.subarray(0, bytesRead);
}

/** Whether a file or folder is gone, or a folder is not empty. */
export function isVanished(error: unknown): boolean {
  return ['ENOENT', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '');
}
