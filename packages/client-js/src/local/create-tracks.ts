import { CallplaneError, invalidArgument } from '../errors.js';
import { platformOf, type Platform } from '../platform.js';
import type { TrackSource } from '../protocol.generated.js';
import { captureDevices } from './capture.js';
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

/** The devices that the user chose, by source. */
export type ChosenDevices = ReadonlyMap<TrackSource, string>;

/**
 * Opens the microphone and the camera without a call, for a preview. Pass the tracks to `call.publish()`, or `stop()`
 * them.
 */
export function createLocalTracks(options: DeviceOptions & { platform?: Partial<Platform> }): Promise<LocalTrack[]> {
  return openDevices(platformOf(options.platform), options, new Map());
}

export async function openDevices(
  platform: Platform,
  { audio = false, video = false, releaseOnMute = true, signal, ...options }: DeviceOptions,
  chosen: ChosenDevices,
): Promise<LocalTrack[]> {
  const { simulcast, encodings, codec, dtx } = options;
  const sending = { simulcast, encodings, codec, dtx };
  assertSending(sending);
  if (audio === false && video === false) throw invalidArgument('audio', 'or `video` must be requested');
  const constraints = {
    microphone: audio !== false && constraintsOf(audio, chosen.get('microphone')),
    camera: video !== false && constraintsOf(video, chosen.get('camera')),
  };
  const request = { audio: constraints.microphone, video: constraints.camera };
  const captured = await captureDevices(platform, request, signal);
  return captured.map(({ source, mediaStreamTrack }) => {
    const own = source === 'camera' ? constraints.camera : constraints.microphone;
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
}

/** Opens the device of the track again, or another one in its place. */
export async function reopen(platform: Platform, track: LocalTrack, deviceId?: string): Promise<MediaStreamTrack> {
  const wanted = deviceId === undefined ? {} : { deviceId: { exact: deviceId } };
  const constraints = { ...track.constraints, ...wanted };
  const isAudio = track.kind === 'audio';
  const captured = await captureDevices(platform, {
    audio: isAudio && constraints,
    video: !isAudio && constraints,
  });
  const [opened] = captured;
  if (opened === undefined) throw new CallplaneError('device_unavailable', 'The browser gave no track.');
  track.constraints = constraints;
  return opened.mediaStreamTrack;
}

function constraintsOf(given: true | MediaTrackConstraints, chosen: string | undefined): MediaTrackConstraints {
  const own = given === true ? {} : given;
  // A preference: the chosen device may be unplugged by now.
  return chosen === undefined || own.deviceId !== undefined ? own : { ...own, deviceId: { ideal: chosen } };
}
