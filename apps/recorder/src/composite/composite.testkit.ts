import { execFileSync } from 'node:child_process';
import { newId, recordingFileKey } from '@callplane/core';
import { participantRow, pictureCapture, sessionRow, soundCapture } from '@callplane/testing';
import {
  agentPassed,
  beganAtMs,
  deps,
  files,
  recordingId,
  roomId,
  ship,
  store,
  tenant,
} from '../operations/recorder.testkit.js';

const SECONDS = 8;
/** Flashes and beeps are at the same irregular times. */
const WHEN = 'lt(mod(t+0.3*sin(2*t),0.5),0.15)';

export const flashes = () =>
  pictureCapture(`color=s=320x180:r=25:d=${SECONDS},drawbox=c=white:t=fill:enable='${WHEN}'`);

export const beeps = () => soundCapture(`aevalsrc='0.5*sin(6000*t)*${WHEN}':d=${SECONDS}`);

/** A call of ten seconds: somebody with a camera, which is muted for two seconds, and somebody without one. */
export async function call(layout: string | null, sound: Buffer, camera: Buffer | null): Promise<void> {
  const { prisma } = deps.database;
  const at = (ms: number) => new Date(beganAtMs + ms);
  await prisma.recording.update({
    where: { id: recordingId },
    data: { mode: 'composite', layout, audioOnly: layout === null, endedAt: at(10_000) },
  });
  const people = [newId('participant'), newId('participant')] as const;
  for (const [index, participantId] of people.entries()) {
    const person = participantRow(tenant, roomId, { id: participantId, name: `Person ${index}` });
    await prisma.participant.create({ data: person });
    const stay = { permissions: ['audio:publish'], startedAt: at(0) };
    await prisma.participantSession.create({ data: sessionRow(tenant, { roomId, participantId }, stay) });
  }
  const spans = [
    { ...{ trackId: 'cam', kind: 'video', source: 'camera', mid: '0', muted: false }, from: 500, to: 4000 },
    { ...{ trackId: 'cam', kind: 'video', source: 'camera', mid: '0', muted: true }, from: 4000, to: 6000 },
    { ...{ trackId: 'cam', kind: 'video', source: 'camera', mid: '0', muted: false }, from: 6000, to: 10_000 },
    { ...{ trackId: 'mic', kind: 'audio', source: 'microphone', mid: '0', muted: false }, from: 500, to: 10_000 },
  ];
  for (const { from, to, ...span } of spans) {
    const where = { roomId, participantId: people[0], sessionId: 's', feedId: 'feed' };
    await prisma.recordingSpan.create({ data: { ...where, ...span, startedAt: at(from), endedAt: at(to) } });
  }
  if (camera !== null) await ship('v', camera, { kind: 'video', feedId: 'feed' });
  await ship('a', sound, { feedId: 'feed' });
  await agentPassed();
}

/** Streams and duration of the only file, as ffprobe lists them. */
export async function probed(): Promise<string> {
  const [file] = await files();
  const args = [
    '-v',
    'error',
    '-show_entries',
    'stream=codec_name,width,height,nb_frames:format=duration',
    '-of',
    'csv',
  ];
  return execFileSync('ffprobe', [...args, store.pathOf(recordingFileKey(recordingId, file!))], { encoding: 'utf8' });
}
