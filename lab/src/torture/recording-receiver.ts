import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { Receiver, type Arrival, type Reaction, type Watch } from '../receiver.js';
import type { Random } from '../random.js';
import type { HistoryWriter } from './history-writer.js';
import type { DeliveryLine } from './history.js';

const SLOW_MS = 1500;

interface Hook {
  tenant: string;
  /** How often it does not answer with 200. */
  faulty: number;
  /** The signing secrets by version. */
  secrets: Map<string, string>;
}

/** Receives the deliveries of all endpoints, and writes them down. */
export class RecordingReceiver extends Receiver {
  /** By path. */
  readonly hooks = new Map<string, Hook>();
  /** From the end of the faults on, it answers every delivery with 200. */
  isCalm = false;
  received = 0;

  constructor(
    private readonly history: HistoryWriter,
    private readonly random: Random,
  ) {
    super();
  }

  protected override watch(): Watch {
    const { history } = this;
    const startMs = history.nowMs;
    let receivedMs: number | null = null;
    let isWritten = false;
    const write = (answer: DeliveryLine['answer'], answeredMs: number | null, arrival: Arrival): void => {
      if (isWritten) return;
      isWritten = true;
      history.write('deliveries', { startMs, receivedMs, answeredMs, answer, ...this.#factsOf(arrival) });
    };
    return {
      arrived: (arrival) => {
        receivedMs = history.nowMs;
        this.received += 1;
        const reaction = this.#reactionTo(arrival.path);
        if (reaction === 'hang') write('hang', null, arrival);
        return reaction;
      },
      ended: (status, arrival) => write(status ?? 'reset', status === null ? null : history.nowMs, arrival),
    };
  }

  #reactionTo(path: string): Reaction {
    const faulty = this.hooks.get(path)?.faulty ?? 0;
    if (this.isCalm || !this.random.chance(faulty)) return { status: 200, afterMs: 0 };
    return this.random.pick<Reaction>([
      'reset',
      'hang',
      { status: 200, afterMs: SLOW_MS },
      { status: 503, afterMs: 0 },
      { status: 500, afterMs: 0 },
    ]);
  }

  #factsOf({ path, headers: all, body }: Arrival) {
    const hook = this.hooks.get(path);
    const headers = Object.fromEntries(
      Object.entries(all).filter(([name]) => !['connection', 'host'].includes(name)),
    ) as Record<string, string>;
    return {
      tenant: hook?.tenant ?? '',
      url: this.urlOf(path),
      headers,
      body: body.toString('utf8'),
      bodySha256: createHash('sha256').update(body).digest('hex'),
      verified: hook === undefined ? 'no such endpoint' : verify(headers, body, hook.secrets),
    };
  }
}

/** Checks the signature as the specification says, without Callplane's own code. */
function verify(headers: Record<string, string>, body: Buffer, secrets: ReadonlyMap<string, string>): true | string {
  const [, timestamp, signature = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers['x-service-signature'] ?? '') ?? [];
  if (timestamp === undefined) return 'malformed signature header';
  const secret = secrets.get(headers['x-service-signing-key-version'] ?? '');
  if (secret === undefined) return 'unknown version of the signing key';
  const { 'x-service-delivery-id': id = '', 'x-service-replay-count': count = '' } = headers;
  const signed = createHmac('sha256', secret).update(`${timestamp}.${id}.${count}.`).update(body).digest();
  return timingSafeEqual(signed, Buffer.from(signature, 'hex')) ? true : 'wrong signature';
}
