import type wrtc from '@roamhq/wrtc';
import type { Call, Platform } from '@callplane/client-js';
import { stopAtEnd } from '@callplane/testing';

const AUDIO_EVERY_MS = 10;
const SAMPLE_RATE = 48_000;

/** Loaded where it is used: most tests never need it. */
async function library(): Promise<typeof wrtc> {
  return ((await import('@roamhq/wrtc')) as unknown as { default: typeof wrtc }).default;
}

/** What the SDK needs for real media in Node. */
export async function wrtcPlatform(): Promise<Partial<Platform>> {
  const { RTCPeerConnection } = await library();
  return { RTCPeerConnection: RTCPeerConnection as unknown as Platform['RTCPeerConnection'] };
}

/** A tone, until the test file ends. */
export async function newAudioTrack(): Promise<
  ReturnType<InstanceType<typeof wrtc.nonstandard.RTCAudioSource>['createTrack']>
> {
  const { RTCAudioSource } = (await library()).nonstandard;
  const source = new RTCAudioSource();
  const track = source.createTrack();
  const samples = Int16Array.from({ length: SAMPLE_RATE / 100 }, (_, n) => Math.round(Math.sin(n / 8) * 8000));
  const timer = setInterval(() => source.onData({ samples, sampleRate: SAMPLE_RATE }), AUDIO_EVERY_MS);
  stopAtEnd(() => {
    clearInterval(timer);
    track.stop();
    return Promise.resolve();
  });
  return track;
}

/** Counts the blocks of sound that a call receives from now on, whatever connection they come over. */
export async function listenTo(call: Call): Promise<{ blocks: () => number }> {
  const { RTCAudioSink } = (await library()).nonstandard;
  let blocks = 0;
  const sinks: { stop(): void }[] = [];
  stopAtEnd(() => {
    for (const sink of sinks.splice(0)) sink.stop();
    return Promise.resolve();
  });
  call.on('trackSubscribed', ({ kind, mediaStreamTrack }) => {
    if (kind !== 'audio' || mediaStreamTrack === undefined) return;
    const sink = new RTCAudioSink(mediaStreamTrack);
    sink.ondata = () => (blocks += 1);
    sinks.push(sink);
  });
  return { blocks: () => blocks };
}
