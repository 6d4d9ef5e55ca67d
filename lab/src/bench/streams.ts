import { connect, type Platform } from '@callplane/client-js';
import { WebSocket } from 'ws';
import { signalingUrlOf } from '../client.js';
import { cpuMs, onStage } from '../fleet/stage.js';
import { median, printHead, printRow } from './figures.js';

const RECEIVERS = [1, 10];
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** At most 16 MiB. */
const STREAM_BYTES = Number(process.env.BENCH_MIB ?? 16) * 1024 * 1024;
const MB = 1e6;

/** Streams over one gateway without its limits. The clients, of the SDK, share one process. */
export const run = () =>
  onStage(async (stage) => {
    const client = stage.clientOf(await stage.start('api'));
    const { pid, origin } = await stage.start('signaling', { RATE_LIMIT_STREAMS_KIB_PER_SECOND: '0' });
    const url = signalingUrlOf(origin);
    const platform = { WebSocket: WebSocket as unknown as Platform['WebSocket'] };
    printHead('receivers', 'MB/s to each', 'MB/s to all', 'processor of the gateway', 'for each MB to a receiver');
    for (const receivers of RECEIVERS) {
      const room = await client.newRoom();
      const join = async (name: string) =>
        connect({ url, token: await client.newToken(room, name, ['room:join', 'messages:send']), platform });
      const others = await Promise.all(Array.from({ length: receivers }, (_, at) => join(`receiver ${at}`)));
      // After the others, whom it knows from its welcome: a stream goes to everyone that its sender knows.
      const sender = await join('sender');
      let received = 0;
      for (const one of others)
        one.handleStream('bench', async ({ readable }) => {
          for await (const bytes of readable) received += bytes.length;
        });
      const rounds: { perSecond: number; share: number; cpuMs: number }[] = [];
      for (let round = 0; round <= ROUNDS; round++) {
        received = 0;
        const [beganAt, cpuBefore] = [performance.now(), cpuMs(pid)];
        await sender.sendStream('bench', new Uint8Array(STREAM_BYTES));
        const [ms, cpu] = [performance.now() - beganAt, cpuMs(pid) - cpuBefore];
        if (received !== receivers * STREAM_BYTES) throw new Error(`${received} bytes have arrived`);
        // The first round warms up.
        if (round > 0)
          rounds.push({ perSecond: (1_000 * received) / MB / ms, share: cpu / ms, cpuMs: (cpu * MB) / received });
      }
      const middle = (of: keyof (typeof rounds)[0], digits: number) =>
        median(rounds.map((one) => one[of])).toFixed(digits);
      const each = (median(rounds.map(({ perSecond }) => perSecond)) / receivers).toFixed(1);
      const share = `${(100 * median(rounds.map((one) => one.share))).toFixed(0)} %`;
      printRow(receivers, each, middle('perSecond', 1), share, `${middle('cpuMs', 2)} ms`);
      await Promise.all([sender, ...others].map((one) => one.leave()));
    }
  });
