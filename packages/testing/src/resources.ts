import { resolve } from 'node:path';

/** The root of the repository, three levels above this file's folder, which is src/ or dist/. */
export const repositoryRoot = resolve(import.meta.dirname, '..', '..', '..');

/**
 * The stop functions of a test file's resources. The Jest environment (jest/environment.mjs) calls them, newest first,
 * after the file's last hook. If Jest itself is killed, the kernel kills the processes: see `bound` of
 * local-servers.
 */
const scope = globalThis as { [key: symbol]: unknown };
const KEY = Symbol.for('callplane.resources');
const stops = (scope[KEY] ??= []) as (() => Promise<unknown>)[];

/** Registers `stop`, which must be idempotent, to run at the end of the test file, whether it passed or not. */
export function stopAtEnd(stop: () => Promise<unknown>): void {
  stops.push(stop);
}

/** How long a resource may take to stop, in milliseconds. */
const STOP_WITHIN_MS = 30_000;

/** Stops the resources that were registered in a global scope, newest first. */
export async function stopAll(global: { [key: symbol]: unknown }): Promise<void> {
  const registered = (global[KEY] ?? []) as (() => Promise<unknown>)[];
  for (const stop of registered.splice(0).reverse()) {
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not within ${STOP_WITHIN_MS / 1000} s`)), STOP_WITHIN_MS);
    });
    await Promise.race([stop(), tooLong]).catch((error: unknown) =>
      console.error('A test server did not stop:', error),
    );
    clearTimeout(timer);
  }
}
