import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId, peerSubject } from '@callplane/core';
import { listTurnServers } from '@callplane/db';
import {
  eventually,
  openTurnClient,
  relaysByUser,
  startTestCoturn,
  stopAtEnd,
  turnCredential,
  type TestCoturn,
} from '@callplane/testing';
import { closeRelays, parseTurnServers, type TurnServer } from './relays.js';
import { closeEndedRelays } from '../reconcile/presence.js';
import { NOON, startTestWorker, type TestWorker, workOnOperation } from '../worker.testkit.js';

const PASSWORD = 'test-turn-admin-password';
let coturn: TestCoturn;
let server: TurnServer;
let worker: TestWorker;
beforeAll(async () => {
  coturn = await startTestCoturn();
  [server] = parseTurnServers([coturn.adminUrl], PASSWORD) as [TurnServer];
  worker = await startTestWorker({ turnServers: [server] });
});
beforeEach(() => worker.clock.set(NOON));

/** A client with a relay. */
const relayOf = async (subject: string, ttlSeconds = 600) => {
  const { host, port, secret } = coturn;
  const client = await openTurnClient({ host, port, ...turnCredential(secret, subject, ttlSeconds) });
  stopAtEnd(async () => client.close());
  expect(await client.allocate()).toBe(0);
  return client;
};
const subjects = async () => [...(await relaysByUser(coturn)).keys()].map((user) => user.slice(user.indexOf(':') + 1));
const due = (id: string) =>
  worker.sql(`UPDATE runtime_operations SET due_at = now() - interval '1 second' WHERE id = '${id}'`);
const sessionIn = async (roomId: string, participantId: string) => {
  const where = { roomId, participantId };
  return (await worker.deps.database.prisma.participantSession.findFirstOrThrow({ where })).id;
};
const inSession = async (roomId: string) => {
  const participantId = await worker.newParticipant(roomId, { connectedAt: NOON, inSession: true });
  return { participantId, sessionId: await sessionIn(roomId, participantId) };
};

describe('removing a participant', () => {
  test('closes every relay of its sessions, also of renewed credentials, and no other', async () => {
    const roomId = await worker.newRoom();
    const [gone, stays] = [await inSession(roomId), await inSession(roomId)];
    await relayOf(gone.sessionId);
    await relayOf(gone.sessionId);
    const renewed = await relayOf(gone.sessionId, 900);
    // User names that resemble the session's, and a session that is missing in this database.
    const others = [stays.sessionId, `${gone.sessionId}:1`, `env_1:${gone.sessionId}`, newId('session')];
    for (const subject of others) await relayOf(subject);

    const id = await worker.workOn(worker.removeParticipant(roomId, gone.participantId));

    expect(await worker.row(id)).toMatchObject({ status: 'completed' });
    expect((await subjects()).sort()).toEqual([...others].sort());
    expect(await renewed.refresh()).toBe(437);
    const line = await eventually(() => worker.lines.find((each) => each['operationId'] === id));
    expect(line).toMatchObject({ outcome: 'completed', relaysClosed: 3 });
    expect(await worker.metrics()).toMatch(/callplane_relays_closed_total\{by="operation",.*\} 3/);
  });

  test('ends the session while coturn does not answer, and completes once its relays are closed', async () => {
    const roomId = await worker.newRoom();
    const { participantId, sessionId } = await inSession(roomId);
    await relayOf(sessionId);
    const { id } = (await worker.removeParticipant(roomId, participantId)).operation;
    coturn.freeze();
    try {
      await workOnOperation(worker.deps, id);
    } finally {
      coturn.thaw();
    }
    const row = await worker.row(id);
    expect(row).toMatchObject({ status: 'pending', lastError: { message: 'The step "close the relays" failed.' } });
    expect(JSON.stringify([row.lastError, worker.lines])).not.toContain(PASSWORD);
    const session = await worker.deps.database.prisma.participantSession.findUniqueOrThrow({
      where: { id: sessionId },
    });
    expect(session).toMatchObject({ endReason: 'removed' });
    expect(await worker.events(roomId)).toEqual(['participant.left removed']);

    await due(id);
    await workOnOperation(worker.deps, id);
    expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 2 });
    expect(await subjects()).not.toContain(sessionId);
    expect(await worker.events(roomId)).toEqual(['participant.left removed']);
  });

  test('completes if no coturn listens, because such a server relays nothing', async () => {
    const roomId = await worker.newRoom();
    const { participantId } = await inSession(roomId);
    const { id } = (await worker.removeParticipant(roomId, participantId)).operation;
    coturn.kill('SIGKILL');
    await eventually(() =>
      relaysByUser(coturn).then(
        () => false,
        () => true,
      ),
    );
    const known = () => listTurnServers(worker.deps.database.prisma, new Date());
    try {
      await workOnOperation(worker.deps, id);
      expect(await worker.row(id)).toMatchObject({ status: 'completed' });
      await closeEndedRelays(worker.deps);
      expect(await known()).toEqual([{ address: server.address, state: 'down' }]);
    } finally {
      await coturn.start();
    }
    await closeEndedRelays(worker.deps);
    expect(await known()).toEqual([{ address: server.address, state: 'up' }]);
  });
});

describe('ending a room', () => {
  test('is not kept busy by a client that keeps allocating relays', async () => {
    const roomId = await worker.newRoom();
    const { sessionId } = await inSession(roomId);
    const { id } = (await worker.endRoom(roomId)).operation;
    const enough = new AbortController();
    const asked = (async () => {
      while (!enough.signal.aborted) (await relayOf(sessionId)).close();
    })().catch(() => undefined);
    await eventually(async () => (await subjects()).includes(sessionId));
    await workOnOperation(worker.deps, id);
    enough.abort();
    await asked;
    expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 1 });
    await eventually(async () => {
      await closeEndedRelays(worker.deps);
      return !(await subjects()).includes(sessionId);
    });
  });
});

describe('the relay sweep', () => {
  test('closes relays that a client allocates after its session has ended, and keeps relays of live sessions', async () => {
    const roomId = await worker.newRoom();
    const [ended, live] = [await inSession(roomId), await inSession(roomId)];
    const [clinging, staying] = [await relayOf(ended.sessionId), await relayOf(live.sessionId)];
    await worker.sql(
      `UPDATE participant_sessions SET ended_at = now(), end_reason = 'connection_lost' WHERE id = '${ended.sessionId}'`,
    );
    await closeEndedRelays(worker.deps);
    expect([await clinging.refresh(), await staying.refresh()]).toEqual([437, 0]);
    // coturn cannot revoke the credential, so the client can allocate another relay.
    const anew = await relayOf(ended.sessionId);
    await closeEndedRelays(worker.deps);
    expect(await anew.refresh()).toBe(437);
    expect(await worker.metrics()).toMatch(/callplane_relays_closed_total\{by="sweep",.*\} [1-9]/);
  });

  test('keeps the relays of the two latest credentials of each peer connection, whatever their expiries', async () => {
    const { sessionId } = await inSession(await worker.newRoom());
    const [publisher, subscriber] = [peerSubject(sessionId, 'publisher'), peerSubject(sessionId, 'subscriber')];
    const relays: Awaited<ReturnType<typeof relayOf>>[] = [];
    const others = [await relayOf(sessionId, 100), await relayOf(sessionId, 200), await relayOf(sessionId, 300)];
    others.push(await relayOf(subscriber, 100), await relayOf(subscriber, 200));
    // A gateway whose clock is slow issues the third.
    for (const ttlSeconds of [700, 800, 600]) {
      relays.push(await relayOf(publisher, ttlSeconds), await relayOf(publisher, ttlSeconds));
      // coturn reports ages in whole seconds.
      await delay(1_100);
    }
    await closeEndedRelays(worker.deps);
    const answers = await Promise.all([...relays, ...others].map((relay) => relay.refresh()));
    expect(answers).toEqual([437, 437, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  });
});

describe('a TURN administration interface', () => {
  const none = () => Promise.resolve([]);
  /** A server that answers each connection with `answer`. */
  const impostor = async (onConnection: (socket: Socket) => void): Promise<TurnServer> => {
    const listener = createServer((socket) => {
      socket.on('error', () => undefined);
      onConnection(socket);
    });
    await once(listener.listen(0, '127.0.0.1'), 'listening');
    stopAtEnd(async () => void listener.close());
    const { port } = listener.address() as { port: number };
    return { address: `127.0.0.1:${port}`, host: '127.0.0.1', port, password: PASSWORD };
  };

  test('that refuses the password causes a specific error without the password in it', async () => {
    const failure: unknown = await closeRelays({ ...server, password: 'another-password' }, none).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({
      kind: 'unreachable',
      message: `coturn at ${server.address}: password refused`,
    });
  });

  test('that never stops sending output is disconnected', async () => {
    const server = await impostor((socket) => {
      const more = () => {
        while (socket.writable && socket.write('x'.repeat(65_536)));
      };
      socket.on('drain', more);
      more();
    });
    await expect(closeRelays(server, none)).rejects.toMatchObject({
      kind: 'unreachable',
      message: expect.stringContaining('too much output'),
    });
  });

  test('is unreachable if it closes the connection, or if it sends nothing for five seconds', async () => {
    const hangsUp = await impostor((socket) => socket.destroy());
    await expect(closeRelays(hangsUp, none)).rejects.toMatchObject({ kind: 'unreachable' });
    const silent = await impostor(() => undefined);
    await expect(closeRelays(silent, none)).rejects.toMatchObject({
      kind: 'unreachable',
      message: expect.stringContaining('response timed out'),
    });
  });
});

test('TURN_ADMIN_URLS must contain host and port of each server, and no password', () => {
  expect(parseTurnServers(['telnet://10.0.0.5:5766', 'telnet://[fd00::1]:5766'], 'secret-word')).toEqual([
    { address: '10.0.0.5:5766', host: '10.0.0.5', port: 5766, password: 'secret-word' },
    { address: '[fd00::1]:5766', host: 'fd00::1', port: 5766, password: 'secret-word' },
  ]);
  expect(parseTurnServers([], undefined)).toEqual([]);
  expect(() => parseTurnServers(['telnet://a:1'], undefined)).toThrow('TURN_ADMIN_PASSWORD');
  for (const wrong of ['http://a:1', 'telnet://a', 'telnet://', 'nonsense', 'telnet://user:secret-word@a:1']) {
    expect(() => parseTurnServers([wrong], 'secret-word')).toThrow(/^entry 1 must (?!.*secret-word)/);
  }
});
