import { beforeAll, describe, expect, test } from '@jest/globals';
import { sessionRow } from '@callplane/testing';
import { dayOf, DAY_MS } from '@callplane/core';
import { addQuality } from '@callplane/db';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
let room: string;
let participant: string;
beforeAll(async () => {
  api = await startTestApi();
  room = await api.room();
  participant = await invite();
});

const invite = async () => (await api.invite(room)).participantId;

/** Writes a session of a minute. */
async function stay(participantId: string, startedAt: Date): Promise<string> {
  const { id } = await api.database.prisma.participantSession.create({
    data: sessionRow(
      api.tenant,
      { roomId: room, participantId },
      {
        startedAt,
        endedAt: new Date(startedAt.getTime() + 60_000),
        endReason: 'connection_lost',
        permissions: ['room:join', 'audio:publish'],
        pastTracks: [{ trackId: 'mic', kind: 'audio', source: 'microphone', publishedAt: 1000, unpublishedAt: 2000 }],
      },
    ),
  });
  return id;
}
const today = dayOf(new Date());
const yesterday = new Date(today.getTime() - DAY_MS);
const idsOf = (body: { data: { id: string }[] }) => body.data.map(({ id }) => id);

describe('the sessions of a room and of a participant', () => {
  test('are listed newest first, in pages, with tracks and quality', async () => {
    const other = await invite();
    const ids = [await stay(participant, yesterday), await stay(other, yesterday), await stay(participant, yesterday)];
    await addQuality(api.database.sql, [
      { sessionId: ids[2]!, seconds: { good: 50, fair: 8, poor: 0, lost: 2, relayed: 60 } },
    ]);
    expect(idsOf({ data: await api.pages(`/v1/rooms/${room}/sessions?limit=2`) })).toEqual([...ids].reverse());
    const own = (await api.call('GET', `/v1/rooms/${room}/participants/${participant}/sessions`)).body;
    expect(idsOf(own)).toEqual([ids[2], ids[0]]);
    expect(own.data[0]).toEqual({
      id: ids[2],
      roomId: room,
      participantId: participant,
      joinedAt: yesterday.toISOString(),
      leftAt: new Date(yesterday.getTime() + 60_000).toISOString(),
      reason: 'connection_lost',
      permissions: ['room:join', 'audio:publish'],
      tracks: [
        {
          trackId: 'mic',
          kind: 'audio',
          source: 'microphone',
          publishedAt: '1970-01-01T00:00:01.000Z',
          unpublishedAt: '1970-01-01T00:00:02.000Z',
        },
      ],
      quality: { worst: 'lost', relay: true, seconds: { good: 50, fair: 8, poor: 0, lost: 2, relayed: 60 } },
    });
    expect(own.data[1].quality).toBeNull();
  });

  test('are empty before the first join, and 404 without the room or participant', async () => {
    const path = `/v1/rooms/${room}/participants/${await invite()}/sessions`;
    expect((await api.call('GET', path)).body).toEqual({ data: [], nextCursor: null });
    expect((await api.call('GET', `/v1/rooms/${await api.room()}/sessions`)).body.data).toEqual([]);
    for (const [url, code] of [
      ['/v1/rooms/room_0/sessions', 'ROOM_NOT_FOUND'],
      ['/v1/rooms/room_0/participants/part_0/sessions', 'ROOM_NOT_FOUND'],
      [`/v1/rooms/${room}/participants/part_0/sessions`, 'PARTICIPANT_NOT_FOUND'],
    ] as const) {
      expect((await api.call('GET', url)).body.error.code).toBe(code);
    }
  });
});

describe('GET /v1/usage', () => {
  const iso = (day: Date) => day.toISOString().slice(0, 10);

  test('returns one entry for each day, equal to the sum of the sessions', async () => {
    const { body, status } = await api.call('GET', `/v1/usage?from=${iso(yesterday)}&to=${iso(today)}&interval=day`);
    const sessions = (await api.call('GET', `/v1/rooms/${room}/sessions`)).body.data as {
      joinedAt: string;
      leftAt: string;
    }[];
    const seconds = sessions.reduce((sum, one) => sum + (Date.parse(one.leftAt) - Date.parse(one.joinedAt)) / 1000, 0);
    expect([status, body.from, body.to, body.interval]).toEqual([200, iso(yesterday), iso(today), 'day']);
    expect(body.days).toEqual([
      {
        day: iso(yesterday),
        rooms: 1,
        participantSeconds: seconds,
        participantMinutes: seconds / 60,
        peakParticipants: sessions.length,
        relayShare: 1,
        deliveries: 0,
        recordedMinutes: 0,
        convertedMinutes: 0,
        recordedBytes: 0,
      },
      expect.objectContaining({ day: iso(today), rooms: 0, participantSeconds: 0, relayShare: null }),
    ]);
  });

  test.each([
    ['', ['query.from', 'query.to']],
    ['from=2026-03-02&to=2026-03-01', ['query.to']],
    ['from=2026-01-01&to=2026-04-03', ['query.to']],
  ])('rejects ?%s', async (query, paths) => {
    const { status, body } = await api.call('GET', `/v1/usage?${query}`);
    expect([status, body.error.details.map(({ path }: { path: string }) => path)]).toEqual([400, paths]);
  });

  test.each(['1970-01-01', '9999-12-31'])('has no usage on %s', async (day) => {
    const { status, body } = await api.call('GET', `/v1/usage?from=${day}&to=${day}`);
    expect([status, body.days.map((one: { participantSeconds: number }) => one.participantSeconds)]).toEqual([
      200,
      [0],
    ]);
  });

  test('takes 92 days, and needs the scope rooms:read', async () => {
    expect((await api.call('GET', '/v1/usage?from=2026-01-01&to=2026-04-02')).body.days).toHaveLength(92);
    const key = await api.newKey(api.tenant.environmentId, { scopes: ['participants:read'] });
    expect((await api.call('GET', '/v1/usage?from=2026-01-01&to=2026-01-01', { key })).status).toBe(403);
  });
});
