import { spawn } from 'node:child_process';
import { isAlive, type LocalServer } from '@callplane/local-servers';
import { eventually, stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { Machine, type Begin } from './machine.js';

/** A process that waits. It ends with the test file. */
const begin: Begin = (onSpawn) => {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  const pid = child.pid!;
  stopAtEnd(() => Promise.resolve(void child.kill('SIGKILL')));
  onSpawn(pid);
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.kill('SIGTERM');
    });
  const onExit: LocalServer['onExit'] = (listener) =>
    void child.once('exit', (code, signal) => listener({ code, signal, expected: false }));
  return Promise.resolve({ name: 'waiting', port: 0, url: '', pid, stop, onExit });
};

const newMachine = (from: Begin = begin, startWithinMs?: number) => {
  const pids = new Set<number>();
  const processes = { watch: (pid: number) => void pids.add(pid), unwatch: (pid: number) => void pids.delete(pid) };
  const machine = new Machine('machine', from, processes, startWithinMs);
  const deaths: string[] = [];
  machine.onDied = (how) => deaths.push(how);
  stopAtEnd(() => machine.stop());
  return { machine, pids, deaths };
};

test('a killed machine stays down until it is started, and its process is no longer watched', async () => {
  const { machine, pids, deaths } = newMachine();
  await machine.start();
  const [first] = [...pids];
  machine.kill();
  await eventually(() => !isAlive(first!));
  expect(pids.size).toBe(0);
  await machine.start();
  expect([...pids]).not.toEqual([first]);
  expect(deaths).toEqual([]);
});

test('a process that ends by itself is reported and started again', async () => {
  const { machine, pids, deaths } = newMachine();
  await machine.start();
  const [first] = [...pids];
  process.kill(first!, 'SIGKILL');
  await eventually(() => pids.size === 1 && !pids.has(first!));
  expect(deaths).toEqual(['SIGKILL']);
});

test('a machine that is killed while it starts is no longer wanted', async () => {
  let ready: () => void = () => undefined;
  const { machine, pids } = newMachine(async (onSpawn) => {
    const server = await begin(onSpawn);
    await new Promise<void>((resolve) => (ready = resolve));
    return server;
  });
  const starting = machine.start();
  await eventually(() => pids.size === 1);
  machine.kill();
  ready();
  await starting;
  expect(pids.size).toBe(0);
});

test('a machine gives up a start that fails for too long, and says why', async () => {
  const { machine } = newMachine(() => Promise.reject(new Error('no disk')), 0);
  await expect(machine.start()).rejects.toThrow('machine did not start within 0 s: no disk');
});
