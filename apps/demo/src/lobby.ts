import { button, element, input } from './elements.js';

export interface Entry {
  name: string;
  room: string;
  audio: boolean;
  video: boolean;
}

const NAME_KEY = 'callplane-demo-name';

/** Asks for a name and a room until `enter` succeeds. */
export function showLobby(enter: (entry: Entry) => Promise<void>): void {
  const lobby = element('lobby', HTMLElement);
  const form = element('join', HTMLFormElement);
  const problem = element('join-problem', HTMLParagraphElement);
  const join = button('join-button');
  const name = input('name');
  const room = input('room');
  name.value = localStorage.getItem(NAME_KEY) ?? '';
  room.value = new URLSearchParams(location.search).get('room') ?? 'demo';
  lobby.hidden = false;
  (name.value === '' ? name : join).focus();

  form.onsubmit = (event) => {
    event.preventDefault();
    const entry = {
      name: name.value.trim(),
      room: room.value.trim(),
      audio: input('with-audio').checked,
      video: input('with-video').checked,
    };
    if (entry.name === '' || entry.room === '') return;
    localStorage.setItem(NAME_KEY, entry.name);
    problem.textContent = '';
    join.disabled = true;
    join.textContent = 'Joining…';
    enter(entry)
      .then(() => {
        lobby.hidden = true;
        const query = new URLSearchParams(location.search);
        query.set('room', entry.room);
        history.replaceState(null, '', `?${query.toString()}`);
      })
      .catch((error: unknown) => {
        problem.textContent = error instanceof Error ? error.message : String(error);
      })
      .finally(() => {
        join.disabled = false;
        join.textContent = 'Join';
      });
  };
}
