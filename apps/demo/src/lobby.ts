import type { LocalTrack } from '@callplane/client-js';
import { button, element, input, readable } from './elements.js';
import { Preview } from './preview.js';

export interface Entry {
  name: string;
  room: string;
  /** Ends the preview. Resolves to the devices to begin with. */
  devices: () => Promise<LocalTrack[]>;
}

const NAME_KEY = 'callplane-demo-name';

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
  const preview = new Preview();

  form.onsubmit = (event) => {
    event.preventDefault();
    const entry = { name: name.value.trim(), room: room.value.trim(), devices: () => preview.take() };
    if (entry.name === '' || entry.room === '') return;
    localStorage.setItem(NAME_KEY, entry.name);
    problem.textContent = '';
    join.disabled = true;
    join.textContent = 'Joining…';
    // The link of the page leads here, and may be copied as soon as the call shows.
    const query = new URLSearchParams(location.search);
    query.set('room', entry.room);
    history.replaceState(null, '', `?${query.toString()}`);
    enter(entry)
      .then(() => {
        lobby.hidden = true;
      })
      .catch((error: unknown) => {
        problem.textContent = readable(error);
      })
      .finally(() => {
        join.disabled = false;
        join.textContent = 'Join';
      });
  };
}
