import { INSTANCE_DEAD_MS } from '@callplane/core';
import { findOrphanedSessions, type OrphanedSession } from '@callplane/db';
import { Repeating } from '@callplane/runtime';
import type { ArrivalDeps } from '../arrivals/arrival.js';
import { adopt } from '../arrivals/resume.js';
import type { ClientHandler, Ending } from '../clients/client.js';
import type { Heartbeat } from '../sessions/heartbeat.js';
import { WhipClient } from './whip-client.js';

/** How long no packet may arrive before the session ends, in milliseconds. */
const SILENT_MS_MAX = 15_000;
const CHECK_EVERY_MS = 1000;
const ADOPT_EVERY_MS = 2000;
/** Sessions that one look adopts. */
const ADOPTIONS_MAX = 100;

export interface WhipClientsDeps extends ArrivalDeps {
  heartbeat: Pick<Heartbeat, 'steadyMs'>;
}

/** The encoders whose sessions this gateway holds. Ends silent ones, and adopts sessions without a gateway. */
export class WhipClients {
  readonly #clients = new Set<WhipClient>();
  readonly #repeating: Repeating[];
  #opened = 0;

  constructor(
    private readonly deps: WhipClientsDeps,
    private readonly handler: ClientHandler,
  ) {
    const repeat = (name: string, everyMs: number, work: () => Promise<void>): Repeating =>
      new Repeating(everyMs, work, (error) => deps.logger.warn('periodic task failed', { task: name, error }));
    this.#repeating = [
      repeat('silent encoders', CHECK_EVERY_MS, () => {
        this.#endSilent(performance.now());
        return Promise.resolve();
      }),
      repeat('orphaned encoders', ADOPT_EVERY_MS, () => this.#adoptOrphans()),
    ];
  }

  get count(): number {
    return this.#clients.size;
  }

  /** @param resumeSecret undefined for a session that this gateway continues unasked */
  open(address: string | undefined, resumeSecret: string | undefined): WhipClient {
    this.#opened += 1;
    const handler: ClientHandler = {
      onMessage: (client, message) => this.handler.onMessage(client, message),
      onInvalid: (client, invalid) => this.handler.onInvalid(client, invalid),
      onEnd: (client, ending) => this.#onEnd(client as WhipClient, ending),
    };
    const client = new WhipClient(`whip_${this.#opened}`, address, resumeSecret, handler);
    this.#clients.add(client);
    return client;
  }

  /** Stops looking for orphans. The sessions stay until they are drained. */
  async close(): Promise<void> {
    await Promise.all(this.#repeating.map((one) => one.close()));
  }

  #onEnd(client: WhipClient, ending: Ending): void {
    this.#clients.delete(client);
    this.handler.onEnd(client, ending);
    // The limit's own log line covers it, as for WebSockets.
    if (ending === 'too_many_attempts') return;
    const durationMs = Math.round(performance.now() - client.openedAtMs);
    this.deps.logger.info('connection', { connectionId: client.id, reason: ending, ...client.logFields, durationMs });
  }

  #endSilent(nowMs: number): void {
    for (const client of this.#clients) {
      const silentMs = this.deps.sessions.of(client)?.media.publisher.silentMs(nowMs) ?? 0;
      if (silentMs < SILENT_MS_MAX) continue;
      client.close('media_unavailable', { cause: `No packet has arrived for ${Math.round(silentMs / 1000)} s.` });
    }
  }

  async #adoptOrphans(): Promise<void> {
    const { database, heartbeat, instanceId, arrivals } = this.deps;
    // After an outage of PostgreSQL, other gateways look dead until they have written their heartbeats.
    if (arrivals.isDraining || heartbeat.steadyMs < INSTANCE_DEAD_MS) return;
    const looks = { instanceDeadMs: INSTANCE_DEAD_MS, limit: ADOPTIONS_MAX };
    const orphans = await findOrphanedSessions(database.sql, instanceId, looks);
    await Promise.all(orphans.map((orphan) => this.#adopt(orphan)));
  }

  async #adopt(orphan: OrphanedSession): Promise<void> {
    const { arrivals, logger } = this.deps;
    const { sessionId, roomId, participantId, environmentId } = orphan;
    if (arrivals.isResuming(sessionId)) return;
    const client = this.open(undefined, undefined);
    Object.assign(client.logFields, { sessionId, roomId, participantId, environmentId });
    try {
      await arrivals.track(client, sessionId, () => adopt(this.deps, client, orphan));
    } catch (error) {
      logger.warn('session not adopted', { sessionId, error });
      client.drop();
    }
  }
}
