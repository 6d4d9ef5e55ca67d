/** `npm run simulate [-- …]`: runs lab/simulation. Its simulate.mjs explains the options. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../bootstrap.js';

export async function main(args: string[]): Promise<void> {
  const file = join(root, 'lab', 'simulation', 'simulate.mjs');
  const child = spawn(process.execPath, [file, ...args], { stdio: 'inherit' });
  // It stops what it has started. Its end is awaited.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGTERM'));
  process.exitCode = await new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? 1)));
}
