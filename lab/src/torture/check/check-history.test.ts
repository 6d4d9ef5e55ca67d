import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { HISTORY_FILES } from '../history.js';
import { checkHistory, checkHistoryLines } from './check-history.js';
import { describeFinding, summaryOf } from './finding.js';
import { arrival, errorOf, event, fault, frame, goodParts, historyOf, type Parts } from './history.testkit.js';

const brokenIn = (parts: Parts) =>
  checkHistoryLines(historyOf(parts))
    .filter(({ verdict }) => verdict === 'broken')
    .map(({ guarantee }) => guarantee);

const fileUntil = (atMs: number) => [{ startMs: 1000, durationMs: atMs - 4000 }];

/** A change of the good history that breaks a guarantee, and which others it breaks as well. */
const BREAKS: [guarantee: string, sentence: string, change: (parts: Parts) => void, also?: string[]][] = [
  [
    'A1',
    'a created room is not found',
    (parts) => Object.assign(parts.readRoom, { status: 404, answer: errorOf('ROOM_NOT_FOUND') }),
  ],
  [
    'A2',
    'an operation is pending after the service has settled',
    (parts) => (parts.readRemoval.answer = { id: 'op_remove', status: 'pending', attempts: 1, lastError: null }),
  ],
  [
    'A2',
    'an operation failed before its last attempt',
    (parts) => (parts.readRemoval.answer = { id: 'op_remove', status: 'failed', attempts: 3, lastError: {} }),
  ],
  [
    'A3',
    'the first attempt comes too late',
    (parts) => {
      parts.received[0]!.startMs = 40_000;
      parts.received[1]!.answer = 200;
    },
  ],
  ['A4', 'one attempt has two outcomes', (parts) => (parts.attempts[1]!['attempt'] = 1)],
  ['A5', 'a repeated request creates another room', (parts) => (parts.roomAgain.answer = { id: 'room_two' })],
  [
    'A5',
    'the repetition of a request without an answer creates another room',
    (parts) => {
      const [room, other] = ['room_one', 'room_two'].map((id) => ({ id, name: 'Ada', maxParticipants: 1 }));
      parts.room.body = parts.roomAgain.body = { name: 'Ada' };
      parts.roomAgain.status = null;
      parts.readRoom.answer = { data: [room, other] };
    },
  ],
  ['A6', 'a tenant reads the room of another one', (parts) => (parts.foreign.status = 200)],
  ['A6', 'a receiver gets an event of another tenant', (parts) => (parts.received[6]!.tenant = 'b')],
  [
    'R1',
    'a room has more participants than places',
    (parts) => {
      parts.events[2] = event(3, 'participant.joined', 'sess_2', 'part_ben');
      parts.events[3] = event(4, 'participant.left', 'sess_1');
    },
  ],
  [
    'R2',
    'a participant is welcomed after the end of the room was accepted',
    (parts) => {
      parts.frames[4] = { ...parts.frames[1]!, connection: 'call1.2', atMs: 70_100 };
      parts.remove.path = '/v1/rooms/room_one/participants/part_ben';
    },
  ],
  [
    'R2',
    'an ended room has a live session',
    (parts) => (parts.sessions[1] = { ...parts.sessions[1]!, leftAt: null! }),
    ['R3'],
  ],
  [
    'R3',
    'a participant is welcomed after its removal',
    (parts) => {
      parts.frames[4] = { ...parts.frames[1]!, connection: 'call1.2', atMs: 70_100 };
      parts.end.startMs = parts.end.endMs = 80_000;
    },
  ],
  [
    'R2',
    'media is relayed after the end of the room has completed',
    (parts) => {
      // Of a participant who was not removed.
      for (const line of parts.media) line.participantId = 'part_ben';
      parts.frames[2]!.participantId = 'part_ben';
      parts.endAgain = { ...parts.end, status: 204, answer: null, startMs: 65_000, endMs: 65_010 };
      parts.media[3]!.packetsReceived = 400;
    },
  ],
  [
    'R3',
    'a removed participant still receives media',
    (parts) => {
      parts.removed = { ...parts.remove, status: 204, answer: null, startMs: 60_000, endMs: 60_010 };
      parts.media[3]!.packetsReceived = 400;
    },
  ],
  [
    'R3',
    'the media of a removed participant still flows',
    (parts) => {
      parts.removed = { ...parts.remove, status: 204, answer: null, startMs: 60_000, endMs: 60_010 };
      for (const line of parts.media) line.participantId = 'part_ben';
      parts.media[3]!.packetsReceived = 400;
    },
  ],
  ['R4', 'a session never leaves', (parts) => (parts.events[4] = event(5, 'participant.updated', 'sess_2'))],
  ['R4', 'a session leaves twice', (parts) => (parts.events[3] = event(4, 'participant.left', 'sess_1'))],
  [
    'R5',
    'a participant has two live sessions',
    (parts) => {
      parts.room.answer = parts.roomAgain.answer = parts.readRoom.answer = { id: 'room_one', maxParticipants: 5 };
      parts.events[2] = event(3, 'participant.joined', 'sess_2');
      parts.events[3] = event(4, 'participant.left', 'sess_1');
    },
  ],
  [
    'R3',
    'a session begins after one that ended by a removal',
    (parts) => (parts.events[2] = event(3, 'participant.left', 'sess_1', 'part_ada', 'removed')),
  ],
  [
    'R5',
    'a participant cannot join over its earlier session',
    (parts) =>
      parts.frames.push(
        frame('call2.1', 3000, 'sent', 'join'),
        { ...frame('call2.1', 3100, 'closed', ''), reason: 'unavailable' },
        frame('call2', 33_000, 'ended', ''),
      ),
  ],
  ['R7', 'somebody is moved who joins nowhere', (parts) => parts.moved.pop()],
  ['R7', 'somebody is moved twice', (parts) => parts.moved.push(arrival('part_dee', 2))],
  ['R7', 'somebody joins later than they left', (parts) => (parts.moved[2]!['createdAt'] = '2026-01-01T00:00:09.000Z')],
  ['R7', 'a move that failed took somebody along', (parts) => (parts.move.answer = { status: 'failed' })],
  ['R8', 'a media server keeps a room', (parts) => parts.forwards.left.push('the ended room_one on janus 2')],
  ['W1', 'an event has no delivery', (parts) => parts.deliveries.splice(3, 1)],
  ['W2', 'a sequence has a gap', (parts) => (parts.events[5]!['sequence'] = 7)],
  ['W3', 'a delivery stays open', (parts) => (parts.deliveries[0]!['status'] = 'pending')],
  ['W3', 'a delivery failed without a reason', (parts) => (parts.deliveries[0]!['status'] = 'failed')],
  ['W3', 'a delivery succeeded that no receiver accepted', (parts) => (parts.received[6]!.answer = 500)],
  ['W4', 'a retry has other bytes', (parts) => (parts.received[2]!.bodySha256 = 'other')],
  ['W4', 'a delivery has a wrong signature', (parts) => (parts.received[2]!.verified = 'wrong signature')],
  ['W5', 'a retry comes before its delay', (parts) => (parts.received[2]!.startMs = 6000)],
  [
    'W6',
    'an event is sent before the one before it has succeeded',
    (parts) => Object.assign(parts.received[3]!, { startMs: 7500, answeredMs: 7505 }),
  ],
  ['W9', 'an event that was sent is not in the list', (parts) => parts.events.pop()],
  ['P1', 'an answer is 500', (parts) => Object.assign(parts.foreign, { status: 500, answer: errorOf('INTERNAL') })],
  [
    'P1',
    'an answer 503 has no Retry-After',
    (parts) => Object.assign(parts.foreign, { status: 503, answer: errorOf('UNAVAILABLE') }),
  ],
  [
    'P1',
    'the load balancer reaches no instance although there is no fault',
    (parts) => Object.assign(parts.foreign, { status: 502, answer: errorOf('UNAVAILABLE'), retryAfter: '2' }),
  ],
  ['R6', 'a key is accepted after its revocation', (parts) => (parts.revoked.status = 200)],
  ['P1', 'an error is not in the one shape', (parts) => (parts.foreign.answer = 'Not Found')],
  ['P2', 'an app ends by itself', (parts) => parts.failures.push('it ended: code 1')],
  ['C1', 'an accepted recording is gone', (parts) => (parts.recording['id'] = 'rec_two')],
  ['C1', 'a recording never ends', (parts) => (parts.recording['status'] = 'processing')],
  ['C1', 'a recording failed without a reason', (parts) => (parts.recording['status'] = 'failed')],
  ['C2', 'media that was heard is in no file', (parts) => (parts.recording['files'] = fileUntil(40_000))],
  ['C3', 'a room is recorded that nobody asked for', (parts) => (parts.record.path = '/v1/rooms/room_two/recordings')],
  ['C3', 'a room is recorded after its end', (parts) => (parts.recording['files'] = fileUntil(64_000))],
];

describe('the checker of histories', () => {
  test('finds that a good history keeps every guarantee that it exercises', () => {
    const findings = checkHistoryLines(historyOf(goodParts()));
    expect(findings.filter(({ verdict }) => verdict === 'broken').map(describeFinding)).toEqual([]);
    expect(summaryOf(findings)).toBe('held: 26, broken: 0, not exercised: 2 (W7, W8)');
  });

  test.each(BREAKS)('finds %s broken if %s', (guarantee, _sentence, change, also = []) => {
    const parts = goodParts();
    change(parts);
    const findings = checkHistoryLines(historyOf(parts));
    const finding = findings.find((each) => each.guarantee === guarantee)!;
    expect(finding).toMatchObject({ verdict: 'broken', brokenCases: expect.any(Number) });
    expect(finding.proofs[0]!.evidence.length).toBeGreaterThan(0);
    expect(describeFinding(finding)).toContain(`${guarantee} broken: `);
    expect(summaryOf(findings)).toMatch(/^held: \d+, broken: \d+ \(\w/);
    expect(brokenIn(parts).filter((each) => each !== guarantee && !also.includes(each))).toEqual([]);
  });

  test('misses no sound that a busy sender did not send', () => {
    const parts = goodParts();
    const [line] = parts.media.slice(-1);
    parts.media = Array.from({ length: 13 }, (_, n) => {
      const atMs = 40_000 + 1000 * n;
      return {
        ...line!,
        atMs,
        wall: new Date(Date.parse('2026-01-01T00:00:00.000Z') + atMs).toISOString(),
        packetsReceived: 25 * n,
      };
    });
    const file = { startMs: 37_000, durationMs: 6000 };
    parts.recording['files'] = [file];
    expect(brokenIn(parts)).toEqual([]);
    file.durationMs = 1000;
    expect(brokenIn(parts)).toEqual(['C2']);
  });

  test('expects no answer of an instance while a fault is active', () => {
    const parts = goodParts();
    Object.assign(parts.foreign, { status: 502, answer: errorOf('UNAVAILABLE'), retryAfter: '2' });
    parts.nemesis.push(fault('begin', 500), fault('end', 600));
    expect(brokenIn(parts)).toEqual([]);
  });

  test('expects no media of a Janus that was killed until its room is recorded again', () => {
    const parts = goodParts();
    const again = { startMs: 41_000, durationMs: 16_000 };
    parts.recording['files'] = [...fileUntil(38_500), again];
    parts.nemesis.push(fault('begin', 40_000, { target: 'janus 1' }), fault('end', 41_000));
    expect(brokenIn(parts)).toEqual([]);
    // It must be recorded within half a minute.
    parts.recording['files'] = fileUntil(38_500);
    parts.nemesis[0]!.atMs = parts.nemesis[1]!.atMs = 10_000;
    expect(brokenIn(parts)).toEqual(['C2']);
  });

  test('expects the begin of a recording in time unless a fault is near', () => {
    const parts = goodParts();
    parts.recording['files'] = [{ startMs: 50_000, durationMs: 7000 }];
    expect(brokenIn(parts)).toEqual(['C2']);
    parts.nemesis.push(fault('begin', 1000), fault('end', 2000));
    expect(brokenIn(parts)).toEqual([]);
  });

  test('counts an attempt that was sent again over a new connection once', () => {
    const parts = goodParts();
    const first = parts.received[1]!;
    parts.received.push({ ...first, startMs: first.startMs - 2, answeredMs: null, answer: 'reset' });
    expect(brokenIn(parts)).toEqual([]);
  });

  test('expects no later join to be possible while a fault is active', () => {
    const parts = goodParts();
    parts.frames.push(
      frame('call2.1', 3000, 'sent', 'join'),
      { ...frame('call2.1', 3100, 'closed', ''), reason: 'unavailable' },
      frame('call2', 33_000, 'ended', ''),
    );
    parts.nemesis.push(fault('begin', 500), fault('end', 600));
    expect(brokenIn(parts)).toEqual([]);
  });

  test('expects no first attempt in time behind a backlog, unless a later event came long before', () => {
    const parts = goodParts();
    const first = parts.received.shift()!;
    // The service sends something every second: it has no slot for this event.
    const at = (startMs: number) => ({ startMs, answeredMs: startMs + 5 });
    const others = Array.from({ length: 60 }, (_, n) => ({ ...parts.received[2]!, ...at(1500 + n * 1000) }));
    parts.received = [...parts.received.slice(1), ...others, { ...first, ...at(40_000) }];
    const isLate = (): boolean => brokenIn(parts).includes('A3');
    expect(isLate()).toBe(false);
    const room = { ...parts.room, path: '/v1/rooms', startMs: 2000, endMs: 2010, answer: { id: 'room_two' } };
    const body = JSON.stringify({
      ...event(1, 'room.created'),
      id: 'evt_two',
      data: { room: { id: 'room_two' } },
    });
    parts.removed = room;
    parts.received.push({ ...first, body, ...at(20_000) });
    expect(isLate()).toBe(true);
  });

  test('expects no first attempt in time while attempts that hang hold the slots', () => {
    const parts = goodParts();
    const first = parts.received.shift()!;
    const rest = parts.received.splice(0).map((line) => ({ ...line, answer: 200, startMs: 1500, answeredMs: 1505 }));
    const hung = Array.from({ length: 42 }, (_, n) => {
      const startMs = 2000 + Math.floor(n / 6) * 5500;
      return { ...rest[2]!, url: 'http://127.0.0.1/hung', startMs, answeredMs: null, answer: 'hang' as const };
    });
    const isLate = (open: typeof hung): boolean => {
      parts.received = [...rest, ...open, { ...first, startMs: 40_000, answeredMs: 40_005 }];
      return brokenIn(parts).includes('A3');
    };
    expect(isLate(hung)).toBe(false);
    expect(isLate(hung.filter((_, n) => n % 3 === 0))).toBe(true);
  });

  test('does not take a sample without statistics for flowing media', () => {
    const parts = goodParts();
    parts.removed = { ...parts.remove, status: 204, answer: null, startMs: 60_000, endMs: 60_010 };
    parts.media[2]!.packetsReceived = 0;
    parts.media[3]!.packetsReceived = 300;
    expect(brokenIn(parts)).toEqual([]);
  });

  test('expects no first attempt in time at a receiver that fails', () => {
    const parts = goodParts();
    parts.received[0]!.startMs = 40_000;
    expect(brokenIn(parts)).toEqual([]);
  });

  test('blames no lateness on the service while a fault is active', () => {
    const parts = goodParts();
    parts.received[0]!.startMs = 40_000;
    parts.received[2]!.startMs = 6000;
    parts.nemesis.push(fault('begin', 500), fault('end', 600));
    expect(brokenIn(parts)).toEqual([]);
  });

  test('expects no delay of retries after a caller has asked for them', () => {
    const parts = goodParts();
    parts.received[2]!.startMs = 6000;
    parts.recovery.startMs = 5000;
    expect(brokenIn(parts)).toEqual([]);
  });

  test('misses nothing in a run that was interrupted before it had read everything', () => {
    const parts = goodParts();
    parts.readAll = false;
    parts.deliveries.splice(3, 1);
    parts.events.pop();
    expect(brokenIn(parts)).toEqual([]);
  });

  test('counts work that is open as broken only if the service had settled', () => {
    const parts = goodParts();
    parts.settled = false;
    parts.deliveries[0]!['status'] = 'pending';
    expect(brokenIn(parts)).toEqual([]);
  });
});

describe('a folder of histories', () => {
  const check = async (requests: string) => {
    const folder = await mkdtemp(join(tmpdir(), 'history-'));
    try {
      const { run, requests: lines } = historyOf(goodParts());
      await writeFile(join(folder, HISTORY_FILES.run), `${JSON.stringify(run)}\n`);
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
      await writeFile(join(folder, HISTORY_FILES.requests), `${text}${requests}`);
      return await checkHistory(folder);
    } finally {
      await rm(folder, { recursive: true });
    }
  };

  test('is read without the last line if that was cut off', async () => {
    const findings = await check('{"n":99,"wa');
    expect(findings.find(({ guarantee }) => guarantee === 'A1')).toMatchObject({ verdict: 'held' });
  });

  test('is refused if a line is missing or damaged', async () => {
    await expect(check('{"n":99}\n')).rejects.toThrow('a line is missing');
    await expect(check('{"n":\n')).rejects.toThrow('is not JSON');
  });
});
