import type { Call } from '@callplane/client-js';
import { announce, button, element, input } from './elements.js';
import { readable } from './problems.js';

/** Chat messages to all participants, over signaling. */
export class Chat {
  readonly #panel = element('chat', HTMLElement);
  readonly #messages = element('messages', HTMLOListElement);
  readonly #toggle = button('toggle-chat');
  readonly #unread = element('unread', HTMLElement);
  #unreadCount = 0;

  constructor(call: Call) {
    this.#messages.replaceChildren();
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
      if (!this.#panel.hidden) return;
      this.#unreadCount++;
      this.#showUnread();
      announce(`Message from ${name}: ${data.text}`);
    });
    this.#panel.onkeydown = (event) => {
      if (event.key === 'Escape') this.toggle(false);
    };
  }

  /** Moves the focus to the text field on opening and to the button on closing. */
  toggle(open = this.#panel.hidden): void {
    this.#panel.hidden = !open;
    this.#toggle.setAttribute('aria-expanded', String(open));
    this.#unreadCount = 0;
    this.#showUnread();
    if (open) input('chat-text').focus();
    else this.#toggle.focus();
  }

  close(): void {
    this.#panel.hidden = true;
    this.#toggle.setAttribute('aria-expanded', 'false');
  }

  #show(name: string, text: string, at?: Date): void {
    const who = document.createElement('b');
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
