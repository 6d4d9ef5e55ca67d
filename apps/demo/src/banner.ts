import type { Call, ConnectionState } from '@callplane/client-js';
import { element } from './elements.js';

const STATES: Record<ConnectionState, string> = {
  connecting: 'Connecting',
  connected: 'Connected',
  reconnecting: 'Reconnecting…',
  closed: 'Ended',
};
const AWAY = 'The server does not answer. Reconnecting… Picture and sound may go on, the chat waits.';
const NO_MEDIA =
  'Audio and video are not available at the moment (media_unavailable). The call and the chat go on without them.';

/** The state of the connection, and one line of text about what does not work. */
export class Banner {
  readonly #call: Call;
  #problem = '';

  constructor(call: Call) {
    this.#call = call;
    call.on('state', (state) => {
      if (state === 'connected') this.#problem = '';
      this.#render();
    });
    call.on('mediaState', () => this.#render());
    this.#render();
  }

  /** Shows a problem until the next one; an empty text removes it. */
  show(problem: string): void {
    this.#problem = problem;
    this.#render();
  }

  #render(): void {
    const { state, mediaState } = this.#call;
    const shown = element('state', HTMLElement);
    shown.dataset['state'] = state;
    shown.textContent = STATES[state];
    element('call', HTMLDivElement).dataset['state'] = state;
    const banner = element('banner', HTMLParagraphElement);
    banner.textContent = state === 'reconnecting' ? AWAY : mediaState === 'down' ? NO_MEDIA : this.#problem;
    banner.hidden = banner.textContent === '';
  }
}
