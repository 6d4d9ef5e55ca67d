import { abortedError, assertNotAborted, CallplaneError, type ClientErrorCode } from '../errors.js';
import type { Platform } from '../platform.js';
import type { TrackSource } from '../protocol.generated.js';

export interface Captured {
  source: TrackSource;
  mediaStreamTrack: MediaStreamTrack;
}

/** Opens the microphone and the camera. The browser may ask the user for permission. */
export async function captureDevices(
  { mediaDevices }: Platform,
  constraints: MediaStreamConstraints,
  signal?: AbortSignal,
): Promise<Captured[]> {
  const { audio, video } = constraints;
  const what = audio && video ? 'microphone and camera' : audio ? 'microphone' : 'camera';
  const stream = await opened(what, signal, () => mediaDevices?.getUserMedia(constraints));
  return stream.getTracks().map((mediaStreamTrack) => ({
    source: mediaStreamTrack.kind === 'audio' ? 'microphone' : 'camera',
    mediaStreamTrack,
  }));
}

/** Lets the user choose a screen, window or tab. */
export async function captureScreen(
  { mediaDevices }: Platform,
  options: DisplayMediaStreamOptions,
  signal?: AbortSignal,
): Promise<Captured[]> {
  const stream = await opened('screen', signal, () => mediaDevices?.getDisplayMedia?.(options));
  return stream.getTracks().map((mediaStreamTrack) => ({
    source: mediaStreamTrack.kind === 'audio' ? 'screen_audio' : 'screen',
    mediaStreamTrack,
  }));
}

/** The browser's errors, and what they mean for the user. */
const REFUSALS: Record<string, { code: ClientErrorCode; text: (what: string) => string }> = {
  NotAllowedError: {
    code: 'device_permission_denied',
    text: (what) =>
      what === 'screen'
        ? 'The screen was not shared: it was cancelled, or the browser or system does not allow it.'
        : `Access was denied. Allow the ${what} in the browser’s settings for this site.`,
  },
  NotFoundError: { code: 'device_not_found', text: (what) => `No ${what} was found. Connect one and try again.` },
  OverconstrainedError: {
    code: 'device_not_found',
    text: (what) => `The chosen ${what} is not available, or cannot do what was requested.`,
  },
  NotReadableError: {
    code: 'device_in_use',
    text: (what) => `The ${what} cannot be opened. Another program may be using it.`,
  },
};

async function opened(
  what: string,
  signal: AbortSignal | undefined,
  open: () => Promise<MediaStream> | undefined,
): Promise<MediaStream> {
  assertNotAborted(signal);
  let stream: MediaStream | undefined;
  try {
    stream = await open();
  } catch (error) {
    const name = error instanceof Error ? error.name : '';
    const { code, text } = REFUSALS[name] ?? {
      code: 'device_unavailable' as const,
      text: () => `The ${what} could not be opened (${String(error)}).`,
    };
    throw new CallplaneError(code, text(what), { cause: error });
  }
  if (stream === undefined)
    throw new CallplaneError(
      'unsupported',
      'isSecureContext' in globalThis && !globalThis.isSecureContext
        ? 'Media devices are not available. Serve the page over HTTPS.'
        : `This browser cannot capture a ${what}.`,
    );
  if (signal?.aborted === true) {
    for (const track of stream.getTracks()) track.stop();
    throw abortedError(signal);
  }
  return stream;
}
