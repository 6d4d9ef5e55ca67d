import { connect, type CloseInfo, type ConnectionState } from '@callplane/client-js';
import { announce } from './announce.js';
import { askForToken, signalingUrl } from './backend.js';
import { Chat } from './chat.js';
import { button, element } from './elements.js';
import { Grid } from './grid.js';
import type { Entry } from './lobby.js';
import { listenForShortcuts } from './shortcuts.js';
import { showStatistics } from './statistics.js';
import { Toolbar } from './toolbar.js';

const STATES: Record<ConnectionState, string> = {
  connecting: 'Connecting',
  connected: 'Connected',
  reconnecting: 'Reconnecting…',
  closed: 'Ended',
};

/** Joins and shows the call; `onEnd` is called once it is over. */
export async function enterCall(entry: Entry, onEnd: (close: CloseInfo) => void): Promise<void> {
  const { token, roomId } = await askForToken(entry.room, entry.name);
  const relayOnly = new URLSearchParams(location.search).get('relay') === 'only';
  const call = await connect({ url: signalingUrl(), token, ...(relayOnly ? { iceTransportPolicy: 'relay' } : {}) });

  const page = element('call', HTMLDivElement);
  element('room-id', HTMLElement).textContent = roomId;
  page.hidden = false;
  const grid = new Grid(call, entry.name);
  const chat = new Chat(call);
  const toolbar = new Toolbar({ call, onChange: () => grid.showOwn(), onProblem: (text) => showBanner(text) });
  const stopStatistics = showStatistics(call);
  const help = element('help', HTMLDialogElement);
  const leave = () => void call.leave();
  const stopShortcuts = listenForShortcuts({
    m: () => button('toggle-audio').click(),
    v: () => button('toggle-video').click(),
    s: () => button('toggle-screen').click(),
    c: () => chat.toggle(),
    l: leave,
    '?': () => help.showModal(),
  });
  button('leave').onclick = leave;
  button('toggle-chat').onclick = () => chat.toggle();
  button('show-help').onclick = () => help.showModal();
  button('copy-link').onclick = () => {
    navigator.clipboard.writeText(location.href).then(
      () => announce('Link copied'),
      () => showBanner(`Copy it from here: ${location.href}`),
    );
  };

  showState(call.state);
  showMedia(call.mediaState);
  call.on('state', showState);
  call.on('mediaState', showMedia);
  call.on('problem', ({ message }) => showBanner(message));
  call.on('participantJoined', ({ name }) => announce(`${name} joined`));
  call.on('participantLeft', ({ name }) => announce(`${name} left`));
  call.on('trackPublished', ({ source, participant }) => {
    if (source === 'screen') announce(`${participant.name} shares a screen`);
  });
  call.on('closed', (close) => {
    stopStatistics();
    stopShortcuts();
    help.close();
    chat.close();
    grid.clear();
    page.hidden = true;
    showBanner('');
    onEnd(close);
  });
  button('toggle-audio').focus();
  announce(`You joined. ${call.participants.size} others are here.`);
  // Not waited for: without a camera, or without its permission, one can still watch and listen.
  if (call.mediaState === 'up') void toolbar.begin(entry.audio, entry.video);
}

function showState(state: ConnectionState): void {
  const shown = element('state', HTMLElement);
  shown.dataset['state'] = state;
  shown.textContent = STATES[state];
}

function showMedia(state: 'up' | 'down'): void {
  showBanner(
    state === 'up'
      ? ''
      : 'No media server can be reached (media_unavailable): there is no sound and no picture for now.',
  );
}

function showBanner(text: string): void {
  const banner = element('banner', HTMLParagraphElement);
  banner.textContent = text;
  banner.hidden = text === '';
}
