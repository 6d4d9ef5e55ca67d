import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { stopAtEnd } from '@callplane/testing';
import { root } from '../bootstrap.js';
import type { Comparison } from './compare-logs.js';

const PROGRAM = `
  import { createInterface } from 'node:readline';
  import { compareLogs } from '${pathToFileURL(join(root, 'packages/dev/dist/model/compare-logs.js')).href}';
  for await (const line of createInterface({ input: process.stdin })) {
    const { logs, killed } = JSON.parse(line);
    console.log(JSON.stringify(compareLogs(logs, killed)));
  }`;

/**
 * Compares logs in a process of its own, which ends with the test file: in a context of Jest, Quint needs three times the
 * processor time.
 */
export function startComparisons(): (logs: readonly object[], killed?: number) => Promise<Comparison> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  stopAtEnd(async () => {
    child.stdin.end();
    await closed;
  });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async (logs, killed = 0) => {
    child.stdin.write(`${JSON.stringify({ logs, killed })}\n`);
    const { value, done } = await answers.next();
    if (done === true) throw new Error('the process that compares logs has ended');
    return JSON.parse(value) as Comparison;
  };
}
