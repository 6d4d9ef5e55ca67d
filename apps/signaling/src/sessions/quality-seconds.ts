import { QualityClock, type QualityLevel } from '@callplane/core';
import type { Logger } from '@callplane/runtime';
import type { Writes } from '../writes/writes.js';

/** How often the seconds of running sessions are written, in milliseconds. A crash loses at most one interval. */
const WRITE_EVERY_MS = 60_000;

export interface QualitiesDeps {
  logger: Logger;
  writes: Pick<Writes, 'addQuality'>;
}

export class Qualities {
  readonly #clocks = new Map<string, QualityClock>();
  readonly #timer: NodeJS.Timeout;

  constructor(private readonly deps: QualitiesDeps) {
    this.#timer = setInterval(() => void this.#writeAll(), WRITE_EVERY_MS);
    this.#timer.unref();
  }

  report(sessionId: string, level: QualityLevel, isRelayed: boolean): void {
    let clock = this.#clocks.get(sessionId);
    if (clock === undefined) {
      clock = new QualityClock();
      this.#clocks.set(sessionId, clock);
    }
    clock.set(level, isRelayed, performance.now());
  }

  lose(sessionId: string): void {
    this.#clocks.get(sessionId)?.lose(performance.now());
  }

  /** This instance has let go of the session. Resolves when its seconds are written, and never rejects. */
  async end(sessionId: string): Promise<void> {
    const clock = this.#clocks.get(sessionId);
    if (clock === undefined) return;
    this.#clocks.delete(sessionId);
    await this.#write(sessionId, clock);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #writeAll(): Promise<void> {
    await Promise.all([...this.#clocks].map(([sessionId, clock]) => this.#write(sessionId, clock)));
  }

  async #write(sessionId: string, clock: QualityClock): Promise<void> {
    const seconds = clock.take(performance.now());
    if (seconds === null) return;
    try {
      await this.deps.writes.addQuality(sessionId, seconds);
    } catch (error) {
      this.deps.logger.warn('quality not written', { sessionId, error });
    }
  }
}
