import { setTimeout as delay } from 'node:timers/promises';
import type { KnownTenant, Operator } from '../fleet/operator.js';
import type { Caller, Sender } from './caller.js';

/** Longer than a revoked key may be accepted, in milliseconds. */
const USED_FOR_MS = 9000;
const EVERY_MS = 500;
/** A key costs two runs of `rtc`. */
const PAUSE_MS = 15_000;

export class KeyLoop {
  constructor(
    private readonly operator: Operator,
    private readonly caller: Caller,
    private readonly tenant: KnownTenant,
    private readonly isOver: () => boolean,
  ) {}

  async run(): Promise<void> {
    for (let n = 1; !this.isOver(); n += 1) {
      await this.#useAndRevoke(`${this.tenant.name} key ${n}`);
      for (let left = PAUSE_MS; left > 0 && !this.isOver(); left -= EVERY_MS) await delay(EVERY_MS);
    }
  }

  async #useAndRevoke(client: string): Promise<void> {
    // Without an answer of PostgreSQL nothing is known.
    const made = await this.operator.newKey(this.tenant.environmentId).catch(() => null);
    if (made === null) return;
    const from: Sender = { tenant: this.tenant.name, key: made.key, client };
    const use = (): Promise<unknown> => this.caller.call(from, 'GET', '/v1/');
    // Both instances of the API keep it in their memory now.
    for (let n = 0; n < 4; n += 1) await use();
    const isRevoked = await this.operator.rtc('keys', 'revoke', made.id).then(
      () => true,
      () => false,
    );
    if (!isRevoked) return;
    const { history } = this.caller;
    history.mark('key revoked', { client });
    const untilMs = history.nowMs + USED_FOR_MS;
    while (history.nowMs < untilMs) {
      await use();
      await delay(EVERY_MS);
    }
  }
}
