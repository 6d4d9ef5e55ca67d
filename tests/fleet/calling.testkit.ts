/** Callers that do not stop for anything. */
export interface Calling {
  /** Resolves after so many more calls. */
  atLeast(count: number): Promise<void>;
  /** How often each status was answered, and how many rooms were created. */
  stop(): Promise<{ statuses: Record<string, number>; created: number }>;
}

/** Creates rooms and reads them back, eight callers at once, until it is told to stop. */
export function keepCalling({ url, key }: { url: string; key: string }): Calling {
  const statuses: Record<string, number> = {};
  let created = 0;
  let calls = 0;
  let stopping = false;
  let told: (() => void)[] = [];
  const call = async (path: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    calls += 1;
    for (const tell of told) tell();
    return response;
  };
  const caller = async () => {
    while (!stopping) {
      const room = await call('/v1/rooms', { method: 'POST', body: '{"name":"Load"}' });
      if (room.status !== 201) continue;
      const body = (await room.json()) as { id: string };
      created += 1;
      await (await call(`/v1/rooms/${body.id}`, {})).arrayBuffer();
    }
  };
  const callers = Array.from({ length: 8 }, caller);
  return {
    atLeast(count) {
      const until = calls + count;
      return new Promise((resolve, reject) => {
        told.push(() => calls >= until && resolve());
        void Promise.all(callers).catch(reject);
      });
    },
    async stop() {
      stopping = true;
      told = [];
      await Promise.all(callers);
      return { statuses, created };
    },
  };
}
