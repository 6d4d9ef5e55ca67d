import { rmSync } from 'node:fs';
import { devFileOf, writeJson } from '../local-data.js';

/** The content of dev.json, besides the processes. */
interface Published {
  baseUrl: string;
  projectId: string;
  environmentId: string;
  secretKey: string;
  publishableKey: string;
  databaseUrl: string;
  redisUrl: string;
  signalingUrl: string;
  demoUrl: string;
  /** Where each app shows its metrics, by its name. */
  metricsUrls: Readonly<Record<string, string>>;
}

export type RunRecord = ReturnType<typeof openRecord>;

/**
 * Keeps dev.json up to date, which exists from `publish` until `withdraw`, for people and scripts. A dead process stays
 * listed until its successor has an id.
 */
export function openRecord(dataDir: string) {
  const file = devFileOf(dataDir);
  const pids = new Map<string, number>();
  let published: Published | undefined;
  const write = (): void => {
    if (published === undefined) return;
    writeJson(file, { ...published, processes: [...pids].map(([name, pid]) => ({ name, pid })) });
  };
  const withdraw = (): void => {
    published = undefined;
    rmSync(file, { force: true });
  };
  // A start that was killed has left its file.
  withdraw();
  return {
    /** Records a new process, in place of an earlier one of that name. */
    spawned(name: string, pid: number): void {
      pids.set(name, pid);
      write();
    },
    publish(facts: Published): void {
      published = facts;
      write();
    },
    withdraw,
  };
}
