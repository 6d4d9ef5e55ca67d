import { connect, type Call, type CloseInfo } from '@callplane/client-js';
import { announce } from './announce.js';
import { askForToken, signalingUrl } from './backend.js';
import { Banner } from './banner.js';
import { Chat } from './chat.js';
import { button, element } from './elements.js';
import type { Entry } from './lobby.js';
import { People } from './people.js';
import { readable } from './problems.js';
import { RosterPages } from './roster-pages.js';
import { openSettings } from './settings.js';
import { listenForShortcuts } from './shortcuts.js';
import { playSound } from './sound.js';
import { Stage } from './stage.js';
import { showStatistics } from './statistics.js';
import { Toolbar } from './toolbar.js';

/** Joins and shows the call; calls `onEnd` once it is over. */
export async function enterCall(entry: Entry, onEnd: (close: CloseInfo) => void): Promise<void> {
  const { token } = await askForToken(entry.room, entry.name);
  const relayOnly = new URLSearchParams(location.search).get('relay') === 'only';
  const call = await connect({ url: signalingUrl(), token, ...(relayOnly ? { iceTransportPolicy: 'relay' } : {}) });

  const page = element('call', HTMLDivElement);
  element('room-name', HTMLElement).textContent = call.room.name;
  page.hidden = false;
  const rosterPages = new RosterPages(call);
  const banner = new Banner(call);
  const stage = new Stage(call, entry.name, rosterPages);
  const silence = playSound(call);
  const chat = new Chat(call);
  const people = new People(call, entry.name, rosterPages, () => chat.close());
  const onProblem = (text: string) => banner.show(text);
  const toolbar = new Toolbar({ call, onProblem });
  const settings = openSettings(call, onProblem);
  const stopStatistics = showStatistics(call);
  const stopControls = listenForControls(call, chat, people, onProblem);

  announceOthers(call);
  call.on('problem', (error) => banner.show(readable(error)));
  call.on('closed', (close) => {
    stopStatistics();
    stopControls();
    silence();
    settings.close();
    chat.close();
    people.close();
    stage.clear();
    page.hidden = true;
    onEnd(close);
  });
  button('toggle-audio').focus();
  announce(`You joined. ${call.participantCount - 1} others are here.`);
  // Not awaited: without a camera, or without permission to use it, the user can still watch and listen.
  void toolbar.begin(await entry.devices());
}

/** Buttons and shortcuts outside the toolbar's devices. @returns a function that removes the shortcuts. */
function listenForControls(call: Call, chat: Chat, people: People, onProblem: (text: string) => void): () => void {
  const help = element('help', HTMLDialogElement);
  const leave = () => void call.leave();
  // Both panels have the same place.
  const toggleChat = () => {
    people.close();
    chat.toggle();
  };
  button('leave').onclick = leave;
  button('toggle-chat').onclick = toggleChat;
  button('show-help').onclick = () => help.showModal();
  button('copy-link').onclick = () => {
    navigator.clipboard.writeText(location.href).then(
      () => announce('Link copied'),
      () => onProblem(`Copy the link from here: ${location.href}`),
    );
  };
  const stop = listenForShortcuts({
    m: () => button('toggle-audio').click(),
    v: () => button('toggle-video').click(),
    s: () => button('toggle-screen').click(),
    c: () => toggleChat(),
    p: () => people.toggle(),
    l: leave,
    '?': () => help.showModal(),
  });
  return () => {
    stop();
    help.close();
  };
}

function announceOthers(call: Call): void {
  // In a large room the list changes with what is shown, and not only with who comes and goes.
  const announceSmall = (text: string) => {
    if (!call.isRosterPaged) announce(text);
  };
  call.on('participantJoined', ({ name }) => announceSmall(`${name} joined`));
  call.on('participantLeft', ({ name }) => announceSmall(`${name} left`));
  call.on('trackPublished', ({ source, participant }) => {
    if (source === 'screen') announce(`${participant.name} shares a screen`);
  });
}
