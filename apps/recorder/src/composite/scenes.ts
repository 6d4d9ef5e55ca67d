import type { RecordingLayout } from '@callplane/core';
import { grid, stage, STRIP_MAX, TILES_MAX, type Rectangle } from './layouts.js';
import type { Interval } from './speakers.js';

export const FRAME_MS = 40;
/** Changes that are closer together are one change, in milliseconds. */
const SCENE_MIN_MS = 1000;
/** A scene is a checkpoint: a recorder that dies loses this much, in milliseconds. */
const SCENE_MAX_MS = 60_000;

/** Somebody who was there. */
export interface Person {
  participantId: string;
  name: string;
  stays: readonly Interval[];
}

/** The file of a camera or a screen. */
export interface Picture extends Interval {
  fileId: string;
  participantId: string;
  isScreen: boolean;
  mutes: readonly Interval[];
}

export interface Tile extends Rectangle {
  name: string;
  /** Null: there is no picture. */
  fileId: string | null;
}

/** A time in which the same tiles are in the same places. Both ends are whole frames. */
export interface Scene extends Interval {
  tiles: Tile[];
}

export interface Attendance {
  durationMs: number;
  /** Null: without pictures. */
  layout: RecordingLayout | null;
  /** In the order of their tiles. */
  people: readonly Person[];
  pictures: readonly Picture[];
  speakers: readonly { participantId: string; fromMs: number }[];
}

/** The scenes of a composite, one after another from its begin to its end. */
export function planScenes(attendance: Attendance): Scene[] {
  const { durationMs, people, pictures, speakers } = attendance;
  const intervals = [
    ...people.flatMap(({ stays }) => stays),
    ...pictures.flatMap((picture) => [picture, ...picture.mutes]),
  ];
  const times = [...intervals.flatMap(({ fromMs, toMs }) => [fromMs, toMs]), ...speakers.map(({ fromMs }) => fromMs)];
  const scenes: Scene[] = [];
  const cuts = cutsAt(times, Math.max(FRAME_MS, Math.ceil(durationMs / FRAME_MS) * FRAME_MS));
  for (const [index, toMs] of cuts.slice(1).entries()) {
    const fromMs = cuts[index] ?? 0;
    const tiles = tilesAt(attendance, (fromMs + toMs) / 2);
    const last = scenes.at(-1);
    if (last !== undefined && JSON.stringify(last.tiles) === JSON.stringify(tiles)) last.toMs = toMs;
    else scenes.push({ fromMs, toMs, tiles });
  }
  return scenes.flatMap(inPieces);
}

/** Whole frames from 0 to the end, not too close together. */
function cutsAt(times: readonly number[], endMs: number): number[] {
  const cuts = [0];
  for (const time of times.map((ms) => Math.round(ms / FRAME_MS) * FRAME_MS).sort((a, b) => a - b)) {
    if (time - (cuts.at(-1) ?? 0) >= SCENE_MIN_MS && endMs - time >= SCENE_MIN_MS) cuts.push(time);
  }
  return [...cuts, endMs];
}

function inPieces({ fromMs, toMs, tiles }: Scene): Scene[] {
  const count = Math.ceil((toMs - fromMs) / SCENE_MAX_MS);
  const pieceMs = Math.ceil((toMs - fromMs) / count / FRAME_MS) * FRAME_MS;
  return Array.from({ length: count }, (_, index) => ({
    fromMs: fromMs + index * pieceMs,
    toMs: Math.min(toMs, fromMs + (index + 1) * pieceMs),
    tiles,
  }));
}

const isAt = (atMs: number) => (interval: Interval) => interval.fromMs <= atMs && atMs < interval.toMs;

function tilesAt({ layout, people, pictures, speakers }: Attendance, atMs: number): Tile[] {
  if (layout === null) return [];
  const visible = pictures.filter((picture) => isAt(atMs)(picture) && !picture.mutes.some(isAt(atMs)));
  const cameras = people
    .map(({ participantId, name, stays }) => {
      const own = visible.filter((picture) => picture.participantId === participantId && !picture.isScreen);
      const withoutPicture = stays.some(isAt(atMs)) ? [{ name, fileId: null }] : [];
      return { participantId, shown: own.length > 0 ? own.map(({ fileId }) => ({ name, fileId })) : withoutPicture };
    })
    .filter(({ shown }) => shown.length > 0);
  const speaker = speakers.findLast(
    ({ participantId, fromMs }) => fromMs <= atMs && cameras.some((one) => one.participantId === participantId),
  );
  const isSpeaker = (participantId: string): boolean => participantId === speaker?.participantId;
  const screen = visible.findLast(({ isScreen }) => isScreen);
  if (screen !== undefined) {
    const shared = { name: nameOf(people, screen.participantId), fileId: screen.fileId };
    const beside = cameras.find(({ participantId }) => isSpeaker(participantId)) ?? cameras[0];
    return arranged([shared, ...(beside?.shown.slice(0, 1) ?? [])], stage);
  }
  if (layout === 'grid') return arranged(atMost(TILES_MAX, cameras), grid);
  const first = cameras.find(({ participantId }) => isSpeaker(participantId)) ?? cameras[0];
  const others = cameras.filter((one) => one !== first);
  return arranged([...(first?.shown.slice(0, 1) ?? []), ...atMost(STRIP_MAX, others)], stage);
}

type Shown = Pick<Tile, 'name' | 'fileId'>;

/** In their order. If there are too many, pictures come before tiles without one. */
function atMost(max: number, people: readonly { shown: readonly Shown[] }[]): Shown[] {
  const all = people.flatMap(({ shown }) => shown);
  const chosen = [...all].sort((a, b) => Number(a.fileId === null) - Number(b.fileId === null)).slice(0, max);
  return all.filter((one) => chosen.includes(one));
}

function arranged(shown: readonly Shown[], layout: (count: number) => Rectangle[]): Tile[] {
  const places = layout(shown.length);
  return shown.flatMap((one, index) => (places[index] === undefined ? [] : [{ ...places[index], ...one }]));
}

const nameOf = (people: readonly Person[], id: string): string =>
  people.find(({ participantId }) => participantId === id)?.name ?? '';
