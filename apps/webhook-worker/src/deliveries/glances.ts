import { setTimeout as delay } from 'node:timers/promises';
import type { DeliveryGlance } from '@callplane/db';

/** A look at a row, and when it began. */
export interface Glance {
  delivery: DeliveryGlance;
  lookedAt: number;
}

interface Asked {
  id: string;
  resolve(glance: Glance | null): void;
  reject(error: unknown): void;
}

/** How long a look waits for company while nothing is in a hurry, in milliseconds. */
const LINGER_MS = 10;

/** Looks at rows, many in one statement: one statement is under way at a time, and whoever asks meanwhile shares the next. */
export class Glances {
  #asked: Asked[] = [];
  #isLooking = false;
  readonly #look: (ids: readonly string[]) => PromiseLike<DeliveryGlance[]>;
  readonly #isBusy: () => boolean;

  /** @param isBusy whether enough else waits for a slot, so that a look may linger for company. */
  constructor(look: (ids: readonly string[]) => PromiseLike<DeliveryGlance[]>, isBusy: () => boolean) {
    this.#look = look;
    this.#isBusy = isBusy;
  }

  /** @returns null when there is nothing to do for this row. */
  glanceAt(id: string): Promise<Glance | null> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ id, resolve, reject });
      if (!this.#isLooking) void this.#lookAtAll();
    });
  }

  async #lookAtAll(): Promise<void> {
    this.#isLooking = true;
    while (this.#asked.length > 0) {
      if (this.#isBusy()) await delay(LINGER_MS);
      const asked = this.#asked;
      this.#asked = [];
      const lookedAt = performance.now();
      try {
        const rows = new Map((await this.#look(asked.map(({ id }) => id))).map((row) => [row.id, row]));
        for (const { id, resolve } of asked) {
          const delivery = rows.get(id);
          resolve(delivery === undefined ? null : { delivery, lookedAt });
        }
      } catch (error) {
        for (const { reject } of asked) reject(error);
      }
    }
    this.#isLooking = false;
  }
}
