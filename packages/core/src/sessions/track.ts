import type { Permission } from '../participants/participant.js';

export const TRACK_KINDS = ['audio', 'video'] as const;
type TrackKind = (typeof TRACK_KINDS)[number];

/**
 * Sources of a track. The publisher declares the source, because a browser's SDP does not distinguish a camera from a
 * screen.
 */
export const TRACK_SOURCES = ['microphone', 'camera', 'screen', 'screen_audio'] as const;
export type TrackSource = (typeof TRACK_SOURCES)[number];

/** The permission that a participant needs to publish from a source. */
export const PERMISSION_OF_SOURCE = {
  microphone: 'audio:publish',
  screen_audio: 'screen:publish',
  camera: 'video:publish',
  screen: 'screen:publish',
} as const satisfies Record<TrackSource, Permission>;

/** The sources that these permissions allow to publish. */
export function publishableSources(permissions: readonly Permission[]): TrackSource[] {
  return TRACK_SOURCES.filter((source) => permissions.includes(PERMISSION_OF_SOURCE[source]));
}

/** A published track, as it appears in events. */
export interface TrackIdentity {
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
}

/** Presents a track for events. */
export function presentTrack({ trackId, kind, source }: TrackIdentity): TrackIdentity {
  return { trackId, kind, source };
}
