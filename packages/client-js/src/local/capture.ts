import { CallplaneError } from '../errors.js';
import type { Platform } from '../platform.js';
import type { TrackSource } from '../protocol.generated.js';

export interface Captured {
  source: TrackSource;
  mediaStreamTrack: MediaStreamTrack;
}

/** Opens microphone and camera; asks the person, if the browser thinks that it must. */
export async function captureDevices(
  { mediaDevices }: Platform,
  constraints: MediaStreamConstraints,
): Promise<Captured[]> {
  const stream = await opened(() => mediaDevices?.getUserMedia(constraints));
  return stream.getTracks().map((mediaStreamTrack) => ({
    source: mediaStreamTrack.kind === 'audio' ? 'microphone' : 'camera',
    mediaStreamTrack,
  }));
}

/** Lets the person choose a screen, window or tab. */
export async function captureScreen(
  { mediaDevices }: Platform,
  options: DisplayMediaStreamOptions,
): Promise<Captured[]> {
  const stream = await opened(() => mediaDevices?.getDisplayMedia(options));
  return stream.getTracks().map((mediaStreamTrack) => ({
    source: mediaStreamTrack.kind === 'audio' ? 'screen_audio' : 'screen',
    mediaStreamTrack,
  }));
}

async function opened(open: () => Promise<MediaStream> | undefined): Promise<MediaStream> {
  try {
    const stream = await open();
    if (stream !== undefined) return stream;
  } catch (error) {
    const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    throw new CallplaneError('device_unavailable', `The browser gave no media (${why}).`, { cause: error });
  }
  throw new CallplaneError('device_unavailable', 'There are no media devices here: is this page served over HTTPS?');
}
