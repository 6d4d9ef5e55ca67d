import type { Call, RemoteParticipant } from '@callplane/client-js';
import { button, element } from './elements.js';

/**
 * Who is here: everyone in a small room; in a large one a page of the participants who are not viewers, and the counts.
 * The call shows the participants of the page, so that their entries stay current.
 */
export class People {
  readonly #call: Call;
  readonly #panel = element('people', HTMLElement);
  readonly #list = element('people-list', HTMLUListElement);
  readonly #toggle = button('toggle-people');
  readonly #next = button('people-next');
  readonly #ownName: string;
  readonly #onOpen: () => void;
  readonly #pages: RosterPages;

  constructor(call: Call, ownName: string, pages: RosterPages, onOpen: () => void) {
    this.#call = call;
    this.#pages = pages;
    this.#ownName = ownName;
    this.#onOpen = onOpen;
    this.#toggle.onclick = () => this.toggle();
    this.#next.onclick = () => void this.#pages.next().then(() => this.#render());
    this.#panel.onkeydown = (event) => {
      if (event.key === 'Escape') this.toggle(false);
    };
    for (const event of [
      'participantJoined',
      'participantUpdated',
      'participantLeft',
      'participantHidden',
      'trackPublished',
      'trackUpdated',
      'trackUnpublished',
      'viewerCount',
      'state',
    ] as const) {
      call.on(event, () => this.#render());
    }
    call.on('rosterPaged', () => {
      if (this.#panel.hidden) this.#render();
      else void this.#pages.first().then(() => this.#render());
    });
    this.#render();
  }

  /** Moves the focus to the list on opening and to the button on closing. */
  toggle(open = this.#panel.hidden): void {
    this.#panel.hidden = !open;
    this.#toggle.setAttribute('aria-expanded', String(open));
    if (!open) {
      this.#toggle.focus();
      return;
    }
    this.#onOpen();
    this.#render();
    if (this.#call.isRosterPaged) void this.#pages.first().then(() => this.#render());
    this.#list.focus();
  }

  close(): void {
    this.#panel.hidden = true;
    this.#toggle.setAttribute('aria-expanded', 'false');
  }

  #render(): void {
    const { participantCount, viewerCount, isRosterPaged, participants } = this.#call;
    element('count', HTMLElement).textContent = `${participantCount.toLocaleString('en')} here`;
    if (this.#panel.hidden) return;
    // Of those on the page, the call knows the present state.
    const listed = isRosterPaged
      ? this.#pages.participants.map((one) => participants.get(one.participantId) ?? one)
      : [...participants.values()];
    const names = listed.map(({ name, connected, tracks }) => {
      const sources = [...tracks.values()].filter(({ muted }) => !muted).map(({ source }) => SOURCES[source]);
      return entry(name, connected ? sources.join(', ') : 'reconnecting');
    });
    if (!isRosterPaged) names.unshift(entry(`${this.#ownName} (you)`, ''));
    this.#list.replaceChildren(...names);
    element('people-viewers', HTMLParagraphElement).textContent = isRosterPaged
      ? `${viewerCount.toLocaleString('en')} more are watching.`
      : '';
    this.#next.hidden = !isRosterPaged;
    this.#next.textContent = this.#pages.isLast ? 'First page' : 'Next page';
  }
}

const SOURCES = { microphone: 'microphone', camera: 'camera', screen: 'screen', screen_audio: 'sound' } as const;

function entry(name: string, note: string): HTMLLIElement {
  const item = document.createElement('li');
  const who = document.createElement('span');
  who.textContent = name;
  const what = document.createElement('small');
  what.textContent = note;
  item.append(who, what);
  return item;
}

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
      // The call reports its own end, and the button reads again.
    }
  }
}
