import type { Call, RemoteParticipant } from '@callplane/client-js';

const PAGE_SIZE = 50;

/** Reads the participants of a large room page by page, and lets the call show those of the present page. */
export class RosterPages {
  readonly #call: Call;
  #page: RemoteParticipant[] = [];
  /** Undefined before the first page, null after the last. */
  #cursor: string | null | undefined;
  #reading: Promise<void> | undefined;

  constructor(call: Call) {
    this.#call = call;
  }

  /** The participants of the present page, as they are by now. */
  get participants(): RemoteParticipant[] {
    return this.#page;
  }

  get hasNext(): boolean {
    return this.#call.isRosterPaged && this.#cursor !== null;
  }

  get isLast(): boolean {
    return this.#cursor === null;
  }

  first(): Promise<void> {
    this.#cursor = undefined;
    return this.next();
  }

  /** The page after the present one; after the last one the first again. */
  next(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<void> {
    if (!this.#call.isRosterPaged) return;
    try {
      const cursor = this.#cursor ?? undefined;
      const page = await this.#call.listParticipants({ limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) });
      this.#page = page.participants;
      this.#cursor = page.next;
      await this.#call.show(page.participants.map(({ participantId }) => participantId));
    } catch {
      // An ended call shows that by itself. Otherwise the reader presses the button again.
    }
  }
}
