import type { Change, RemoteParticipant, ServerMessage, ServerMessageV1, Track } from '../protocol.generated.js';
import { isViewer } from '../remote/viewer.js';

/** Turns the messages of a gateway that speaks version 1 into those of version 2. There is one for each connection. */
export class Version1 {
  readonly #participants = new Map<string, RemoteParticipant>();

  read(message: ServerMessageV1): ServerMessage {
    switch (message.type) {
      case 'welcome': {
        const { participants } = message;
        for (const one of participants) this.#participants.set(one.participantId, one);
        const viewerCount = [...participants, message.participant].filter(isViewer).length;
        return {
          ...message,
          roster: { paged: false, next: null, participantCount: participants.length + 1, viewerCount },
        };
      }
      case 'participantJoined':
      case 'participantUpdated':
        this.#participants.set(message.participant.participantId, message.participant);
        return changes({ kind: 'participant', participant: message.participant });
      case 'participantLeft': {
        const { participantId, sessionId } = message;
        if (this.#participants.get(participantId)?.sessionId === sessionId) this.#participants.delete(participantId);
        return changes({ kind: 'left', participantId, sessionId });
      }
      case 'trackPublished':
      case 'trackUpdated': {
        const { participantId, track } = message;
        return this.#tracks(participantId, track.trackId, track);
      }
      case 'trackUnpublished':
        return this.#tracks(message.participantId, message.trackId, undefined);
      default:
        return message;
    }
  }

  /** Puts the track in the place of the one with this id, or removes it. */
  #tracks(participantId: string, trackId: string, track: Track | undefined): ServerMessage {
    const known = this.#participants.get(participantId);
    if (known === undefined) return { type: 'changes', changes: [] };
    const index = known.tracks.findIndex((one) => one.trackId === trackId);
    const tracks = known.tracks.filter((one) => one.trackId !== trackId);
    if (track !== undefined) tracks.splice(index === -1 ? tracks.length : index, 0, track);
    this.#participants.set(participantId, { ...known, tracks });
    return changes({ kind: 'tracks', participantId, sessionId: known.sessionId, tracks });
  }
}

function changes(...all: Change[]): ServerMessage {
  return { type: 'changes', changes: all };
}
