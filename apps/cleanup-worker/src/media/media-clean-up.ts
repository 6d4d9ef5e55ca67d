import { setTimeout as delay } from 'node:timers/promises';
import {
  type ClosingForward,
  type Database,
  isOpeningForward,
  listRegisteredNodes,
  mediaNodesOfRoom,
  type MediaSessionPlace,
  removeSilentNodes,
} from '@callplane/db';
import { isConnectionRefused, MediaError, type MediaNode, MediaNodes, parseMediaNodes } from '@callplane/media';
import type { CleanupWorkerConfig } from '../config.js';
import type { Deps } from '../deps.js';

/** How long to wait for a disconnected media server, in milliseconds: it may be restarting. */
const NODE_PATIENCE_MS = 1000;
/** How long the end of a room waits for forwards that gateways are opening, and how often it looks, in milliseconds. */
const OPENING_PATIENCE_MS = 1000;
const OPENING_LOOK_MS = 20;

type MediaDeps = Pick<Deps, 'database' | 'media' | 'logger'>;

/**
 * Why no request was made, or none was answered.
 * - `none`: no media server carries the room.
 * - `gone`: the media server refuses connections, so no Janus runs there; or neither MEDIA_NODES nor the registry names
 *   it any more, which operators do after they have stopped it. No media flows there.
 * - `unreachable`: any other failure. The server may be frozen, or only the network between it and this worker is
 *   broken, so media may still flow there.
 */
type MediaAbsence = 'none' | 'gone' | 'unreachable';

/** Result of destroying a room's media. `absent`: the media server answers, and has no such room. */
type MediaOutcome = 'destroyed' | 'absent' | MediaAbsence;

/** Destroys a room on every media server that carries it, and checks there that it is gone. */
export async function destroyMediaRoom(
  deps: MediaDeps,
  roomId: string,
  patienceMs = NODE_PATIENCE_MS,
): Promise<MediaOutcome> {
  const nodeIds = await mediaNodesOfRoom(deps.database.sql, roomId);
  if (nodeIds.length > 1) await untilForwardsOpened(deps, roomId);
  const outcomes = await onNodes(deps, nodeIds, roomId, patienceMs, (node) => node.destroyRoom(roomId));
  return (['unreachable', 'destroyed', 'absent', 'gone'] as const).find((one) => outcomes.includes(one)) ?? 'none';
}

/** Janus 1.4.1 keeps the ports of a feed that it begins to receive while the room is destroyed. */
async function untilForwardsOpened({ database }: MediaDeps, roomId: string): Promise<void> {
  for (let waitedMs = 0; waitedMs < OPENING_PATIENCE_MS; waitedMs += OPENING_LOOK_MS) {
    if (!(await isOpeningForward(database.sql, roomId))) return;
    await delay(OPENING_LOOK_MS);
  }
}

type WhichSessions = (sessionIds: readonly string[]) => Promise<readonly string[]>;

/**
 * Removes the feeds that sessions publish in a room, regardless of which process holds their connections.
 * @returns the number of removed feeds.
 */
export async function removeFeedsOf(
  deps: MediaDeps,
  roomId: string,
  which: WhichSessions,
  patienceMs = NODE_PATIENCE_MS,
): Promise<number | MediaAbsence> {
  const nodeIds = await mediaNodesOfRoom(deps.database.sql, roomId);
  const outcomes = await onNodes(deps, nodeIds, roomId, patienceMs, async (node) => {
    // Listing the feeds also finds feeds that the database does not record as published yet.
    const feedIds = await node.listFeeds(roomId);
    const sessionIds = new Set(await which([...new Set(feedIds.map(sessionOfFeed))]));
    let removed = 0;
    for (const feedId of feedIds) {
      if (!sessionIds.has(sessionOfFeed(feedId))) continue;
      if ((await node.removeFeed(roomId, feedId)) === 'removed') removed += 1;
    }
    return removed;
  });
  if (outcomes.includes('unreachable')) return 'unreachable';
  const counts = outcomes.filter((one) => typeof one === 'number');
  return counts.length > 0 ? counts.reduce((sum, count) => sum + count) : (outcomes[0] ?? 'none');
}

/**
 * Waits once for the media servers that are down. A pass over many rooms and sessions calls it before, and does not wait
 * for each of them.
 */
export async function untilNodesUp(media: MediaNodes): Promise<void> {
  await Promise.all(media.all().map((node) => node.untilUp(NODE_PATIENCE_MS).catch(() => undefined)));
}

/**
 * Ends sessions on media servers that no gateway holds any more, with their peer connections. Otherwise, media that a
 * gateway hands over flows for half a minute more.
 * @returns the number of ended sessions; `unreachable` if a server did not answer, so that media may still flow there.
 */
export async function endMediaSessions(
  deps: Pick<Deps, 'media' | 'logger'>,
  places: readonly MediaSessionPlace[],
  patienceMs = NODE_PATIENCE_MS,
): Promise<number | 'unreachable'> {
  const sessionsOf = new Map<string, number[]>();
  for (const { nodeId, mediaSession } of places) {
    sessionsOf.set(nodeId, [...(sessionsOf.get(nodeId) ?? []), mediaSession]);
  }
  const outcomes = await Promise.all(
    [...sessionsOf].map(([mediaNodeId, sessions]) =>
      onNode(deps, { mediaNodeId, sessions: sessions.length }, patienceMs, (node) => destroySessions(node, sessions)),
    ),
  );
  if (outcomes.includes('unreachable')) return 'unreachable';
  return outcomes.reduce<number>((sum, ended) => sum + (typeof ended === 'number' ? ended : 0), 0);
}

async function destroySessions(node: MediaNode, sessions: readonly number[]): Promise<number> {
  let destroyed = 0;
  for (const session of sessions) {
    if ((await node.destroySession(session)) === 'destroyed') destroyed += 1;
  }
  return destroyed;
}

/** Feed ids begin with `<session>-`. */
function sessionOfFeed(feedId: string): string {
  return feedId.slice(0, Math.max(0, feedId.indexOf('-')));
}

/** The outcomes on the media servers of a room. */
async function onNodes<T>(
  deps: MediaDeps,
  nodeIds: readonly string[],
  roomId: string,
  patienceMs: number,
  work: (node: MediaNode) => Promise<T>,
): Promise<(T | 'gone' | 'unreachable')[]> {
  return Promise.all(nodeIds.map((mediaNodeId) => onNode(deps, { mediaNodeId, roomId }, patienceMs, work)));
}

/** Ends a forward on both media servers. @returns false if one of them may still have its part */
export async function endForward(
  deps: Pick<Deps, 'media' | 'logger'>,
  { name, roomId, feedId, fromNodeId, toNodeId }: ClosingForward,
): Promise<boolean> {
  try {
    const outcomes = await Promise.all([
      onNode(deps, { mediaNodeId: fromNodeId, roomId }, 0, (node) => node.forwards.stopSending(roomId, feedId, name)),
      onNode(deps, { mediaNodeId: toNodeId, roomId }, 0, (node) => node.forwards.stopReceiving(roomId, name)),
    ]);
    return !outcomes.includes('unreachable');
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    deps.logger.warn('forward not ended', { name, roomId, fromNodeId, toNodeId, error });
    return false;
  }
}

/** @param subject of the work, for the log line of a server that is not available. */
async function onNode<T>(
  deps: Pick<Deps, 'media' | 'logger'>,
  subject: { mediaNodeId: string; roomId?: string; sessions?: number },
  patienceMs: number,
  work: (node: MediaNode) => Promise<T>,
): Promise<T | 'gone' | 'unreachable'> {
  const node = await deps.media.lookUp(subject.mediaNodeId);
  if (node === undefined) {
    deps.logger.warn('media node unknown', subject);
    return 'gone';
  }
  try {
    await node.untilUp(patienceMs);
    return await work(node);
  } catch (error) {
    if (!(error instanceof MediaError) || (error.code !== 'unavailable' && error.code !== 'timeout')) throw error;
    const absence = isConnectionRefused(error) ? 'gone' : 'unreachable';
    deps.logger.warn('media node unavailable', { ...subject, state: absence, error });
    return absence;
  }
}

/**
 * Connects to every configured media server. Registered ones follow with the first `refresh`, if the secrets are set.
 * @throws Error that names the wrong or missing setting.
 */
export function openMediaNodes(
  config: Pick<CleanupWorkerConfig, 'MEDIA_NODES' | 'MEDIA_API_SECRET' | 'MEDIA_ADMIN_KEY' | 'MEDIA_ALLOW_OUTDATED'>,
  database: Database,
  random: () => number,
): MediaNodes {
  const addresses = parseMediaNodes(config.MEDIA_NODES.join(','));
  const { MEDIA_API_SECRET: apiSecret, MEDIA_ADMIN_KEY: adminKey, MEDIA_ALLOW_OUTDATED: allowOutdated } = config;
  if (apiSecret === undefined || adminKey === undefined) {
    if (addresses.length > 0) throw new Error('media servers require MEDIA_API_SECRET and MEDIA_ADMIN_KEY');
    return new MediaNodes([]);
  }
  const readRegistry = () => listRegisteredNodes(database.sql);
  return MediaNodes.open({ addresses, apiSecret, adminKey, random, allowOutdated, readRegistry });
}

/** Removes registered media servers that are gone for good, and connects to new ones. */
export async function followRegistry({ database, media, logger }: Pick<Deps, 'database' | 'media' | 'logger'>) {
  for (const nodeId of await removeSilentNodes(database.sql)) {
    logger.warn('silent media server removed', { mediaNodeId: nodeId });
  }
  await media.refresh();
}
