import { describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { MediaWrites, type MediaRecord, type MediaWritesDeps } from './media-writes.js';

type WriteMedia = MediaWritesDeps['writeMedia'];

const session = (n: number) => ({
  held: { sessionId: `sess_${n}`, connection: 1 },
  roomId: 'room',
  isGone: false,
  media: { record: { n } as unknown as MediaRecord },
});
const writesWith = (writeMedia: WriteMedia, warnings: string[]) =>
  new MediaWrites({
    writeMedia,
    logger: { warn: (message: string) => warnings.push(message) },
  } as unknown as MediaWritesDeps);

function setUp() {
  const written: { sessionId: string; media: unknown }[][] = [];
  let failures = 0;
  const warnings: string[] = [];
  /** Let slow writes continue. */
  const waiting: (() => void)[] = [];
  const server = { isSlow: false };
  const writes = writesWith(async (records) => {
    if (failures > 0) {
      failures -= 1;
      throw new Error('no database');
    }
    written.push(records.map(({ held, media }) => ({ sessionId: held.sessionId, media })));
    if (server.isSlow) await new Promise<void>((go) => waiting.push(go));
  }, warnings);
  return { writes, written, warnings, waiting, server, fail: (times: number) => (failures = times) };
}

describe('the writes of media records', () => {
  test('write the changes of many sessions in one statement, each with its latest state', async () => {
    const { writes, written } = setUp();
    const [one, two] = [session(1), session(2)];
    writes.changed(one);
    writes.changed(two);
    one.media.record = { n: 'later' } as unknown as MediaRecord;
    writes.changed(one);
    expect(written).toEqual([]);
    await eventually(() => written.length > 0);
    expect(written).toEqual([
      [
        { sessionId: 'sess_1', media: { n: 'later' } },
        { sessionId: 'sess_2', media: { n: 2 } },
      ],
    ]);
    writes.close();
  });

  test('repeat failed writes, except for sessions that are gone', async () => {
    const { writes, written, warnings, fail } = setUp();
    const [stays, gone] = [session(1), session(2)];
    fail(1);
    writes.changed(stays);
    writes.changed(gone);
    await writes.flush();
    expect(warnings).toEqual(['media records not written']);
    gone.isGone = true;
    await writes.flush();
    expect(written).toEqual([[{ sessionId: 'sess_1', media: { n: 1 } }]]);
    writes.close();
  });
});
