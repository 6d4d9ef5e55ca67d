import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { BROWSER_PROGRAM } from '@callplane/testing';
import { onStage, type Stage } from '../fleet/stage.js';
import { median, printHead, printRow } from './figures.js';
import { openPages, type Pages } from './media-quality-pages.js';
import { openBench, type CallBench } from './signaling.js';

/** Participants with camera and microphone whom one page receives. */
const PICTURES = (process.env.BENCH_PICTURES ?? '1,9,25').split(',').map(Number);
const CAMERA = { width: 320, height: 180, frameRate: 15 };
const SENDING = { publish: { audio: true, video: CAMERA }, adaptive: false, autoSubscribe: false };
const SETTLE_MS = 6_000;
const MEASURED_MS = Number(process.env.BENCH_SECONDS ?? 20) * 1_000;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);

interface Figures {
  framesPerSecond: number;
  /** Processor time in percent of a core. */
  sender: number;
  receiver: number;
}

/**
 * Frames and processor time of calls with and without encryption. Both follow each other in each round, so that their
 * ratio says something on a machine with other work, too.
 */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    const [sender, receiver] = [await openSmall(stage), await openSmall(stage)];
    printHead('pictures', 'encryption', 'frames/s', 'sender', 'receiver');
    for (const count of PICTURES) {
      const rounds: { plain: Figures; encrypted: Figures }[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const plain = await measure(bench, { sender, receiver }, count, false);
        rounds.push({ plain, encrypted: await measure(bench, { sender, receiver }, count, true) });
      }
      const middle = (of: (round: (typeof rounds)[0]) => number) => median(rounds.map(of));
      for (const way of ['plain', 'encrypted'] as const) {
        const percent = (side: 'sender' | 'receiver') => `${middle((round) => round[way][side]).toFixed(1)} %`;
        const frames = middle((round) => round[way].framesPerSecond).toFixed(1);
        printRow(count, way, frames, percent('sender'), percent('receiver'));
      }
      const ratio = (of: keyof Figures) => middle(({ plain, encrypted }) => encrypted[of] / plain[of]).toFixed(2);
      printRow(count, 'ratio', ratio('framesPerSecond'), ratio('sender'), ratio('receiver'));
    }
  });

async function openSmall(stage: Stage): Promise<Pages> {
  const pages = await openPages(undefined, BROWSER_PROGRAM);
  stage.onClose(() => pages.close());
  return pages;
}

async function measure(
  { client, url, token }: CallBench,
  { sender, receiver }: { sender: Pages; receiver: Pages },
  count: number,
  isEncrypted: boolean,
): Promise<Figures> {
  const key = randomBytes(32).toString('base64url');
  const options = isEncrypted ? { encryption: { key } } : {};
  const room = await client.newRoom({ encryption: isEncrypted ? 'required' : 'none' });
  try {
    for (let at = 0; at < count; at++) {
      const publisher = await sender.open();
      await publisher.join({ url, token: await token(room, `publisher ${at}`), ...SENDING, ...options });
    }
    const viewer = await receiver.open();
    await viewer.join({ url, token: await token(room, 'viewer'), adaptive: false, ...options });
    await delay(SETTLE_MS);
    const times = () => ({ sender: sender.cpuMs(), receiver: receiver.cpuMs() });
    const [before, first] = [times(), await viewer.meter()];
    await delay(MEASURED_MS);
    const [after, last] = [times(), await viewer.meter()];
    const ms = last.atMs - first.atMs;
    const percent = (side: 'sender' | 'receiver') => (100 * (after[side] - before[side])) / ms;
    const framesPerSecond = (1_000 * (last.frames - first.frames)) / ms;
    return { framesPerSecond, sender: percent('sender'), receiver: percent('receiver') };
  } finally {
    await Promise.all([sender.closeAll(), receiver.closeAll()]);
  }
}
