import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { forgetProcess, repositoryRoot, superviseProcess } from '@callplane/testing';

/** Runs of one bundle, on the PostgreSQL of all tests. A run that fails is not shrunk, which would take half an hour. */
const ARGS = ['--seeds', '11-13', '--fresh', '--coverage', '--brief'];
/** What the fleets do: lines of their logs, by message, kind and outcome. */
const LINES = [
  'operation attempt room.end completed',
  'delivery attempt pending',
  'delivery lease expired pending',
  'join joined',
];
/** A statement is a round trip to PostgreSQL, and a run has a thousand: on a busy machine each waits for the processor. */
const PATIENCE_MS = 900_000;

async function simulate(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const file = join(repositoryRoot, 'lab/simulation/simulate.mjs');
  const child = spawn(process.execPath, [file, ...args], {
    env: process.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  const pid = child.pid!;
  superviseProcess(pid, async () => {
    child.kill();
    await closed;
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await closed;
  forgetProcess(pid);
  return { code, output };
}

describe('simulated fleets', () => {
  let outcome: { code: number | null; output: string };
  beforeAll(async () => {
    outcome = await simulate(ARGS);
  }, PATIENCE_MS);

  test('keep every guarantee under the faults of each seed, and repeat exactly in another process', () => {
    // The output names the broken guarantee and the seed: `npm run simulate -- --seed N` prints the interleaving.
    expect(outcome.output).not.toContain('BROKEN');
    expect(outcome.code).toBe(0);
    expect(outcome.output.match(/^seed \d+: /gm)).toHaveLength(3);
    // The run here comes after two others: a module that keeps its state would change the hash.
    expect(outcome.output).toMatch(/^A process of its own runs seed 13: \w+$/m);
  });

  test('complete operations, retry deliveries, end leases and let participants join, and crash', () => {
    // A fleet that does nothing breaks no guarantee either.
    for (const line of LINES) {
      expect(outcome.output).toContain(` × ${line}\n`);
    }
    expect(Number(/crashes at (\d+) points/.exec(outcome.output)?.[1])).toBeGreaterThan(2);
  });
});

test('an option that is not known ends the command with the list of options', async () => {
  const { code, output } = await simulate(['--sed', '3']);
  expect([code, output]).toEqual([1, expect.stringMatching(/^Unknown option '--sed'[^]*--seeds A-B,C/)]);
  expect(output).not.toContain('    at ');
});
