import { setTimeout as delay } from 'node:timers/promises';

/** Callers that continue through any disturbance. */
export interface Calling {
  /** Resolves after this many more calls. */
  atLeast(count: number): Promise<void>;
  /** Resolves to the number of responses by status and the number of created rooms. */
  stop(): Promise<{ statuses: Record<string, number>; created: number }>;
}

/** Without a pause, the callers would take the whole processor while an app starts. */
const PAUSE_MS = 50;

/** Creates rooms and reads them back with eight concurrent callers until `stop`. */
export function keepCalling({ url, key }: { url: string; key: string }): Calling {
  const statuses: Record<string, number> = {};
  let created = 0;
  let calls = 0;
  let stopping = false;
  let onCall: (() => void)[] = [];
  const call = async (path: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    calls += 1;
    for (const notify of onCall) notify();
    return response;
  };
  const caller = async () => {
    while (!stopping) {
      const room = await call('/v1/rooms', { method: 'POST', body: '{"name":"Load"}' });
      if (room.status !== 201) continue;
      const body = (await room.json()) as { id: string };
      created += 1;
      await (await call(`/v1/rooms/${body.id}`, {})).arrayBuffer();
      await delay(PAUSE_MS);
    }
  };
  const callers = Array.from({ length: 8 }, caller);
  return {
    atLeast(count) {
      const until = calls + count;
      return new Promise((resolve, reject) => {
        onCall.push(() => calls >= until && resolve());
        void Promise.all(callers).catch(reject);
      });
    },
    async stop() {
      stopping = true;
      onCall = [];
      await Promise.all(callers);
      return { statuses, created };
    },
  };
}
