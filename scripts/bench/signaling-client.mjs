import { once } from 'node:events';
import { WebSocket } from 'ws';

/**
 * A client of the gateway without media and without anything that costs time: for load.
 * @param {string} url
 */
export async function openClient(url) {
  const socket = new WebSocket(url, 'callplane.v1', { perMessageDeflate: false });
  /** @type {Map<string, (message: any) => void>} */
  const listeners = new Map();
  socket.on('message', (data) => {
    const message = JSON.parse(data.toString());
    listeners.get(message.type)?.(message);
  });
  await once(socket, 'open');
  return {
    /** @param {object} message */
    send: (message) => socket.send(JSON.stringify(message)),
    /**
     * One listener for each type.
     * @param {string} type
     * @param {(message: any) => void} listener
     */
    on: (type, listener) => void listeners.set(type, listener),
    /** @param {string} token @returns {Promise<any>} the welcome */
    join: (token) =>
      new Promise((resolve, reject) => {
        listeners.set('welcome', resolve);
        listeners.set('closing', ({ reason }) => reject(new Error(`not let in: ${reason}`)));
        socket.send(JSON.stringify({ type: 'join', token, autoSubscribe: false }));
      }),
    closed: once(socket, 'close'),
    close: () => socket.terminate(),
  };
}

/** @typedef {Awaited<ReturnType<typeof openClient>>} Client */

/**
 * Does `work` for each, so many at once, and returns what it returned, in order.
 * @template T, R
 * @param {T[]} items
 * @param {number} atOnce
 * @param {(item: T, index: number) => Promise<R>} work
 */
export async function each(items, atOnce, work) {
  /** @type {R[]} */
  const results = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(/** @type {T} */ (items[index]), index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/**
 * @param {number[]} values
 * @param {number} share from 0 to 1
 */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
