import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { SessionState } from '@callplane/db';
import type { Departure, RoomMember } from './changes.js';
import { Room } from './room.js';
import { FakeRoom } from './rooms.testkit.js';

const TICK_MS = 50;
let fake: FakeRoom;
let room: Room;
let departed: [sessionId: string, departure: Departure][];

class Member implements RoomMember {
  readonly participantId: string;
  readonly frames: any[] = [];
  readonly own: SessionState[] = [];
  connectionNumber = 1;
  woken = 0;
  admitted = 0;
  readonly media: RoomMember['media'];

  constructor(
    public sessionId: string,
    { followsTracks = false }: { followsTracks?: boolean } = {},
  ) {
    this.participantId = sessionId.replace(/^s/, 'p');
    const onTracks = () => void (this.woken += 1);
    this.media = { followsTracks, onTracks, onPlacement: () => void this.frames.push('placement') };
    fake.set({ sessionId });
    sync();
    room.add(this);
  }

  onAdmitted(): void {
    this.admitted += 1;
  }

  sendPart(): boolean {
    return true;
  }
  sendText(text: string): void {
    this.frames.push(JSON.parse(text));
  }

  onOwn(state: SessionState): void {
    this.own.push(state);
  }

  /** The frames since the last call. */
  take(): any[] {
    return this.frames.splice(0);
  }
}

/** Reads the changes, like the loader. */
const sync = () => room.apply(fake.read(room.state?.version ?? null));
const write = (session: Parameters<FakeRoom['set']>[0]) => {
  fake.set(session);
  sync();
};

beforeEach(() => {
  jest.useFakeTimers();
  fake = new FakeRoom();
  departed = [];
  room = new Room('r', 'here', ({ sessionId }, departure) => departed.push([sessionId, departure]));
});

afterEach(() => {
  jest.useRealTimers();
});

describe('a small room', () => {
  test('names the role of a participant, unless it is the default one', () => {
    const ada = new Member('s1');
    ada.take();
    write({ sessionId: 's2', role: 'host' });
    write({ sessionId: 's3' });
    const participants = ada.take().flatMap(({ changes }) => changes.map((change: any) => change.participant));
    expect(participants.map(({ role }) => role)).toEqual(['host', undefined]);
  });

  test('sends a change at once, and several changes of one read in one frame', () => {
    const [ada, bob] = [new Member('s1'), new Member('s2')];
    [ada, bob].forEach((member) => member.take());
    fake.set({ sessionId: 's3', tracks: ['a'] });
    write({ sessionId: 's4' });
    expect(ada.take()).toMatchObject([
      {
        type: 'changes',
        changes: [
          { kind: 'participant', participant: { participantId: 'p3', tracks: [{ trackId: 'a' }] } },
          { kind: 'participant', participant: { participantId: 'p4' } },
        ],
      },
    ]);
    expect(bob.take()).toHaveLength(1);
    write({ sessionId: 's3', tracks: [] });
    fake.set({ sessionId: 's4', gone: 'left' });
    write({ sessionId: 's1', metadata: { seat: 1 } });
    expect(ada.take()).toEqual([
      { type: 'changes', changes: [{ kind: 'tracks', participantId: 'p3', sessionId: 's3', tracks: [] }] },
      {
        type: 'changes',
        changes: [
          { kind: 'left', participantId: 'p4', sessionId: 's4' },
          { kind: 'participant', participant: expect.objectContaining({ participantId: 'p1', metadata: { seat: 1 } }) },
        ],
      },
    ]);
    expect(bob.take()).toHaveLength(2);
  });

  test('wakes only members that want tracks, and only when a track is added, removed or relocated', () => {
    const [viewer, wanting] = [new Member('s1'), new Member('s2', { followsTracks: true })];
    write({ sessionId: 's3', tracks: ['a'] });
    write({ sessionId: 's3', metadata: { seat: 1 } });
    write({ sessionId: 's3', feedId: 'f2' });
    expect([viewer.woken, wanting.woken, room.tracks.version]).toEqual([0, 2, 2]);
    const { entries } = room.tracks;
    const track = {
      participantId: 'p3',
      trackId: 'a',
      kind: 'audio',
      source: 'microphone',
      feedId: 'f2',
      mid: '0',
    };
    expect(entries).toEqual(new Map([['p3/a', track]]));
    expect(room.tracks.entries).toBe(entries);
    write({ sessionId: 's0', tracks: ['v'] });
    expect([...room.tracks.entries.keys()]).toEqual(['p0/v', 'p3/a']);
    expect(room.tracks.of('p3')).toHaveLength(1);
    write({ sessionId: 's3', gone: 'left' });
    expect([...room.tracks.entries.keys()]).toEqual(['p0/v']);
  });

  test('tells its members when it has another media server', () => {
    const ada = new Member('s1');
    ada.take();
    fake.write(() => (fake.mediaNodeId = 'm2'));
    sync();
    expect(ada.take()).toEqual(['placement']);
  });

  test('removes members whose sessions have ended, moved, or ended with their room', () => {
    const [ada, bob, cem] = [new Member('s1'), new Member('s2'), new Member('s3')];
    write({ sessionId: 's1', gone: 'left' });
    write({ sessionId: 's2', connection: 2, instanceId: 'elsewhere' });
    // A resumption on this instance is in progress.
    write({ sessionId: 's3', connection: 2 });
    expect(departed).toEqual([
      ['s1', 'left'],
      ['s2', 'elsewhere'],
    ]);
    expect([ada, bob, cem].map((member) => room.departureOf(member))).toEqual(['missing', 'elsewhere', null]);
    expect(room.sessions.isElsewhere).toBe(true);
    // A complete read contains live sessions only, so it does not say why one is missing.
    new Member('s4');
    fake.set({ sessionId: 's4', gone: 'left' });
    room.apply(fake.read(null));
    expect(departed.at(-1)).toEqual(['s4', 'missing']);
    fake.write(() => (fake.status = 'ending'));
    sync();
    expect(departed.at(-1)).toEqual(['s3', 'room_ended']);
    expect(room.size).toBe(0);
  });
});

describe('a paged room', () => {
  const paged = () => {
    fake.rosterPaged = true;
    fake.write(() => undefined);
    sync();
  };

  test('replaces the roster of its members', () => {
    const [ada] = [new Member('s1'), new Member('s2')];
    fake.set({ sessionId: 's3', tracks: ['a'] });
    sync();
    ada.take();
    paged();
    expect(ada.take()).toMatchObject([
      { type: 'rosterPaged', participants: [{ participantId: 'p3' }], next: null, participantCount: 3, viewerCount: 2 },
    ]);
  });

  test('sends nothing about viewers, but counts them', () => {
    const ada = new Member('s1');
    paged();
    ada.take();
    write({ sessionId: 's2' });
    write({ sessionId: 's2', disconnectedAt: 5 });
    jest.advanceTimersByTime(TICK_MS);
    expect(ada.take()).toEqual([]);
    expect(room.roster.counts).toEqual({ participantCount: 2, viewerCount: 2 });
    room.eachSecond();
    expect(ada.take()).toEqual([{ type: 'viewerCount', participantCount: 2, viewerCount: 2 }]);
  });

  test('sends one frame a tick about publishers to all, and about other participants to members that show them', () => {
    const [ada, bob, cem] = [new Member('s1'), new Member('s2'), new Member('s3')];
    write({ sessionId: 's4', metadata: { seat: 1 } });
    paged();
    const take = () => {
      jest.advanceTimersByTime(TICK_MS);
      return [ada, bob, cem].map((member) => member.take());
    };
    take();
    // A viewer is not in the roster: its state follows once it is.
    expect(room.shown.show(bob, ['p4', 'p5'], true).map((text) => JSON.parse(text).participantId)).toEqual(['p4']);
    expect(room.shown.show(cem, [], false)).toEqual([]);
    write({ sessionId: 's4', metadata: { seat: 2 } });
    write({ sessionId: 's4', metadata: { seat: 3 } });
    write({ sessionId: 's5' });
    const participant = (id: string) => ({
      kind: 'participant',
      participant: expect.objectContaining({ participantId: id }),
    });
    expect(take()).toEqual([[], [{ type: 'changes', changes: [participant('p4')] }], []]);
    write({ sessionId: 's5', metadata: { seat: 5 } });
    write({ sessionId: 's6', tracks: ['a'] });
    expect(take()).toEqual([
      [{ type: 'changes', changes: [participant('p6')] }],
      [{ type: 'changes', changes: [participant('p5'), participant('p6')] }],
      [],
    ]);
    write({ sessionId: 's6', tracks: [] });
    write({ sessionId: 's4', gone: 'left' });
    const hidden = { kind: 'hidden', participantId: 'p6', sessionId: 's6' };
    const left = { kind: 'left', participantId: 'p4', sessionId: 's4' };
    expect(take()).toEqual([
      [{ type: 'changes', changes: [hidden] }],
      [{ type: 'changes', changes: [left, hidden] }],
      [],
    ]);
  });

  test('shows the first 100 publishers by session id, and hides one that is no longer among them', () => {
    const ada = new Member('s000');
    for (let n = 101; n <= 200; n += 1) fake.set({ sessionId: `s${n}`, tracks: ['a'] });
    sync();
    paged();
    const { participants, next } = room.firstPage();
    expect(participants).toHaveLength(100);
    expect(JSON.parse(participants[0]!).participantId).toBe('p101');
    expect(next).toBe('s101');
    ada.take();
    write({ sessionId: 's100', tracks: ['a'] });
    jest.advanceTimersByTime(TICK_MS);
    const [frame] = ada.take();
    expect(frame.changes).toEqual([
      { kind: 'hidden', participantId: 'p200', sessionId: 's200' },
      { kind: 'participant', participant: expect.objectContaining({ participantId: 'p100' }) },
    ]);
    write({ sessionId: 's150', gone: 'left' });
    jest.advanceTimersByTime(TICK_MS);
    expect(ada.take()[0].changes).toEqual([
      { kind: 'left', participantId: 'p150', sessionId: 's150' },
      { kind: 'participant', participant: expect.objectContaining({ participantId: 'p200' }) },
    ]);
  });

  test('has a roster in pages by session id, without viewers', () => {
    for (const n of [1, 2, 3, 4, 5]) fake.set({ sessionId: `s${n}`, metadata: n === 3 ? {} : { n } });
    fake.rosterPaged = true;
    sync();
    const idsOf = (texts: string[]) => texts.map((text) => JSON.parse(text).participantId);
    const first = room.roster.page(null, 2);
    expect([idsOf(first.participants), first.next]).toEqual([['p1', 'p2'], 's2']);
    expect(first).toMatchObject({ participantCount: 5, viewerCount: 1 });
    const last = room.roster.page(first.next, 2);
    expect([idsOf(last.participants), last.next]).toEqual([['p4', 'p5'], null]);
    // The cursor may have left.
    expect(idsOf(room.roster.page('s3', 10).participants)).toEqual(['p4', 'p5']);
    write({ sessionId: 's4', metadata: { text: 'x'.repeat(300 * 1024) } });
    expect(idsOf(room.roster.page('s3', 10).participants)).toEqual(['p4']);
  });
});
