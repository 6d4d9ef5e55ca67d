import type { RemoteParticipant } from '../protocol.generated.js';

/** Whether the participant neither publishes nor has metadata, and would only be counted in a large room. */
export function isViewer({ tracks, metadata }: Pick<RemoteParticipant, 'tracks' | 'metadata'>): boolean {
  return tracks.length === 0 && Object.keys(metadata).length === 0;
}
