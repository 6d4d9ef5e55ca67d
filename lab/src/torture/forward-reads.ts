import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isForwarded } from '@callplane/core';
import { Database, isDatabaseUnavailable, roomsStatus } from '@callplane/db';
import { MediaNode } from '@callplane/media';
import type { Fleet } from '../fleet/fleet.js';
import { FORWARD_PORTS } from '../fleet/media-servers.js';
import { until } from './media-load.js';

const LOOK_EVERY_MS = 500;
/** A participant without a gateway leaves after half a minute, and its forwards close after that. */
const CLOSED_WITHIN_MS = 60_000;
const PORTS_WITHIN_MS = 10_000;

/** Rooms on several media servers. Their rows are gone after their end, and so it looks while they run. */
export class ForwardWatch {
  readonly #database: Database;
  /** The ones that were seen: sessions on a further server of their room, and forwards that were up. */
  readonly #seen = { sessions: new Set<string>(), forwards: new Set<string>() };

  constructor(private readonly fleet: Pick<Fleet, 'databaseUrl' | 'media'>) {
    this.#database = new Database({ url: fleet.databaseUrl, poolMax: 1 });
  }

  get sessions(): number {
    return this.#seen.sessions.size;
  }

  get opened(): number {
    return this.#seen.forwards.size;
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#look().catch((error: unknown) => {
        if (!isDatabaseUnavailable(error)) throw error;
      });
      await delay(LOOK_EVERY_MS);
    }
  }

  async #look(): Promise<void> {
    const rows = await this.#database.sql.$queryRaw<{ what: 'sessions' | 'forwards'; id: string }[]>`
      SELECT 'forwards' AS what, id FROM media_forwards WHERE state = 'up'
      UNION ALL SELECT 'sessions', s.id FROM participant_sessions s JOIN rooms r ON r.id = s.room_id
      WHERE s.ended_at IS NULL AND s.media_node_id = ANY(r.further_node_ids)`;
    for (const { what, id } of rows) this.#seen[what].add(id);
  }

  /** @returns the parts of forwards, and the rooms on media servers, that are left although every room has ended. */
  async left(): Promise<string[]> {
    const untilMs = performance.now() + CLOSED_WITHIN_MS;
    for (;;) {
      const left = await this.#leftNow();
      if (left.length === 0 || performance.now() > untilMs) return left;
      await delay(LOOK_EVERY_MS);
    }
  }

  async #leftNow(): Promise<string[]> {
    const rows = await this.#database.prisma.mediaForward.findMany();
    const onServers = await Promise.all(this.fleet.media.ports.map((port, n) => this.#leftOn(`janus ${n + 1}`, port)));
    return [...rows.map(({ name, state }) => `the row of ${name}, which is ${state}`), ...onServers.flat()];
  }

  async #leftOn(name: string, port: number): Promise<string[]> {
    const { MEDIA_API_SECRET: apiSecret = '', MEDIA_ADMIN_KEY: adminKey = '' } = this.fleet.media.settingsFor();
    const url = `ws://127.0.0.1:${port}`;
    const node = new MediaNode({ id: name, url, apiSecret, adminKey, random: Math.random, allowOutdated: true });
    try {
      await node.untilUp(CLOSED_WITHIN_MS);
      const ids = (await node.listRooms()).map(({ roomId }) => roomId);
      const known = await roomsStatus(this.#database.sql, ids);
      const feeds = (await Promise.all(ids.map((roomId) => node.listFeeds(roomId)))).flat();
      return [
        ...ids.filter((id) => (known.get(id)?.status ?? 'ended') === 'ended').map((id) => `the ended ${id} on ${name}`),
        ...feeds.filter(isForwarded).map((feed) => `the feed ${feed} on ${name}`),
      ];
    } finally {
      await node.close();
    }
  }

  /** @returns the UDP ports that stay bound without a forward. Few do, for a cause that is not known: no finding */
  async portsLeft(): Promise<number[]> {
    await until(() => boundPorts().length === 0, PORTS_WITHIN_MS);
    return boundPorts();
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

/** @returns the ports of forwards that a process has bound, where Linux tells them */
function boundPorts(): number[] {
  const lines = ['/proc/net/udp', '/proc/net/udp6']
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'utf8').split('\n').slice(1));
  const ports = lines.map((line) => Number.parseInt(/^ *\d+: \w+:(\w{4}) /.exec(line)?.[1] ?? '', 16));
  return [...new Set(ports)].filter((port) => port >= FORWARD_PORTS.first && port <= FORWARD_PORTS.last);
}
