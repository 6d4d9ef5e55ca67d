import { keptJson } from '../kept.js';
import type { Room } from '../metadata.js';
import type * as protocol from '../protocol.generated.js';
import type { Session } from '../signaling/session.js';
import type { Participant } from './participant.js';
import { isEmpty, type Roster } from './roster.js';

/** How many are in the room. */
export interface Counts {
  /** Everyone, you and the viewers included. */
  participantCount: number;
  /** Participants who neither publish nor have metadata. */
  viewerCount: number;
}

/** A page of the participants who are not viewers, as they were when the page was made. */
export interface RosterPage extends Counts {
  participants: protocol.RemoteParticipant[];
  /** `cursor` of the next page; null on the last one. */
  next: string | null;
}

export interface PresenceEvents {
  /** Only in a paged room, at most once a second. */
  viewerCount: Counts;
  /** Your own name or metadata was changed, by you or by the server. */
  ownParticipantUpdated: protocol.RemoteParticipant;
  /** The server has changed the name, the metadata or the capacity of the room. */
  roomUpdated: Room;
  /** A recording of the room has started, or the last one has ended. The event has `recordingSince`. */
  recordingChanged: string | null;
  /** The room has become too large to report everyone: from now on it is paged. */
  rosterPaged: Counts;
}

export interface PresenceContext {
  session: Session;
  roster: Roster;
  isPublishing: () => boolean;
  onOwnTracks: (tracks: protocol.Track[]) => void;
  emit: <Name extends keyof PresenceEvents>(name: Name, event: PresenceEvents[Name]) => void;
}

/** Who is in the room. In a small room that is everyone; in a paged one those who are shown, the counts and the pages. */
export class Presence {
  room: Room | undefined;
  own: protocol.RemoteParticipant | undefined;
  isPaged = false;
  #isWaiting: true | undefined;
  #counts: Counts = { participantCount: 0, viewerCount: 0 };
  /** The last `show`; undefined if the application never chose. */
  #choice: { participantIds: string[]; publishers: boolean } | undefined;
  /** Requests for `show` without an answer yet. */
  #asked = 0;

  constructor(private readonly context: PresenceContext) {}

  get counts(): Counts {
    if (this.isPaged || this.#isWaiting) return this.#counts;
    const { roster, isPublishing } = this.context;
    const isOwnViewer = this.own !== undefined && !isPublishing() && isEmpty(this.own.metadata);
    return {
      participantCount: roster.participants.size + Number(this.own !== undefined),
      viewerCount: roster.viewerCount + Number(isOwnViewer),
    };
  }

  ownMetadata(metadata: Record<string, unknown>): void {
    if (this.own !== undefined) this.own = { ...this.own, metadata };
  }

  welcome({
    participant,
    participants,
    room,
    roster: { paged, participantCount, viewerCount },
    waiting,
  }: protocol.WelcomeMessage): void {
    this.#isWaiting = waiting;
    this.#takeRoom(room);
    this.own = keptJson(this.own, participant);
    this.#asked = 0;
    this.#take(paged, { participantCount, viewerCount }, participants);
    // The gateway that welcomes does not know what another one was asked to show.
    this.#ask().catch(() => undefined);
  }

  receive(message: protocol.ServerMessage): void {
    const { roster, emit } = this.context;
    switch (message.type) {
      case 'changes':
        for (const change of message.changes) {
          if (this.#isOwn(change)) this.#applyOwn(change);
          else roster.apply(change);
        }
        break;
      case 'roomUpdated':
        this.#takeRoom(message.room);
        break;
      case 'viewerCount': {
        const { participantCount, viewerCount } = message;
        this.#counts = { participantCount, viewerCount };
        emit('viewerCount', this.#counts);
        break;
      }
      case 'rosterPaged': {
        const { participantCount, viewerCount, participants } = message;
        this.#take(true, { participantCount, viewerCount }, participants);
        emit('rosterPaged', this.#counts);
        break;
      }
      case 'shown':
        this.#shown(message.participants);
        break;
      default:
      // The session has already matched answers to their requests. Other types are of a later protocol version.
    }
  }

  #takeRoom(room: Record<string, unknown>): void {
    const before = this.room;
    const after = (this.room = keptJson(before, room as unknown as Room));
    const contentOf = ({ name, metadata, maxParticipants }: Room) => JSON.stringify([name, metadata, maxParticipants]);
    if (before === undefined) return;
    if (contentOf(before) !== contentOf(after)) this.context.emit('roomUpdated', after);
    const { recordingSince } = after;
    if (before.recordingSince !== recordingSince) this.context.emit('recordingChanged', recordingSince);
  }

  #applyOwn(change: protocol.Change): void {
    const own = this.own;
    if (own === undefined) return;
    if (change.kind === 'participant') this.own = keptJson(own, change.participant);
    else if (change.kind === 'tracks') this.own = keptJson(own, { ...own, tracks: change.tracks });
    else return;
    const contentOf = ({ name, metadata }: protocol.RemoteParticipant) => JSON.stringify([name, metadata]);
    if (contentOf(own) !== contentOf(this.own)) this.context.emit('ownParticipantUpdated', this.own);
    if (this.own.sessionId === own.sessionId) this.context.onOwnTracks(this.own.tracks);
  }

  async list({ cursor, limit }: { cursor?: string; limit?: number }): Promise<RosterPage> {
    const chosen = { ...(cursor === undefined ? {} : { cursor }), ...(limit === undefined ? {} : { limit }) };
    const page = await this.context.session.request({ type: 'roster', ...chosen });
    const { participants, next, participantCount, viewerCount } = page;
    return { participants, next, participantCount, viewerCount };
  }

  async show(participantIds: readonly string[], publishers: boolean): Promise<void> {
    this.#choice = { participantIds: [...new Set(participantIds)], publishers };
    if (this.isPaged) this.#hide(({ participantId, tracks }) => !this.#shows(participantId, tracks.size > 0));
    await this.#ask();
  }

  async #ask(): Promise<void> {
    if (this.#choice === undefined) return;
    this.#asked++;
    await this.context.session.request({ type: 'show', ...this.#choice });
  }

  #take(isPaged: boolean, counts: Counts, participants: protocol.RemoteParticipant[]): void {
    const { roster } = this.context;
    this.isPaged = isPaged;
    this.#counts = counts;
    if (!isPaged) {
      roster.replace(participants);
      return;
    }
    const shown = participants.filter((one) => this.#shows(one.participantId, one.tracks.length > 0));
    const present = new Set(shown.map(({ participantId }) => participantId));
    // The answer to `show` says who is still present.
    this.#hide(({ participantId }) => !present.has(participantId) && !this.#chose(participantId));
    for (const one of shown) roster.upsert(one);
  }

  #shown(participants: protocol.RemoteParticipant[]): void {
    const { roster } = this.context;
    this.#asked = Math.max(0, this.#asked - 1);
    for (const one of participants) {
      if (one.participantId !== this.own?.participantId && this.#chose(one.participantId)) roster.upsert(one);
    }
    if (this.#asked > 0 || !this.isPaged) return;
    const present = new Set(participants.map(({ participantId }) => participantId));
    this.#hide(({ participantId }) => this.#chose(participantId) && !present.has(participantId));
  }

  #hide(isHidden: (participant: Participant) => boolean): void {
    const { roster } = this.context;
    for (const one of [...roster.participants.values()]) {
      if (isHidden(one)) roster.remove(one.participantId, one.sessionId, 'hidden');
    }
  }

  #shows(participantId: string, isPublisher: boolean): boolean {
    return this.#chose(participantId) || (isPublisher && this.#choice?.publishers !== false);
  }

  #chose(participantId: string): boolean {
    return this.#choice?.participantIds.includes(participantId) === true;
  }

  #isOwn(change: protocol.Change): boolean {
    const participantId = change.kind === 'participant' ? change.participant.participantId : change.participantId;
    return participantId === this.own?.participantId;
  }
}
