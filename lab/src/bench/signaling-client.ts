import { once } from 'node:events';
import { WebSocket } from 'ws';

/** A gateway client for load: without media and with as little work of its own as possible. */
export async function openClient(url: string, protocol: 'callplane.v1' | 'callplane.v2' = 'callplane.v1') {
  const socket = new WebSocket(url, protocol, { perMessageDeflate: false });
  const listeners = new Map<string, (message: any) => void>();
  socket.on('message', (data) => {
    const message = JSON.parse((data as Buffer).toString());
    listeners.get(message.type)?.(message);
  });
  await once(socket, 'open');
  return {
    send: (message: object) => socket.send(JSON.stringify(message)),
    /** Sets the only listener for `type`. */
    on: (type: string, listener: (message: any) => void) => void listeners.set(type, listener),
    /** @returns the welcome */
    join: (token: string): Promise<any> =>
      new Promise((resolve, reject) => {
        listeners.set('welcome', resolve);
        listeners.set('closing', ({ reason }) => reject(new Error(`not let in: ${reason}`)));
        socket.send(JSON.stringify({ type: 'join', token, autoSubscribe: false }));
      }),
    closed: once(socket, 'close'),
    close: () => socket.terminate(),
  };
}

export type Client = Awaited<ReturnType<typeof openClient>>;

/** Runs `work` for each item, `atOnce` at a time, and returns the results in the order of the items. */
export async function each<T, R>(items: T[], atOnce: number, work: (item: T, index: number) => Promise<R>) {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index] as T, index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/** @param share from 0 to 1 */
export function percentile(values: number[], share: number) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
