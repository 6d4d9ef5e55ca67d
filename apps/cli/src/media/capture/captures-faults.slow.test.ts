import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { captureChunkKey, newId } from '@callplane/core';
import { Database } from '@callplane/db';
import { FolderStore } from '@callplane/store';
import { createTestDatabase, createTestTenant, roomRow, stopAtEnd, type TestTenant } from '@callplane/testing';
import fc from 'fast-check';
import { Captures, type CaptureDeps } from './captures.js';

const scratch = mkdtempSync(join(tmpdir(), 'callplane-captures-faults-'));
afterAll(() => rmSync(scratch, { recursive: true }));

let database: Database;
let tenant: TestTenant;
beforeAll(async () => {
  database = new Database({ url: (await createTestDatabase()).url, poolMax: 2 });
  stopAtEnd(() => database.close());
  tenant = await createTestTenant(database);
});

/** In one pass: the call to PostgreSQL, the store or the media server that fails, and whether it has an effect first. */
interface Fault {
  call: number;
  isAfter: boolean;
  /** Whether the agent dies with it. */
  dies: boolean;
  grows: number;
}
const FAULTS = fc.array(
  fc.record({
    call: fc.integer({ min: 1, max: 16 }),
    isAfter: fc.boolean(),
    dies: fc.boolean(),
    grows: fc.integer({ min: 0, max: 400 }),
  }),
  { minLength: 1, maxLength: 6 },
);

/** `FAULT_RUNS=1000 npm run test:all -- --rest --testPathPatterns=captures-faults` tries more. */
const RUNS = Number(process.env['FAULT_RUNS'] ?? 100);

class Failed extends Error {}

/** Fails at the given call of a pass. */
function unreliable(deps: CaptureDeps, { call, isAfter }: Fault): CaptureDeps {
  let calls = 0;
  const meet = async <T>(work: () => PromiseLike<T>): Promise<T> => {
    const fails = (calls += 1) === call;
    if (fails && !isAfter) throw new Failed();
    const result = await work();
    if (fails) throw new Failed();
    return result;
  };
  return {
    ...deps,
    db: {
      $queryRaw: (parts, ...values) => meet(() => deps.db.$queryRaw(parts, ...values)),
      $executeRaw: (parts, ...values) => meet(() => deps.db.$executeRaw(parts, ...values)),
    },
    record: (roomId, how) => meet(() => deps.record(roomId, how)),
    store: { put: (name, object) => meet(() => deps.store.put(name, object)) },
  };
}

test('the store gets each file as a whole, and none is deleted before, although calls of each pass fail', async () => {
  await fc.assert(
    fc.asyncProperty(FAULTS, async (faults) => {
      const folder = mkdtempSync(join(scratch, 'captures-'));
      const store = new FolderStore(mkdtempSync(join(scratch, 'store-')));
      let nowMs = Date.now();
      const started = { status: 'active', startedAt: new Date(), mediaNodeId: 'm1' };
      const { id: roomId } = await database.prisma.room.create({ data: roomRow(tenant, started) });
      const options = { mode: 'tracks', audioOnly: false, metadata: {}, maxDurationSeconds: 600 };
      const { id } = await database.prisma.recording.create({
        data: {
          ...{ id: newId('recording'), environmentId: tenant.environmentId, roomId, ...options },
          ...{ status: 'recording', startedAt: new Date() },
        },
      });
      mkdirSync(join(folder, roomId));
      const files = new Map<string, Buffer>();
      for (const section of [0, 1]) {
        const name = `videoroom-room-user-sess_1-1-1-1795902233244954-audio-${section}`;
        const header = Buffer.from(JSON.stringify({ t: 'a', c: 'opus', u: nowMs * 1000 }));
        const begin = Buffer.concat([Buffer.from('MJR00002'), Buffer.from([0, header.length]), header]);
        writeFileSync(join(folder, roomId, `${name}.mjr.part`), begin);
        files.set(name, begin);
      }
      const rowOf = (name: string) => database.prisma.recordingCapture.findFirst({ where: { roomId, name } });
      const record = () => Promise.resolve(true);
      const deps: CaptureDeps = { db: database.sql, record, store, nodeId: 'm1', folder, nowMs: () => nowMs };
      let isEnded = false;
      const pathOf = (name: string) => join(folder, roomId, `${name}.mjr${isEnded ? '' : '.part'}`);
      // One agent for all passes between two deaths, with other failures in each pass.
      let passing = deps;
      const renewed = () =>
        new Captures({
          ...deps,
          db: {
            $queryRaw: (...args) => passing.db.$queryRaw(...args),
            $executeRaw: (...args) => passing.db.$executeRaw(...args),
          },
          record: (...args) => passing.record(...args),
          store: { put: (...args) => passing.store.put(...args) },
        });
      let agent = renewed();
      const pass = async (fault: Fault | null): Promise<void> => {
        nowMs += 30_000;
        passing = fault === null ? deps : unreliable(deps, fault);
        await agent.pass().catch((error: unknown) => {
          if (!(error instanceof Failed)) throw error;
        });
        if (fault?.dies === true) agent = renewed();
        for (const [name, bytes] of files) {
          const row = await rowOf(name);
          if (!existsSync(pathOf(name))) expect(row).toMatchObject({ bytes: BigInt(bytes.length), closed: true });
        }
      };
      for (const [n, fault] of faults.entries()) {
        for (const [name, bytes] of isEnded ? [] : files) {
          const more = Buffer.alloc(fault.grows, n);
          appendFileSync(pathOf(name), more);
          files.set(name, Buffer.concat([bytes, more]));
        }
        if (n === Math.floor(faults.length / 2)) {
          const paths = [...files.keys()].map(pathOf);
          await database.prisma.recording.update({
            where: { id },
            data: { status: 'processing', endedAt: new Date() },
          });
          isEnded = true;
          for (const path of paths) renameSync(path, path.replace('.part', ''));
        }
        await pass(fault);
      }
      await pass(null);
      await pass(null);
      expect(readdirSync(folder)).toEqual([]);
      for (const [name, bytes] of files) {
        const row = await rowOf(name);
        expect(row).toMatchObject({ bytes: BigInt(bytes.length), closed: true });
        const keys = Array.from({ length: row!.chunks }, (_, n) => captureChunkKey({ roomId, nodeId: 'm1', name }, n));
        const chunks = await Promise.all(keys.map(async (key) => buffer(await store.read(key))));
        expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
      }
    }),
    { numRuns: RUNS, seed: 46 },
  );
});
