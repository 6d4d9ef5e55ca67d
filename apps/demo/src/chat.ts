import type { Call } from '@callplane/client-js';
import { announce, element, input, Panel } from './elements.js';
import { readable } from './problems.js';

/** Chat messages to all participants, over signaling. */
export class Chat {
  readonly panel: Panel;
  readonly #messages = element('messages', HTMLOListElement);
  readonly #unread = element('unread', HTMLElement);
  #unreadCount = 0;

  constructor(call: Call) {
    this.#messages.replaceChildren();
    this.panel = new Panel('chat', () => {
      this.#unreadCount = 0;
      this.#showUnread();
      return text;
    });
    const mayWrite = call.permissions.includes('messages:send');
    const text = input('chat-text');
    text.disabled = !mayWrite;
    element('chat-form', HTMLFormElement).onsubmit = (event) => {
      event.preventDefault();
      const message = text.value.trim();
      if (message === '') return;
      call.send({ text: message }).then(
        () => {
          text.value = '';
          this.#show('You', message, new Date(performance.timeOrigin + performance.now()));
        },
        (error: unknown) => this.#show('Not sent', readable(error)),
      );
    };
    call.on('message', ({ participant, data, sentAt }) => {
      if (!isChat(data)) return;
      const name = participant?.name ?? 'A participant who left';
      this.#show(name, data.text, sentAt);
      if (this.panel.isOpen) return;
      this.#unreadCount++;
      this.#showUnread();
      announce(`Message from ${name}: ${data.text}`);
    });
  }

  #show(name: string, text: string, at?: Date): void {
    const who = document.createElement('b');
    who.className = 'quiet small';
    who.textContent = name;
    const what = document.createElement('p');
    what.textContent = text;
    const line = document.createElement('li');
    line.append(who, what);
    if (at !== undefined) {
      const time = document.createElement('time');
      time.dateTime = at.toISOString();
      time.textContent = at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
      who.append(' ', time);
    }
    this.#messages.append(line);
    line.scrollIntoView({ block: 'end' });
  }

  #showUnread(): void {
    this.#unread.hidden = this.#unreadCount === 0;
    this.#unread.textContent = String(this.#unreadCount);
    this.#unread.setAttribute('aria-label', `${this.#unreadCount} unread`);
  }
}

function isChat(data: unknown): data is { text: string } {
  return typeof data === 'object' && data !== null && 'text' in data && typeof data.text === 'string';
}
