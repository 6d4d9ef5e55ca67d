export const TRACK_KINDS = ['audio', 'video'] as const;
export type TrackKind = (typeof TRACK_KINDS)[number];

/** What a track shows. A browser's SDP does not tell a camera from a screen: this is the publisher's word. */
export const TRACK_SOURCES = ['microphone', 'camera', 'screen', 'screen_audio'] as const;
export type TrackSource = (typeof TRACK_SOURCES)[number];

/** Which kind of media each source gives. */
export const KIND_OF_TRACK_SOURCE = {
  microphone: 'audio',
  camera: 'video',
  screen: 'video',
  screen_audio: 'audio',
} as const satisfies Record<TrackSource, TrackKind>;

/** A published track, as events tell of it. */
export interface TrackIdentity {
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
}

/** A track as events hold it. */
export function presentTrack({ trackId, kind, source }: TrackIdentity): TrackIdentity {
  return { trackId, kind, source };
}
