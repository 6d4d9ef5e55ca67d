import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Instance } from './instances.js';

/** Messages of log lines that no fault explains. */
const NEVER = /"message":"process failed/;

/** Lines in the logs of the apps that must not be there. */
export function failuresIn(instances: readonly Instance[]): { app: string; message: string }[] {
  return instances.flatMap(({ machine, logFile }) =>
    readFileSync(logFile, 'utf8')
      .split('\n')
      .filter((line) => NEVER.test(line))
      .map((message) => ({ app: machine.name, message: message.slice(0, 500) })),
  );
}

/** Copies the logs of all servers, for the search after a broken guarantee. */
export function keepLogs(dir: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const folders = [
    '',
    ...readdirSync(dir, { withFileTypes: true }).flatMap((each) => (each.isDirectory() ? each.name : [])),
  ];
  for (const inside of folders) {
    for (const name of readdirSync(join(dir, inside)).filter((file) => file.endsWith('.log'))) {
      const unique = inside === '' ? name : `${inside}.log`;
      writeFileSync(join(folder, unique), readFileSync(join(dir, inside, name)));
    }
  }
}
