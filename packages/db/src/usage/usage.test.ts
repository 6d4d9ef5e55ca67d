import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryRow, participantRow, sessionRow } from '@callplane/testing';
import { DAY_MS, dayOf, firstIdAt, newId, noUsage, type UsageDay } from '@callplane/core';
import fc from 'fast-check';
import { purgeExpiredRooms } from '../rooms/room-retention.js';
import { addQuality, listSessions } from '../sessions/session-history.js';
import { startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { readUsage, rollUpUsage } from './usage.js';

let rooms: TestRooms;
beforeEach(async () => {
  rooms = await startTestRooms();
});

const DAY = new Date('2026-03-28T00:00:00.000Z');
const at = (days: number, ms = 0) => new Date(DAY.getTime() + days * DAY_MS + ms);
const days = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, n) => at(first + n));
const HOUR_MS = 3_600_000;
let sessions = 0;

interface Stay {
  room: string;
  begin: Date;
  /** Null while it lasts. */
  end: Date | null;
}

/** Writes sessions as joins and departures do, each of a participant of its own. */
async function stays(list: readonly Stay[], environmentId = rooms.tenant.environmentId): Promise<string[]> {
  const { prisma } = rooms.database;
  const rows = list.map((stay) => ({ ...stay, n: (sessions += 1) }));
  await prisma.participant.createMany({
    data: rows.map(({ room, n }) => participantRow({ environmentId }, room, { id: `part_${n}`, createdAt: DAY })),
  });
  await prisma.participantSession.createMany({
    data: rows.map(({ room, begin, end, n }) => {
      const more = { id: `sess_${n}`, startedAt: begin, endedAt: end, endReason: end === null ? null : 'left' };
      return sessionRow({ environmentId }, { roomId: room, participantId: `part_${n}` }, more);
    }),
  });
  return rows.map(({ n }) => `sess_${n}`);
}

const read = (first: number, last: number, now: Date, tenant = rooms.tenant) =>
  readUsage(rooms.database.sql, tenant, at(first), at(last), now);
const usage = (day: number, more: Partial<UsageDay>): UsageDay => ({ ...noUsage(at(day)), ...more });

/** The same figures, computed one instant after the other. */
function expected(list: readonly Stay[], day: Date, now: Date): UsageDay {
  const [start, stop] = [day.getTime(), day.getTime() + DAY_MS];
  const parts = list
    .filter(({ begin }) => begin < now)
    .map(({ room, begin, end }) => ({
      room,
      begin: Math.max(start, begin.getTime()),
      end: Math.min(stop, (end ?? now).getTime()),
    }))
    .filter(({ begin, end }) => begin < end);
  const presentAt = (ms: number) => parts.filter(({ begin, end }) => begin <= ms && ms < end).length;
  return {
    ...noUsage(day),
    rooms: new Set(parts.map(({ room }) => room)).size,
    participantMs: parts.reduce((sum, { begin, end }) => sum + end - begin, 0),
    peakParticipants: Math.max(0, ...parts.map(({ begin }) => presentAt(begin))),
  };
}

describe('usage by day', () => {
  test('does not count a session and the one that supersedes it at the same instant', async () => {
    const room = await rooms.newRoom();
    await stays([
      { room, begin: at(0), end: at(0, 1000) },
      { room, begin: at(0, 1000), end: at(0, 2000) },
      { room, begin: at(0, 1000), end: at(0, 1000) },
    ]);
    expect(await read(0, 0, at(1))).toEqual([usage(0, { rooms: 1, participantMs: 2000, peakParticipants: 1 })]);
  });

  test('equals the sum over the rows of the sessions, whatever these are, also on the day of summer time', async () => {
    const two = [await rooms.newRoom(), await rooms.newRoom()];
    const instant = fc.integer({ min: -DAY_MS, max: 3 * DAY_MS });
    const stay = fc.record({
      room: fc.constantFrom(...two),
      begin: instant,
      ms: fc.option(fc.integer({ min: 0, max: 2 * DAY_MS })),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(stay, { maxLength: 8 }), instant, async (drawn, nowMs) => {
        await rooms.sql('TRUNCATE participant_sessions CASCADE');
        const now = at(0, nowMs);
        // No session has ended in the future.
        const list = drawn.map(({ room, begin, ms }) => ({
          room,
          begin: at(0, begin),
          end: ms === null || begin + ms > nowMs ? null : at(0, begin + ms),
        }));
        await stays(list);
        const all = await read(-1, 3, now);
        expect(all).toEqual(days(-1, 3).map((day) => expected(list, day, now)));
      }),
      { numRuns: 40 },
    );
  });

  test('counts the share of relayed sessions, deliveries by creation, and no other tenant', async () => {
    const other = { ...rooms.tenant, environmentId: newId('environment') };
    await rooms.database.prisma.environment.create({
      data: { id: other.environmentId, projectId: other.projectId, name: 'other', createdAt: DAY },
    });
    const room = await rooms.newRoom();
    const [relayed, direct] = await stays([
      { room, begin: at(0), end: at(0, 60_000) },
      { room, begin: at(0), end: at(0, 60_000) },
      { room, begin: at(0), end: at(0, 60_000) },
    ]);
    const zero = { good: 0, fair: 0, poor: 0, lost: 0, relayed: 0 };
    await addQuality(rooms.database.sql, [
      { sessionId: relayed!, seconds: { ...zero, good: 50, relayed: 50 } },
      { sessionId: direct!, seconds: { ...zero, poor: 5 } },
    ]);
    await addQuality(rooms.database.sql, [{ sessionId: direct!, seconds: { ...zero, good: 5 } }]);
    await deliveries([at(0), at(1, -1), at(1)]);
    expect(await read(0, 1, at(2))).toEqual([
      usage(0, {
        rooms: 1,
        participantMs: 180_000,
        peakParticipants: 3,
        measuredSessions: 2,
        relayedSessions: 1,
        deliveries: 2,
      }),
      usage(1, { deliveries: 1 }),
    ]);
    expect(await read(0, 1, at(2), other)).toEqual([usage(0, {}), usage(1, {})]);
    const wanted = { roomId: room, participantId: null, beforeId: null, limit: 10 };
    const history = await listSessions(rooms.database.sql, rooms.tenant, wanted);
    expect(history.find(({ id }) => id === direct)?.quality).toEqual({ ...zero, good: 5, poor: 5 });
    expect(await listSessions(rooms.database.sql, other, wanted)).toEqual([]);
  });
});

describe('the roll-up', () => {
  const now = new Date();
  const yesterday = new Date(dayOf(new Date(now.getTime() - HOUR_MS)).getTime() - DAY_MS);
  const before = (count: number) => new Date(yesterday.getTime() - count * DAY_MS);
  const readDays = (first: Date, last: Date) => readUsage(rooms.database.sql, rooms.tenant, first, last, now);

  test('covers every complete day since the first session, changes no figure, and runs once', async () => {
    const room = await rooms.newRoom();
    await stays([
      { room, begin: new Date(before(5).getTime() + HOUR_MS), end: before(3) },
      { room, begin: before(1), end: null },
    ]);
    const live = await readDays(before(6), now);
    const counts = await Promise.all([rollUpUsage(rooms.database.sql), rollUpUsage(rooms.database.sql)]);
    // One that begins a little later may skip the days that the other one has finished.
    expect(Math.max(...counts)).toBe(6);
    expect(await rollUpUsage(rooms.database.sql)).toBe(0);
    expect(await readDays(before(6), now)).toEqual(live);
    expect(await rooms.database.prisma.usageRollup.count()).toBe(6);
  });

  test('outlives the rooms: a purge rolls up first, and keeps rooms of days that are not rolled up', async () => {
    const [ancient, old, young] = [await rooms.newRoom(), await rooms.newRoom(), await rooms.newRoom()];
    const hoursAgo = (hours: number) => new Date(now.getTime() - hours * HOUR_MS);
    const ends = { [ancient]: before(402), [old]: before(2), [young]: hoursAgo(2) };
    await stays([
      { room: ancient, begin: before(403), end: before(402) },
      { room: old, begin: before(3), end: before(2) },
      { room: young, begin: hoursAgo(3), end: hoursAgo(2) },
    ]);
    for (const [id, end] of Object.entries(ends)) {
      await rooms.sql(`UPDATE rooms SET status = 'ended', ended_at = '${end.toISOString()}' WHERE id = '${id}'`);
    }
    const live = await readDays(before(4), now);
    const purge = () => purgeExpiredRooms(rooms.database, { olderThanSeconds: 0, environmentId: null });
    const left = async () => (await rooms.database.prisma.room.findMany({ select: { id: true } })).map(({ id }) => id);
    // One roll-up covers 400 days, up to the day before `old` began.
    expect(await purge()).toMatchObject({ rooms: 1 });
    expect(await left()).toEqual(expect.arrayContaining([old, young]));
    expect(await purge()).toMatchObject({ rooms: 1 });
    // The minimum age of a purge keeps the youngest room.
    expect(await left()).toEqual([young]);
    expect(await readDays(before(4), yesterday)).toEqual(live.filter(({ day }) => day <= yesterday));
  });
});

/** Writes finished deliveries of one endpoint that were created at these times. */
async function deliveries(times: readonly Date[]): Promise<void> {
  const { prisma } = rooms.database;
  const { environmentId } = rooms.tenant;
  const [endpointId, eventId] = [newId('webhookEndpoint'), newId('event')];
  await prisma.webhookEndpoint.create({
    data: {
      id: endpointId,
      environmentId,
      url: 'https://example.com/',
      events: ['*'],
      enabled: true,
      signingKeyVersion: 1,
      createdAt: DAY,
      updatedAt: DAY,
    },
  });
  await prisma.event.create({
    data: { id: eventId, environmentId, type: 'webhook.test', body: '{}', createdAt: DAY },
  });
  await prisma.webhookDelivery.createMany({
    data: times.map((time) =>
      deliveryRow({ environmentId }, { endpointId, eventId, eventType: 'webhook.test' }, time, {
        id: firstIdAt('delivery', time),
      }),
    ),
  });
}
