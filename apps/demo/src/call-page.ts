import { type Call, type CloseInfo, connect, type ConnectionState, type RemoteTrack } from '@callplane/client-js';
import { announce, button, element, input, make, Panel, readable } from './elements.js';
import type { Entry } from './lobby.js';
import { RosterPages, showPeople } from './people.js';
import { openSettings } from './settings.js';
import { Stage, showStatistics } from './stage.js';
import { Toolbar } from './toolbar.js';

const TOKEN_WITHIN_MS = 10_000;

export async function enterCall(entry: Entry, onEnd: (close: CloseInfo) => void): Promise<void> {
  const token = await askForToken(entry.room, entry.name);
  const relayOnly = new URLSearchParams(location.search).get('relay') === 'only';
  const url = `${location.origin.replace(/^http/, 'ws')}/v1/signaling`;
  const call = await connect({ url, token, ...(relayOnly ? { iceTransportPolicy: 'relay' } : {}) });

  const page = element('call', HTMLDivElement);
  element('room-name', HTMLElement).textContent = call.room.name;
  page.hidden = false;
  const rosterPages = new RosterPages(call);
  const onProblem = showState(call);
  const stage = new Stage(call, entry.name, rosterPages);
  const silence = playSound(call);
  const chat = openChat(call);
  const people = showPeople(call, entry.name, rosterPages);
  const toolbar = new Toolbar(call, onProblem);
  const closeSettings = openSettings(call, onProblem);
  const stopStatistics = showStatistics(call);
  const stopControls = listenForControls(call, onProblem);

  announceOthers(call);
  showRecording(call);
  call.on('problem', (error) => onProblem(readable(error)));
  call.on('closed', (close) => {
    stopStatistics();
    stopControls();
    silence();
    closeSettings();
    chat.close();
    people.close();
    stage.clear();
    page.hidden = true;
    onEnd(close);
  });
  button('toggle-audio').focus();
  const recorded = call.recordingSince === null ? '' : ' The call is recorded.';
  announce(`You joined. ${call.participantCount - 1} others are here.${recorded}`);
  // Not awaited: without a camera, or without permission to use it, the user can still watch and listen.
  void toolbar.begin(await entry.devices());
}

/** Buttons and shortcuts outside the toolbar's devices. @returns a function that removes the shortcuts. */
function listenForControls(call: Call, onProblem: (text: string) => void): () => void {
  const help = element('help', HTMLDialogElement);
  button('leave').onclick = () => void call.leave();
  button('show-help').onclick = () => help.showModal();
  button('copy-link').onclick = () => {
    navigator.clipboard.writeText(location.href).then(
      () => announce('Link copied'),
      () => onProblem(`Copy the link from here: ${location.href}`),
    );
  };
  const onKey = (event: KeyboardEvent) => pressByShortcut(event, help);
  document.addEventListener('keydown', onKey);
  return () => {
    document.removeEventListener('keydown', onKey);
    help.close();
  };
}

function announceOthers(call: Call): void {
  // In a large room the list also changes when the page of the roster changes.
  const announceSmall = (text: string) => {
    if (!call.isRosterPaged) announce(text);
  };
  call.on('participantJoined', ({ name }) => announceSmall(`${name} joined`));
  call.on('participantLeft', ({ name }) => announceSmall(`${name} left`));
  call.on('trackPublished', ({ source, participantId }) => {
    if (source === 'screen') announce(`${call.participants.get(participantId)?.name} shares a screen`);
  });
}

function showRecording(call: Call): void {
  const show = (since: string | null) => {
    const badge = element('recording', HTMLElement);
    badge.hidden = since === null;
    if (since !== null) badge.title = `Since ${new Date(since).toLocaleTimeString()}`;
  };
  show(call.recordingSince);
  call.on('recordingChanged', (since) => {
    show(since);
    announce(since === null ? 'The recording has ended' : 'The call is recorded from now on');
  });
}

/** Presses the button whose shortcut is typed, unless the user writes, or has switched shortcuts off. */
function pressByShortcut(event: KeyboardEvent, help: HTMLDialogElement): void {
  const writes = event.target instanceof HTMLInputElement && event.target.type !== 'checkbox';
  if (writes || event.ctrlKey || event.altKey || event.metaKey || event.repeat || help.open) return;
  if (!input('use-shortcuts').checked) return;
  const key = CSS.escape(event.key.toLowerCase());
  const pressed = document.querySelector<HTMLButtonElement>(`button[aria-keyshortcuts="${key}"]`);
  if (pressed === null) return;
  event.preventDefault();
  pressed.click();
}

/** Plays the others' microphones and the sound of their screens. Asks for a click if the browser demands one. */
function playSound(call: Call): () => void {
  const sounds = element('sounds', HTMLDivElement);
  const notice = element('sound-blocked', HTMLElement);
  const play = (track: RemoteTrack) => {
    if (track.kind === 'audio') sounds.append(track.attach());
  };
  const stop = (track: RemoteTrack) => {
    if (track.kind === 'audio') for (const sound of track.detach()) sound.remove();
  };
  for (const { tracks } of call.participants.values()) for (const track of tracks.values()) play(track);
  call.on('trackPublished', play);
  // The call detaches it after this event.
  call.on('trackUnpublished', stop);
  const showNotice = () => (notice.hidden = !call.isAudioBlocked);
  showNotice();
  const stopNotice = call.subscribe(showNotice);
  button('start-audio').onclick = () => void call.startAudio().catch(() => undefined);
  return () => {
    stopNotice();
    sounds.replaceChildren();
    notice.hidden = true;
  };
}

const STATES: Record<ConnectionState, string> = {
  connecting: 'Connecting',
  connected: 'Connected',
  reconnecting: 'Reconnecting…',
  closed: 'Ended',
};
const AWAY = 'The connection is interrupted. Reconnecting… Picture, sound or chat may wait.';
const NO_MEDIA =
  'Audio and video are not available at the moment (media_unavailable). The call and the chat continue without them.';

/**
 * Shows the state of the connection, and one line of text about a problem.
 * @returns shows a problem until the next one; an empty text removes it
 */
function showState(call: Call): (text: string) => void {
  let problem = '';
  const render = () => {
    const { state, mediaState } = call;
    const shown = element('state', HTMLElement);
    shown.dataset['state'] = state;
    shown.textContent = STATES[state];
    element('call', HTMLDivElement).dataset['state'] = state;
    const banner = element('banner', HTMLParagraphElement);
    banner.textContent = state === 'reconnecting' ? AWAY : mediaState === 'down' ? NO_MEDIA : problem;
    banner.hidden = banner.textContent === '';
  };
  const show = (text: string) => {
    problem = text;
    render();
  };
  // A new connection may have solved it.
  call.on('state', (state) => show(state === 'connected' ? '' : problem));
  call.subscribe(render);
  render();
  return show;
}

/** Plays the part of a product's own backend: creates the room if it does not exist, and issues a token. */
async function askForToken(room: string, name: string): Promise<string> {
  let response: Response;
  try {
    response = await fetch(`${import.meta.env.BASE_URL}api/join`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ room, name }),
      signal: AbortSignal.timeout(TOKEN_WITHIN_MS),
    });
  } catch {
    throw new Error('The server does not answer. Check your connection, and try again in a moment.');
  }
  const body = (await response.json().catch(() => ({}))) as { token: string; error?: { message: string } };
  if (response.status >= 502) throw new Error('The server is starting or away. Try again in a moment.');
  if (!response.ok) throw new Error(body.error?.message ?? `The demo's backend answered ${response.status}.`);
  return body.token;
}

/** Chat messages to all participants, over signaling. */
function openChat(call: Call): Panel {
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
