import { describe, expect, test } from '@jest/globals';
import { grid, HEIGHT, stage, WIDTH, type Rectangle } from './layouts.js';
import { planScenes, type Attendance, type Person, type Picture } from './scenes.js';

const person = (name: string, fromMs = 0, toMs = 60_000): Person => ({
  participantId: name,
  name,
  stays: [{ fromMs, toMs }],
});
const picture = (participantId: string, more: Partial<Picture> = {}): Picture => ({
  ...{ fileId: `${participantId}-camera`, participantId, fromMs: 0, toMs: 60_000, isScreen: false, mutes: [] },
  ...more,
});
const screen = (participantId: string, fromMs: number, toMs: number): Picture =>
  picture(participantId, { fileId: `${participantId}-screen`, isScreen: true, fromMs, toMs });

/** `from-to: names`, a star behind a name with a picture, and the largest tile first. */
const planned = (more: Partial<Attendance>): string[] =>
  planScenes({ durationMs: 60_000, layout: 'grid', people: [], pictures: [], speakers: [], ...more }).map(
    ({ fromMs, toMs, tiles }) =>
      `${fromMs}-${toMs}: ${tiles.map(({ name, fileId }) => `${name}${fileId === null ? '' : '*'}`).join(' ')}`,
  );

describe('the scenes of a grid', () => {
  test('follow who is there, with and without a camera', () => {
    const people = [person('Ada'), person('Bob', 10_000, 40_000)];
    const camera = picture('Bob', { fromMs: 12_000, toMs: 40_000, mutes: [{ fromMs: 20_000, toMs: 30_000 }] });
    expect(planned({ people, pictures: [camera] })).toEqual([
      '0-10000: Ada',
      '10000-12000: Ada Bob',
      '12000-20000: Ada Bob*',
      '20000-30000: Ada Bob',
      '30000-40000: Ada Bob*',
      '40000-60000: Ada',
    ]);
  });

  test('are whole frames, at least a second and at most a minute long, without a gap', () => {
    const people = [
      person('Ada', 3),
      person('Bob', 100, 150_000),
      person('Eve', 20_013, 20_413),
      person('Kim', 150_700),
    ];
    const scenes = planScenes({ durationMs: 151_033, layout: 'grid', people, pictures: [], speakers: [] });
    for (const [index, { fromMs, toMs }] of scenes.entries()) {
      expect(fromMs).toBe(scenes[index - 1]?.toMs ?? 0);
      expect([fromMs % 40, toMs % 40]).toEqual([0, 0]);
      expect(toMs - fromMs).toBeGreaterThanOrEqual(1000);
      expect(toMs - fromMs).toBeLessThanOrEqual(60_000);
    }
    expect(scenes.at(-1)?.toMs).toBe(151_040);
  });

  test('exist for an empty room, and for a recording of less than a frame', () => {
    expect(planned({})).toEqual(['0-60000: ']);
    expect(planned({ durationMs: 0 })).toEqual(['0-40: ']);
  });

  test('prefer cameras if there are too many people, and keep their order', () => {
    const people = Array.from({ length: 30 }, (_, n) => person(`p${n}`));
    const pictures = [picture('p29'), picture('p3')];
    const [scene] = planScenes({ durationMs: 1000, layout: 'grid', people, pictures, speakers: [] });
    expect(scene?.tiles.map(({ name }) => name)).toEqual([...people.slice(0, 24).map(({ name }) => name), 'p29']);
  });

  test('show a picture of which no row names the person', () => {
    const people = [{ participantId: 'file', name: '', stays: [] }];
    expect(planned({ people, pictures: [picture('file', { toMs: 30_000 })] })).toEqual(['0-30000: *', '30000-60000: ']);
  });

  test('have no tiles without pictures', () => {
    expect(planned({ layout: null, people: [person('Ada')] })).toEqual(['0-60000: ']);
  });
});

const speakers = [
  { participantId: 'Bob', fromMs: 20_000 },
  { participantId: 'Ada', fromMs: 40_000 },
];
const people = [person('Ada'), person('Bob', 0, 50_000), person('Eve')];

test('the scenes of a shared screen have the latest screen, and the speaker beside it', () => {
  const pictures = [picture('Ada'), picture('Bob'), screen('Bob', 10_000, 30_000), screen('Eve', 25_000, 55_000)];
  expect(planned({ people, pictures, speakers })).toEqual([
    '0-10000: Ada* Bob* Eve',
    '10000-20000: Bob* Ada*',
    '20000-25000: Bob* Bob*',
    '25000-40000: Eve* Bob*',
    '40000-55000: Eve* Ada*',
    '55000-60000: Ada* Bob* Eve',
  ]);
});

test('the scenes of a speaker have the speaker first, until the speaker leaves', () => {
  expect(planned({ layout: 'speaker', people, pictures: [picture('Ada')], speakers: speakers.slice(0, 1) })).toEqual([
    '0-20000: Ada* Bob Eve',
    '20000-50000: Bob Ada* Eve',
    '50000-60000: Ada* Eve',
  ]);
});

const overlap = (a: Rectangle, b: Rectangle): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

test.each([...Array(25).keys()].flatMap((n) => [[n + 1, grid] as const, ...(n < 5 ? [[n + 1, stage] as const] : [])]))(
  'tiles for %i have even places in the picture and do not overlap',
  (count, layout) => {
    const tiles = layout(count);
    expect(tiles).toHaveLength(count);
    for (const tile of tiles) {
      expect(Object.values(tile).every((value) => value >= 0 && value % 2 === 0)).toBe(true);
      expect([tile.x + tile.width <= WIDTH, tile.y + tile.height <= HEIGHT]).toEqual([true, true]);
      expect(tiles.filter((other) => overlap(tile, other))).toEqual([tile]);
    }
  },
);
