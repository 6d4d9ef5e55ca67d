import { setTimeout as delay } from 'node:timers/promises';
import { ApiClient, type Sent } from '../client.js';
import type { Answer, Caller, Sender } from './caller.js';
import type { KnownTenant } from '../fleet/operator.js';
import type { Random } from '../random.js';
import type { RecordingReceiver } from './recording-receiver.js';

/** The endpoints of each tenant, and how often their receiver does not answer with 200. */
const ENDPOINTS = [
  { name: 'plain', ordering: 'none', faulty: 0 },
  { name: 'ordered', ordering: 'room', faulty: 0.05 },
  { name: 'flaky', ordering: 'none', faulty: 0.3 },
] as const;
const EVERY_MS = 1500;

/** The endpoints of a tenant, with a caller that replays and retries their deliveries. */
export class Hooks {
  readonly endpointIds: string[] = [];

  constructor(
    private readonly caller: Caller,
    private readonly receiver: RecordingReceiver,
    private readonly tenant: KnownTenant,
    private readonly random: Random,
  ) {}

  async register(): Promise<void> {
    for (const { name, ordering, faulty } of ENDPOINTS) {
      const path = `/${this.tenant.name}/${name}`;
      const secrets = new Map<string, string>();
      this.receiver.hooks.set(path, { tenant: this.tenant.name, faulty, secrets });
      const body = { url: this.receiver.urlOf(path), ordering, description: name };
      // A service that has just started may not be able to answer yet.
      const sent = { body, idempotencyKey: this.random.text() };
      const created = await this.caller.insist(this.#from, 'POST', '/v1/webhooks', sent);
      if (created?.status !== 201) throw new Error(`POST /v1/webhooks answered ${created?.status ?? 'nothing'}`);
      secrets.set(String(created.body.signingKeyVersion), String(created.body.signingSecret));
      this.endpointIds.push(String(created.body.id));
    }
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await delay(EVERY_MS);
      const path = `/v1/webhooks/${this.random.pick(this.endpointIds)}/deliveries`;
      const status = this.random.pick(['succeeded', 'succeeded', 'pending']);
      const listed = await this.#call('GET', `${path}?status=${status}&limit=20`);
      const found = listed.body.data ?? [];
      if (found.length === 0) continue;
      const { id, replayCount } = this.random.pick(found);
      if (status === 'pending') await this.#call('POST', `${path}/${id}/retry`);
      else await this.#call('POST', `${path}/${id}/replay`, { body: { expectedReplayCount: replayCount } });
    }
  }

  /** Brings all pending deliveries of the run forward, so that the end need not wait for their schedule. */
  async hurry(since: string): Promise<void> {
    for (const id of this.endpointIds) await this.#call('POST', `/v1/webhooks/${id}/recoveries`, { body: { since } });
  }

  /** Deletes the endpoints, because their receiver ends. The complete history does not show it. */
  async remove(): Promise<void> {
    const client = new ApiClient(this.caller.baseUrl, this.tenant.key);
    for (const id of this.endpointIds) await client.send('DELETE', `/v1/webhooks/${id}`);
  }

  #call(method: string, path: string, sent?: Sent): Promise<Answer> {
    return this.caller.call(this.#from, method, path, sent);
  }

  get #from(): Sender {
    const { name: tenant, key } = this.tenant;
    return { tenant, key, client: `${tenant} hooks` };
  }
}
