import { readRoomSnapshots, type RoomSnapshot } from '@callplane/db';
import type { ServerMessages } from '@callplane/protocol';
import type { Deps } from '../deps.js';
import { RoomView, type Departure, type RoomMember } from './room-view.js';
import { SnapshotLoader } from './snapshot-loader.js';

/** A message for the clients of other instances. */
interface Passed {
  from: string;
  to: string[] | null;
  text: string;
}

/** The rooms in which this instance holds sessions, kept up to date by notices and by a regular look at all of them. */
export class Rooms {
  readonly #deps: Pick<Deps, 'bus' | 'database' | 'instanceId' | 'logger'>;
  readonly #onDeparture: (member: RoomMember, departure: Departure) => void;
  readonly #views = new Map<string, RoomView>();
  readonly #loader: SnapshotLoader;

  constructor(
    deps: Pick<Deps, 'bus' | 'database' | 'instanceId' | 'logger'>,
    onDeparture: (member: RoomMember, departure: Departure) => void,
  ) {
    this.#deps = deps;
    this.#onDeparture = onDeparture;
    this.#loader = new SnapshotLoader(
      (roomIds) => readRoomSnapshots(deps.database.hot, roomIds),
      (roomId, snapshot) => this.#views.get(roomId)?.apply(snapshot),
    );
  }

  get all(): Iterable<RoomView> {
    return this.#views.values();
  }

  /** The room's view, kept until it is released as often as it was acquired. */
  acquire(roomId: string): RoomView {
    let view = this.#views.get(roomId);
    if (view === undefined) {
      view = new RoomView(roomId, this.#deps.instanceId, this.#onDeparture);
      this.#views.set(roomId, view);
      this.#deps.bus.subscribe(roomId, {
        changed: (sequence) => this.#onChanged(roomId, sequence),
        message: (message) => this.#onPassed(roomId, message),
      });
    }
    view.holders += 1;
    return view;
  }

  release(view: RoomView): void {
    view.holders -= 1;
    if (view.holders > 0) return;
    this.#views.delete(view.roomId);
    this.#deps.bus.unsubscribe(view.roomId);
  }

  /** Resolves once a read that began after this call has been applied. */
  async load(roomId: string): Promise<RoomSnapshot | null> {
    await this.#loader.load(roomId);
    return this.#views.get(roomId)?.snapshot ?? null;
  }

  /**
   * This instance has changed the room: its own view follows, and others are told. Never rejects; what is missed here
   * comes with the next regular look.
   * @param event whether events were written: then the room's number tells whether somebody knows of it already.
   */
  async changed(roomId: string, event: boolean): Promise<void> {
    if (!event) void this.#deps.bus.publishChanged(roomId);
    const snapshot = await this.load(roomId).catch((error: unknown) => {
      this.#deps.logger.warn('room not read', { roomId, error });
      return null;
    });
    if (event) await this.#deps.bus.publishChanged(roomId, snapshot?.sequence);
  }

  /**
   * As {@link changed}, for a client that waits until this instance's view has it.
   * @throws when the room cannot be read.
   */
  async show(roomId: string, event: boolean): Promise<void> {
    if (!event) void this.#deps.bus.publishChanged(roomId);
    const snapshot = await this.load(roomId);
    if (event) void this.#deps.bus.publishChanged(roomId, snapshot?.sequence);
  }

  /** Looks at all of them: finds what no notice has told of. */
  async resync(): Promise<void> {
    await Promise.all([...this.#views.keys()].map((roomId) => this.#loader.load(roomId)));
  }

  /**
   * Passes a client's message on, here and to other instances.
   * @param to participants; null for everybody else.
   * @returns false when somebody elsewhere could not be reached.
   */
  async pass(view: RoomView, from: string, to: string[] | null, data: unknown, sentAt: string): Promise<boolean> {
    const text = JSON.stringify({ type: 'message', from, data, sentAt } satisfies ServerMessages['message']);
    deliver(view, { from, to, text });
    const elsewhere = (view.snapshot?.sessions ?? []).some(
      ({ instanceId, participant }) =>
        instanceId !== this.#deps.instanceId && (to === null || to.includes(participant.id)),
    );
    return !elsewhere || this.#deps.bus.publishMessage(view.roomId, { from, to, text } satisfies Passed);
  }

  #onChanged(roomId: string, sequence: number | null): void {
    const known = this.#views.get(roomId)?.snapshot?.sequence;
    if (sequence !== null && known !== undefined && known >= sequence) return;
    void this.load(roomId).catch((error: unknown) => this.#deps.logger.warn('room not read', { roomId, error }));
  }

  #onPassed(roomId: string, message: unknown): void {
    const view = this.#views.get(roomId);
    if (view === undefined || typeof message !== 'object' || message === null) return;
    const { from, to, text } = message as Partial<Passed>;
    if (typeof from === 'string' && typeof text === 'string') deliver(view, { from, to: to ?? null, text });
  }
}

function deliver(view: RoomView, { from, to, text }: Passed): void {
  for (const member of view.members) {
    if (member.participantId === from) continue;
    if (to === null || to.includes(member.participantId)) member.tellText(text);
  }
}
