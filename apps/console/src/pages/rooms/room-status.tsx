import type { Room } from '@callplane/server/requests';
import { Badge, type Tone } from '../../components/text.js';

const TONES: Record<Room['status'], Tone> = { created: 'quiet', active: 'good', ending: 'warn', ended: 'quiet' };

export function RoomStatus({ status }: { status: Room['status'] }) {
  return <Badge tone={TONES[status]}>{status}</Badge>;
}
