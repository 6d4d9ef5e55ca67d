import type { Call, RemoteParticipant } from '@callplane/client-js';
import { button, element, make, Panel } from './elements.js';

/**
 * Who is here: everyone in a small room; in a large one a page of the participants who are not viewers, and the counts.
 * The call shows the participants of the page, so that their entries stay current.
 */
export function showPeople(call: Call, ownName: string, pages: RosterPages): Panel {
  const list = element('people-list', HTMLUListElement);
  const next = button('people-next');
  const turn = (page: Promise<void>) => void page.then(render);
  const panel = new Panel('people', () => {
    render();
    if (call.isRosterPaged) turn(pages.first());
    return list;
  });
  const render = () => {
    const { participantCount, viewerCount, isRosterPaged, participants } = call;
    element('count', HTMLElement).textContent = `${participantCount.toLocaleString('en')} here`;
    if (!panel.isOpen) return;
    // Of those on the page, the call knows the present state.
    const listed = isRosterPaged
      ? pages.participants.map((one) => participants.get(one.participantId) ?? one)
      : [...participants.values()];
    const names = listed.map(({ name, connected, tracks }) => {
      const sources = [...tracks.values()].filter(({ muted }) => !muted).map(({ source }) => SOURCES[source]);
      return entry(name, connected ? sources.join(', ') : 'reconnecting');
    });
    if (!isRosterPaged) names.unshift(entry(`${ownName} (you)`, ''));
    list.replaceChildren(...names);
    element('people-viewers', HTMLParagraphElement).textContent = isRosterPaged
      ? `${viewerCount.toLocaleString('en')} more are watching.`
      : '';
    next.hidden = !isRosterPaged;
    next.textContent = pages.hasNext ? 'Next page' : 'First page';
  };
  next.onclick = () => turn(pages.next());
  call.subscribe(render);
  call.on('rosterPaged', () => {
    if (panel.isOpen) turn(pages.first());
    else render();
  });
  render();
  return panel;
}

const SOURCES = { microphone: 'microphone', camera: 'camera', screen: 'screen', screen_audio: 'sound' } as const;

function entry(name: string, note: string): HTMLLIElement {
  const item = make('li');
  item.append(make('span', '', name), make('small', 'quiet', note));
  return item;
}

const PAGE_SIZE = 50;

/** Reads the participants of a large room page by page, and lets the call show the present page. */
export class RosterPages {
  participants: readonly RemoteParticipant[] = [];
  /** Undefined before the first page, null after the last. */
  #cursor: string | null | undefined;
  #reading: Promise<void> | undefined;

  constructor(private readonly call: Call) {}

  get hasNext(): boolean {
    return this.call.isRosterPaged && this.#cursor !== null;
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
    if (!this.call.isRosterPaged) return;
    try {
      const cursor = this.#cursor ?? undefined;
      const page = await this.call.listParticipants({ limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) });
      this.participants = page.participants;
      this.#cursor = page.next;
      await this.call.show(page.participants.map(({ participantId }) => participantId));
    } catch {
      // An ended call shows that by itself. Otherwise the reader presses the button again.
    }
  }
}
