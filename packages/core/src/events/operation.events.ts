import type { OperationState } from '../operations/operation.js';
import { presentOperation } from '../operations/operation.presenter.js';
import { presentParticipant, type ParticipantState } from '../participants/participant.presenter.js';
import { presentRoom } from '../rooms/room.presenter.js';
import type { NewEvent } from './event.js';
import { roomEvent, type RoomSubject } from './subject.js';

/**
 * The last attempt of an operation's run has failed.
 * @param participant the participant of a removal; null for the end of a room.
 */
export function operationFailed(
  subject: RoomSubject,
  operation: OperationState,
  participant: ParticipantState | null,
): NewEvent {
  const data = { operation: presentOperation(operation), room: presentRoom(subject.tenant, subject.room) };
  if (participant === null) return roomEvent('operation.failed', subject, data);
  const shown = presentParticipant(participant, subject.now);
  return roomEvent('operation.failed', subject, { ...data, participant: shown }, participant.id);
}
