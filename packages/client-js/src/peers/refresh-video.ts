import type { PeerTarget } from '../protocol.generated.js';
import type { Session } from '../signaling/session.js';

/** Asks for key frames after an interruption. Version 1 has no such request: there the browser asks, up to 3 s later. */
export function refreshVideo(session: Session, target: PeerTarget): void {
  if (session.version === 2) session.post({ type: 'refreshVideo', targets: [target] });
}
