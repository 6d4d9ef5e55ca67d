import type { IceCandidate } from '@callplane/media';
import type { Candidate } from '@callplane/protocol';

/** Only what the media server needs of a client's candidate; null ends them. */
export function toIceCandidate(candidate: Candidate): IceCandidate | null {
  if (candidate === null) return null;
  return { candidate: candidate.candidate, sdpMid: candidate.sdpMid, sdpMLineIndex: candidate.sdpMLineIndex };
}
