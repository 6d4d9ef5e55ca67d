import { CallplaneError, isSupported, type LocalTrack } from '@callplane/client-js';
import {
  Call,
  CallBody,
  CallHeader,
  ControlBar,
  LeaveButton,
  PanelButton,
  PreJoin,
  readable,
  SettingsButton,
  SourceButton,
  TEXTS,
  useCallState,
} from '@callplane/react';
import '@callplane/react/styles.css';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { requestToken } from './backend.js';
import { Statistics } from './statistics.js';
import './style.css';

/** Moderate: a laptop encodes it and shows a full page of others. */
const CONSTRAINTS = { video: { width: { ideal: 640 }, height: { ideal: 360 }, frameRate: { ideal: 24 } } };
const URL_OF_GATEWAY = `${location.origin.replace(/^http/, 'ws')}/v1/signaling`;
const OPTIONS =
  new URLSearchParams(location.search).get('relay') === 'only' ? { iceTransportPolicy: 'relay' as const } : {};
const NAME_KEY = 'callplane-demo-name';

interface Entry {
  token: string;
  tracks: readonly LocalTrack[];
}

function Demo() {
  const [entry, setEntry] = useState<Entry>();
  const [problem, setProblem] = useState('');
  if (entry === undefined) return <Lobby problem={problem} onEntry={setEntry} />;
  const end = ({ code, message }: Pick<CallplaneError, 'code' | 'message'>) => {
    setProblem(code === 'left' ? '' : readable(TEXTS, new CallplaneError(code, message)));
    setEntry(undefined);
  };
  return (
    <Call
      {...entry}
      url={URL_OF_GATEWAY}
      constraints={CONSTRAINTS}
      options={OPTIONS}
      onError={end}
      onEnd={({ reason, message }) => end({ code: reason, message })}
    >
      <CallHeader>
        <CopyLink />
      </CallHeader>
      <CallBody />
      <ControlBar>
        <SourceButton source="microphone" />
        <SourceButton source="camera" />
        <SourceButton source="screen" />
        <PanelButton panel="chat" />
        <PanelButton panel="people" />
        <SettingsButton>
          <RoomId />
        </SettingsButton>
        <LeaveButton />
      </ControlBar>
      <Statistics />
    </Call>
  );
}

function Lobby({ problem, onEntry }: { problem: string; onEntry: (entry: Entry) => void }) {
  const query = new URLSearchParams(location.search);
  const join = async (tracks: readonly LocalTrack[], { name = '', room = '' }: Readonly<Record<string, string>>) => {
    localStorage.setItem(NAME_KEY, name);
    // The link of the page leads here, and may be copied as soon as the call shows.
    query.set('room', room);
    history.replaceState(null, '', `?${query.toString()}`);
    onEntry({ tracks, token: await requestToken(room.trim(), name.trim()) });
  };
  if (!isSupported())
    return <p role="alert">This browser cannot take part in calls. Use a current Chrome, Edge, Firefox or Safari.</p>;
  const title = (
    <>
      <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="40" height="40" /> Join a call
    </>
  );
  return (
    <main className="lobby">
      <PreJoin
        title={title}
        onJoin={join}
        connection={async ({ name = '', room = '' }) => ({
          url: URL_OF_GATEWAY,
          token: await requestToken(room.trim(), name.trim()),
        })}
        constraints={CONSTRAINTS}
        problem={problem}
      >
        <p>A demo of Callplane. Open it in a second tab, or send the link to another person.</p>
        <Field
          label="Your name"
          name="name"
          autoComplete="nickname"
          placeholder="Ada"
          value={localStorage.getItem(NAME_KEY) ?? ''}
        />
        <Field label="Room" name="room" autoComplete="off" placeholder="demo" value={query.get('room') ?? 'demo'} />
      </PreJoin>
    </main>
  );
}

interface FieldProps {
  label: string;
  name: string;
  autoComplete: string;
  placeholder: string;
  value: string;
}

function Field({ label, value, ...attributes }: FieldProps) {
  return (
    <label className="cp-field">
      <span>{label}</span>
      <input className="cp-input" required pattern=".*\S.*" maxLength={60} defaultValue={value} {...attributes} />
    </label>
  );
}

function CopyLink() {
  const [answer, setAnswer] = useState('');
  const copy = () =>
    navigator.clipboard.writeText(location.href).then(
      () => setAnswer('Link copied'),
      () => setAnswer(location.href),
    );
  return (
    <>
      <button type="button" className="cp-button" onClick={() => void copy()}>
        Copy link
      </button>
      <span role="status">{answer}</span>
    </>
  );
}

function RoomId() {
  const id = useCallState(({ room }) => room?.id);
  return (
    <p>
      For the API, this room is <code>{id}</code>
    </p>
  );
}

const place = document.body.appendChild(document.createElement('div'));
createRoot(place).render(
  <StrictMode>
    <Demo />
  </StrictMode>,
);
