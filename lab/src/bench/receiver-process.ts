/**
 * A webhook receiver in its own process. It answers after a fixed wait; `/wait/<ms>` sets another wait, `/tarpit` never
 * answers, and `/once503` fails the first request of each delivery. It reports its URL and then each arrival to its
 * parent.
 */
import { Receiver, type Arrival, type Reaction, type Watch } from '../receiver.js';

const waitMs = Number(process.argv[2] ?? 0);

class BenchReceiver extends Receiver {
  readonly #failed = new Set<unknown>();

  protected override watch(): Watch {
    const atMs = performance.timeOrigin + performance.now();
    return {
      arrived: ({ path, headers }) => {
        process.send?.({ atMs, deliveryId: headers['x-service-delivery-id'] });
        return this.#reactionTo({ path, headers });
      },
      ended: () => undefined,
    };
  }

  #reactionTo({ path, headers }: Pick<Arrival, 'path' | 'headers'>): Reaction {
    if (path.startsWith('/tarpit')) return 'hang';
    const deliveryId = headers['x-service-delivery-id'];
    const isFirst = path === '/once503' && !this.#failed.has(deliveryId);
    if (isFirst) this.#failed.add(deliveryId);
    const afterMs = Number(/^\/wait\/(\d+)$/.exec(path)?.[1] ?? waitMs);
    return { status: isFirst ? 503 : 200, afterMs };
  }
}

process.once('disconnect', () => process.exit());
const receiver = new BenchReceiver();
const url = await receiver.listen();
process.send?.(url);
