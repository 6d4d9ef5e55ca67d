import { fork } from 'node:child_process';
import { join } from 'node:path';

export interface Ticket {
  key: number;
  url: string;
  token: string;
  /** Bytes are counted by group; default `all`. */
  group?: string;
}

export interface Pace {
  atOnce?: number;
  perSecond?: number;
}

export interface Joined {
  tookMs: number[];
  /** Attempts that were repeated, by the reason of their end. */
  retries: Record<string, number>;
  /** By reason. */
  failures: Record<string, number>;
}

export interface Resumptions {
  /** Milliseconds since 1970. */
  welcomesAt: number[];
  attempts: number;
  /** Attempts that failed, by reason. */
  ends: Record<string, number>;
}

const PROCESSES = 2;

/** The clients, in processes of their own. A client is where its key says: `key % PROCESSES`. */
export function openCrowd() {
  const processes = Array.from({ length: PROCESSES }, openProcess);
  const isIn = (index: number) => (key: number) => key % PROCESSES === index;
  const callOf = (key: number) => (processes[key % PROCESSES] as (typeof processes)[number]).call;
  const all = (command: string, argument: (index: number) => object = () => ({})): Promise<any[]> =>
    Promise.all(processes.map(({ call }, index) => call(command, argument(index))));
  return {
    /** The pace counts all processes together. */
    async join(tickets: Ticket[], { atOnce, perSecond }: Pace): Promise<Joined> {
      const results: Joined[] = await all('join', (index) => ({
        tickets: tickets.filter(({ key }) => isIn(index)(key)),
        atOnce: atOnce === undefined ? undefined : Math.ceil(atOnce / PROCESSES),
        perSecond: perSecond === undefined ? undefined : perSecond / PROCESSES,
      }));
      return {
        tookMs: results.flatMap(({ tookMs }) => tookMs),
        retries: sums(results.map(({ retries }) => retries)),
        failures: sums(results.map((one) => one.failures)),
      };
    },
    leave: (keys: number[]) => all('leave', (index) => ({ keys: keys.filter(isIn(index)) })),
    leaveAll: () => all('leave'),
    send: (key: number, message: object) => callOf(key)('send', { key, message }),
    /** Counts the bytes of these clients apart from the others'. */
    group: (name: string, keys: number[]) => all('group', (index) => ({ name, keys: keys.filter(isIn(index)) })),
    participantId: async (key: number): Promise<string> => (await callOf(key)('participantIds', { keys: [key] }))[0],
    forgetReceived: () => all('forgetReceived'),
    /** Bytes received since `forgetReceived`, by type. */
    received: async (group: string): Promise<Record<string, number>> =>
      sums((await all('received')).map((groups) => groups[group] ?? {})),
    /** From now on, clients that lose their connection resume at one of these. */
    resumeAt: (urls: string[]) => all('resumeAt', () => ({ urls })),
    async resumptions(): Promise<Resumptions> {
      const results: Resumptions[] = await all('resumptions');
      return {
        welcomesAt: results.flatMap(({ welcomesAt }) => welcomesAt),
        attempts: results.reduce((sum, { attempts }) => sum + attempts, 0),
        ends: sums(results.map(({ ends }) => ends)),
      };
    },
    close: () => {
      for (const { child } of processes) child.kill();
    },
  };
}

export type Crowd = ReturnType<typeof openCrowd>;

function openProcess() {
  const child = fork(join(import.meta.dirname, 'rooms-clients.js'));
  const waiting = new Map<number, { resolve: (result: any) => void; reject: (error: Error) => void }>();
  child.on('message', ({ id, result, error }: { id: number; result: unknown; error?: string }) => {
    const answer = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(error));
  });
  child.once('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`A client process exited with ${String(code)}`));
  });
  let last = 0;
  const call = (command: string, argument: object): Promise<any> =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      child.send({ id: last, command, argument });
    });
  return { child, call };
}

function sums(counts: Record<string, number>[]): Record<string, number> {
  const result: Record<string, number> = {};
  for (const one of counts) {
    for (const [name, value] of Object.entries(one)) result[name] = (result[name] ?? 0) + value;
  }
  return result;
}
