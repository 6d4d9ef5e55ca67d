import type { Call, CallplaneError, ReceivedMessage, RemoteParticipant, TrackSource } from '@callplane/client-js';
import { Store } from './store.js';

export interface Message extends Omit<ReceivedMessage, 'participant'> {
  /** Grows by one with each message. */
  id: number;
  isOwn: boolean;
  /** The sender's name; undefined for the server, and for a participant who has left. */
  name: string | undefined;
}

/** A page of a room that is too large to list everyone. */
export interface RosterState {
  participants: readonly RemoteParticipant[];
  hasNext: boolean;
}

/** The latest event that the user should know of: the device of a source is gone, or a background failure. */
export type Notice = { source: TrackSource } | { error: CallplaneError };

const MESSAGES_MAX = 500;
const ROSTER_PAGE = 50;

/** The state of a call that outlives the components that show it. */
export class Companion {
  /** The newest messages, the oldest first. */
  readonly messages = new Store<readonly Message[]>([]);
  readonly notice = new Store<Notice | undefined>(undefined);
  /** The chosen loudspeaker. */
  readonly outputId = new Store<string | undefined>(undefined);
  readonly roster = new Store<RosterState>({ participants: [], hasNext: true });
  /** Whether the user wants a source to be on. An attempt that runs ends in this state. */
  readonly wishes = new Map<TrackSource, boolean>();
  #cursor: string | null = null;
  #reading: Promise<void> | undefined;
  #lastId = 0;

  constructor(private readonly call: Call) {
    call.on('message', ({ participant, ...message }) =>
      this.#add({ ...message, isOwn: false, name: participant?.name }),
    );
    call.on('problem', (error) => this.notice.set({ error }));
    call.on('deviceFallback', ({ source }) => this.notice.set({ source }));
    // A new connection may have solved it.
    call.on('state', (state) => state === 'connected' && this.notice.set(undefined));
  }

  async send(data: unknown, options?: { to?: string[] }): Promise<void> {
    await this.call.send(data, options);
    const { participantId: from, name } = this.call.participant;
    const sentAt = new Date(performance.timeOrigin + performance.now());
    this.#add({ from, isFromServer: false, isOwn: true, name, data, sentAt });
  }

  /** Reads the next page of a large room and lets the call show it; after the last page, the first one. */
  readonly nextPage = (): Promise<void> => {
    this.#reading ??= this.#readPage().finally(() => (this.#reading = undefined));
    return this.#reading;
  };

  async #readPage(): Promise<void> {
    if (!this.call.isRosterPaged) return;
    const cursor = this.#cursor === null ? {} : { cursor: this.#cursor };
    try {
      const { participants, next } = await this.call.listParticipants({ limit: ROSTER_PAGE, ...cursor });
      this.#cursor = next;
      this.roster.set({ participants, hasNext: next !== null });
      await this.call.show(participants.map(({ participantId }) => participantId));
    } catch {
      // An ended call shows that by itself. Otherwise the reader presses the button again.
    }
  }

  #add(message: Omit<Message, 'id'>): void {
    this.messages.set([...this.messages.get(), { id: ++this.#lastId, ...message }].slice(-MESSAGES_MAX));
  }
}

const companions = new WeakMap<Call, Companion>();

export function companionOf(call: Call): Companion {
  const known = companions.get(call);
  if (known !== undefined) return known;
  const made = new Companion(call);
  companions.set(call, made);
  return made;
}
