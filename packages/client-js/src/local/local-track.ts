import type { TrackKind, TrackSource } from '../protocol.generated.js';

/** A track that is published by this participant. */
export interface LocalTrack {
  readonly trackId: string;
  readonly kind: TrackKind;
  readonly source: TrackSource;
  readonly mediaStreamTrack: MediaStreamTrack;
  muted: boolean;
  /** Simulcast layers; undefined sends one. */
  readonly encodings: RTCRtpEncodingParameters[] | undefined;
  /** Whether the SDK opened the device, and so has to close it. */
  readonly isOwn: boolean;
}

/** The permission that publishing from a source needs. */
export const PERMISSION_OF = {
  microphone: 'audio:publish',
  camera: 'video:publish',
  screen: 'screen:publish',
  screen_audio: 'screen:publish',
} as const satisfies Record<TrackSource, string>;

/** Three layers of the camera, the best first, as Janus counts them. */
export const SIMULCAST_ENCODINGS: RTCRtpEncodingParameters[] = [
  { rid: 'h', maxBitrate: 1_200_000 },
  { rid: 'm', maxBitrate: 400_000, scaleResolutionDownBy: 2 },
  { rid: 'l', maxBitrate: 120_000, scaleResolutionDownBy: 4 },
];

/** The name of the source, with a number behind it when that is taken. */
export function freeTrackId(source: TrackSource, taken: (trackId: string) => boolean): string {
  let trackId: string = source;
  for (let count = 2; taken(trackId); count++) trackId = `${source}-${count}`;
  return trackId;
}
