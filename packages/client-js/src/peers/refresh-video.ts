import type { PeerTarget } from '../protocol.generated.js';
import type { Session } from '../signaling/session.js';

/** Asks for key frames after an interruption. */
export function refreshVideo(session: Session, target: PeerTarget): void {
  session.post({ type: 'refreshVideo', targets: [target] });
}
