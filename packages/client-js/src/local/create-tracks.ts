import { abortedError, assertNotAborted, CallplaneError, invalidArgument, type ClientErrorCode } from '../errors.js';
import { platformOf, type Platform } from '../platform.js';
import type { TrackSource } from '../protocol.generated.js';
import { LocalTrack } from './local-track.js';
import { assertSending, type SendingOptions } from './sending.js';

export interface DeviceOptions extends SendingOptions {
  /** The microphone: true, or constraints. */
  audio?: boolean | MediaTrackConstraints;
  /** The camera: true, or constraints. */
  video?: boolean | MediaTrackConstraints;
  /** Close the camera while it is muted, and open it again afterwards; default true. The microphone stays open. */
  releaseOnMute?: boolean;
  /** Stops the operation: devices that are opened too late are closed at once. */
  signal?: AbortSignal;
}

/** A device that could not be opened, or a track that was unpublished before it was published (`aborted`). */
export interface TrackFailure extends Pick<LocalTrack, 'source'>, Pick<CallplaneError, 'code' | 'message'> {}

export interface OpenedDevices {
  tracks: LocalTrack[];
  /** Devices that could not be opened. */
  failed: TrackFailure[];
}

/**
 * Opens the microphone and the camera without a call, for a preview. Pass the tracks to `call.publish()`, or `stop()`
 * them.
 * @throws CallplaneError if none of the requested devices can be opened
 */
export function createLocalTracks(options: DeviceOptions & { platform?: Partial<Platform> }): Promise<OpenedDevices> {
  return openDevices(platformOf(options.platform), options, new Map());
}

/** @param chosen ids of the devices that the user chose */
export async function openDevices(
  platform: Platform,
  { audio = false, video = false, releaseOnMute = true, signal, ...options }: DeviceOptions,
  chosen: ReadonlyMap<TrackSource, string>,
): Promise<OpenedDevices> {
  const { simulcast, encodings, codec, dtx } = options;
  const sending = { simulcast, encodings, codec, dtx };
  assertSending(sending);
  if (audio === false && video === false) throw invalidArgument('audio', 'or `video` must be requested');
  const constraints = {
    audio: audio !== false && constraintsOf(audio, chosen.get('microphone')),
    video: video !== false && constraintsOf(video, chosen.get('camera')),
  };
  const { captured, failed } = await captureAvailable(platform, constraints, signal);
  const tracks = captured.map(({ source, mediaStreamTrack }) => {
    const own = source === 'camera' ? constraints.video : constraints.audio;
    return new LocalTrack({
      trackId: source,
      source,
      mediaStreamTrack,
      sending,
      constraints: own === false ? {} : own,
      isOwn: true,
      releaseOnMute: source === 'camera' && releaseOnMute,
    });
  });
  return { tracks, failed };
}

/** @param deviceId the device to use from now on; default: that of the track */
export async function reopen(
  platform: Platform,
  track: LocalTrack,
  deviceId?: ConstrainDOMString,
): Promise<MediaStreamTrack> {
  const wanted = deviceId === undefined ? {} : { deviceId };
  const constraints = { ...track.constraints, ...wanted };
  const [opened] = await captureDevices(platform, { [track.kind]: constraints });
  if (opened === undefined) throw new CallplaneError('device_unavailable', 'The browser gave no track.');
  track.constraints = constraints;
  return opened.mediaStreamTrack;
}

function constraintsOf(given: true | MediaTrackConstraints, chosen: string | undefined): MediaTrackConstraints {
  const own = given === true ? {} : given;
  // A preference: the chosen device may be unplugged by now.
  return chosen === undefined || own.deviceId !== undefined ? own : { ...own, deviceId: { ideal: chosen } };
}

type Captured = Pick<LocalTrack, 'source' | 'mediaStreamTrack'>;

/** Opens both in one request, because the browser then asks the user once; each alone if that fails. */
async function captureAvailable(
  platform: Platform,
  { audio, video }: Required<Pick<MediaStreamConstraints, 'audio' | 'video'>>,
  signal: AbortSignal | undefined,
): Promise<{ captured: Captured[]; failed: TrackFailure[] }> {
  try {
    return { captured: await captureDevices(platform, { audio, video }, signal), failed: [] };
  } catch (error) {
    if (audio === false || video === false || !isDeviceFailure(error)) throw error;
  }
  const captured: Captured[] = [];
  const errors: { source: Captured['source']; error: CallplaneError }[] = [];
  for (const [source, constraints] of [
    ['microphone', { audio }],
    ['camera', { video }],
  ] as const) {
    try {
      captured.push(...(await captureDevices(platform, constraints, signal)));
    } catch (error) {
      if (!isDeviceFailure(error)) {
        for (const { mediaStreamTrack } of captured) mediaStreamTrack.stop();
        throw error;
      }
      errors.push({ source, error });
    }
  }
  const [first] = errors;
  if (captured.length === 0 && first !== undefined) throw first.error;
  return { captured, failed: errors.map(({ source, error: { code, message } }) => ({ source, code, message })) };
}

function isDeviceFailure(error: unknown): error is CallplaneError {
  return error instanceof CallplaneError && error.code.startsWith('device_');
}

async function captureDevices(
  { mediaDevices }: Platform,
  constraints: MediaStreamConstraints,
  signal?: AbortSignal,
): Promise<Captured[]> {
  const { audio, video } = constraints;
  const what = audio && video ? 'microphone and camera' : audio ? 'microphone' : 'camera';
  const tracks = await opened(what, signal, () => mediaDevices?.getUserMedia(constraints));
  return tracks.map((one) => ({ source: one.kind === 'audio' ? 'microphone' : 'camera', mediaStreamTrack: one }));
}

export async function captureScreen(
  { mediaDevices }: Platform,
  { audio = true, ...given }: DisplayMediaStreamOptions,
  signal?: AbortSignal,
): Promise<Captured[]> {
  const options = { ...DEFAULTS, ...given, audio: audio === true ? DEFAULTS.audio : audio };
  const tracks = await opened('screen', signal, () => mediaDevices?.getDisplayMedia?.(options));
  return tracks.map((one) => ({ source: one.kind === 'audio' ? 'screen_audio' : 'screen', mediaStreamTrack: one }));
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
): Promise<MediaStreamTrack[]> {
  assertNotAborted(signal);
  let stream: MediaStream | undefined;
  try {
    stream = await open();
  } catch (error) {
    assertNotAborted(signal);
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
  return stream.getTracks();
}

/** What to share. The browser lets the user choose the screen, window or tab. */
export interface ScreenOptions extends DisplayMediaStreamOptions, Pick<SendingOptions, 'codec' | 'encodings'> {
  signal?: AbortSignal;
}

/** With the sound, unprocessed: echo cancellation and noise suppression are made for voices. */
const DEFAULTS = {
  video: true,
  audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
  // Newer than TypeScript's types. Browsers ignore the ones that they do not know.
  systemAudio: 'include',
  surfaceSwitching: 'include',
  selfBrowserSurface: 'exclude',
};
