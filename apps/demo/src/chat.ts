import type { Call } from '@callplane/client-js';
import { announce, element, input, make, Panel } from './elements.js';
import { readable } from './problems.js';

/** Chat messages to all participants, over signaling. */
export function openChat(call: Call): Panel {
  const unread = element('unread', HTMLElement);
  const text = input('chat-text');
  let unreadCount = 0;
  const showUnread = () => {
    unread.hidden = unreadCount === 0;
    unread.textContent = String(unreadCount);
    unread.setAttribute('aria-label', `${unreadCount} unread`);
  };
  const panel = new Panel('chat', () => {
    unreadCount = 0;
    showUnread();
    return text;
  });
  element('messages', HTMLOListElement).replaceChildren();
  text.disabled = !call.permissions.includes('messages:send');
  element('chat-form', HTMLFormElement).onsubmit = (event) => {
    event.preventDefault();
    const message = text.value.trim();
    if (message === '') return;
    call.send({ text: message }).then(
      () => {
        text.value = '';
        show('You', message, new Date(performance.timeOrigin + performance.now()));
      },
      (error: unknown) => show('Not sent', readable(error)),
    );
  };
  call.on('message', ({ isFromServer, participant, data, sentAt }) => {
    if (!isChat(data)) return;
    const name = isFromServer ? 'The server' : (participant?.name ?? 'A participant who left');
    show(name, data.text, sentAt);
    if (panel.isOpen) return;
    unreadCount++;
    showUnread();
    announce(`Message from ${name}: ${data.text}`);
  });
  return panel;
}

function show(name: string, text: string, at?: Date): void {
  const who = make('b', 'quiet small', name);
  const line = make('li');
  line.append(who, make('p', '', text));
  if (at !== undefined) {
    const time = make('time', '', at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
    time.dateTime = at.toISOString();
    who.append(' ', time);
  }
  element('messages', HTMLOListElement).append(line);
  line.scrollIntoView({ block: 'end' });
}

function isChat(data: unknown): data is { text: string } {
  return typeof data === 'object' && data !== null && 'text' in data && typeof data.text === 'string';
}
