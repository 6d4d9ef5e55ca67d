import type { RemoteTrack } from '../remote/participant.js';

/** How much of a track the network carries. `paused`: nothing, so that the audio stays clean. */
export type TrackQuality = 'full' | 'reduced' | 'paused';

export interface TrackQualityChange {
  track: RemoteTrack;
  quality: TrackQuality;
}
