import { spawn, spawnSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { childrenOf, isAlive } from '@callplane/local-servers';
import { eventually, stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { Machine } from './machine.js';
import { exitOnSignals, Processes } from './processes.js';

test('a run that is interrupted while a server is frozen leaves no process, no mount and no folder behind', async () => {
  const processes = new Processes();
  let child = 0;
  // A server whose child has a process group of its own, as in PostgreSQL.
  const machine = new Machine(
    'server',
    async (onSpawn) => {
      const args = ['-c', 'setsid sleep 600 & wait'];
      const server = spawn('/bin/sh', args, { detached: true, stdio: 'ignore' });
      const pid = server.pid ?? 0;
      onSpawn(pid);
      await eventually(() => childrenOf(pid).length === 1);
      [child = 0] = childrenOf(pid);
      const stop = (): Promise<void> => Promise.resolve(void server.kill('SIGKILL'));
      return { name: 'server', port: 0, url: '', pid, stop, onExit: () => undefined };
    },
    processes,
  );
  const cleanedUp: boolean[] = [];
  processes.onDestroy(() => cleanedUp.push(existsSync(processes.dir)));
  await machine.start();
  stopAtEnd(() => Promise.resolve(spawnSync('kill', ['-KILL', String(child)])));
  machine.freeze();
  processes.destroy();
  await eventually(() => !isAlive(child));
  expect([cleanedUp, existsSync(processes.dir)]).toEqual([[true], false]);
});

test('a second signal finds a listener, without which it would interrupt the end of a run', () => {
  const codes: unknown[] = [];
  const own = Object.assign(new EventEmitter(), { exit: (code: unknown) => codes.push(code) });
  exitOnSignals(own as never);
  expect([own.emit('SIGINT'), own.emit('SIGINT')]).toEqual([true, true]);
  expect(codes).toEqual([130, 130]);
});
