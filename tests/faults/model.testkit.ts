import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { repositoryRoot, type TestApp } from '@callplane/testing';
import type { Comparison } from '../../packages/dev/src/model/compare-logs.js';

/** Apps log their transitions with this setting. */
export const WITH_TRANSITIONS = { LOG_LEVEL: 'debug' };

const PROGRAM = `
  import { text } from 'node:stream/consumers';
  import { compareLogs } from '${pathToFileURL(join(repositoryRoot, 'packages/dev/dist/model/compare-logs.js')).href}';
  const { logs, killed } = JSON.parse(await text(process.stdin));
  process.stdout.write(JSON.stringify(compareLogs(logs, killed)));`;

/**
 * Compares what the apps of a test file did with the specifications, in a process of its own: in a context of Jest, Quint
 * needs three times the processor time.
 * @param apps all of the file, also those that have stopped.
 * @returns the number of traces that were compared, and the lines that the specifications do not allow.
 */
export async function compareWithModel(apps: readonly TestApp[]): Promise<Comparison> {
  const killed = apps.filter(({ logs }) => !logs.some(({ message }) => message === 'process stopped')).length;
  const lines = apps.flatMap(({ logs }) => logs.filter(({ message }) => message === 'transition'));
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify({ logs: lines, killed }));
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return JSON.parse(output) as Comparison;
}
