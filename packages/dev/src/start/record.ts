import { rmSync } from 'node:fs';
import { devFileOf, writeJson } from '../local-data.js';

export type RunRecord = ReturnType<typeof openRecord>;

/**
 * Keeps dev.json up to date, which exists from `publish` until `withdraw`, for people and scripts. A dead process stays
 * listed until its successor has an id.
 */
export function openRecord(dataDir: string) {
  const file = devFileOf(dataDir);
  const pids = new Map<string, number>();
  let published: object | undefined;
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
    /** @param facts the content of dev.json, besides the processes; docs/local.md has its names. */
    publish(facts: object): void {
      published = facts;
      write();
    },
    withdraw,
  };
}
