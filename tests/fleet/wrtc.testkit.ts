import type wrtc from '@roamhq/wrtc';
import type { Call, Platform } from '@callplane/client-js';
import { eventually, stopAtEnd } from '@callplane/testing';

const AUDIO_EVERY_MS = 10;
const SAMPLE_RATE = 48_000;

/** Imported on demand: most tests never need it. */
async function library(): Promise<typeof wrtc> {
  return ((await import('@roamhq/wrtc')) as unknown as { default: typeof wrtc }).default;
}

/** The platform objects that give the SDK real media in Node. */
export async function wrtcPlatform(): Promise<Partial<Platform>> {
  const { RTCPeerConnection } = await library();
  return { RTCPeerConnection: RTCPeerConnection as unknown as Platform['RTCPeerConnection'] };
}

/** Starts an audio track with a sine tone, until `stop`. */
export async function startTone(): Promise<{ track: wrtc.MediaStreamTrack; stop(): void }> {
  const { RTCAudioSource } = (await library()).nonstandard;
  const source = new RTCAudioSource();
  const track = source.createTrack();
  const numberOfFrames = (SAMPLE_RATE * AUDIO_EVERY_MS) / 1000;
  const samples = Int16Array.from({ length: numberOfFrames }, (_, n) => 8000 * Math.sin((n * 2 * Math.PI) / 109));
  const block = { samples, sampleRate: SAMPLE_RATE, bitsPerSample: 16, channelCount: 1, numberOfFrames };
  const timer = setInterval(() => source.onData(block), AUDIO_EVERY_MS);
  const stop = () => {
    clearInterval(timer);
    track.stop();
  };
  stopAtEnd(() => {
    stop();
    return Promise.resolve();
  });
  return { track, stop };
}

/** Resolves once a call has received 20 packets more than before, over whichever connection. */
export async function receives(call: Call, timeoutMs = 60_000): Promise<void> {
  let known = await packetsOf(call);
  await eventually(
    async () => {
      const count = await packetsOf(call);
      // A new connection counts from zero.
      if (count < known) known = count;
      return count > known + 20;
    },
    { timeoutMs, intervalMs: 100 },
  );
}

async function packetsOf(call: Call): Promise<number> {
  const { subscriber } = await call.getStats();
  let packets = 0;
  subscriber?.forEach((one: { type: string; packetsReceived?: number }) => {
    if (one.type === 'inbound-rtp') packets += one.packetsReceived ?? 0;
  });
  return packets;
}
