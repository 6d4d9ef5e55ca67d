'use client';
import { type ReactNode, useMemo, useState } from 'react';
import { useCall, useCallState } from '../context.js';
import { useConnectionState, useEncryption, useRecording, useWaiting } from '../hooks.js';
import { CallProvider, type CallProviderProps } from '../provider.js';
import { readableCode, type Texts, TEXTS, TextsContext, useTexts } from '../texts.js';
import { Announcer } from './announcer.js';
import { ConnectionBanner } from './connection-banner.js';
import { Chat } from './chat.js';
import { ControlBar } from './control-bar.js';
import { People } from './people.js';
import { Stage } from './stage.js';
import { classes, UiContext, useNewUi, useUi } from './ui.js';

export interface CallProps extends CallProviderProps {
  /** Replaces texts of the components. */
  texts?: Partial<Texts> | undefined;
  className?: string | undefined;
  /** Whether the page around it has a main element and a heading of its own. */
  isEmbedded?: boolean | undefined;
  /** Default: header, body and control bar. */
  children?: ReactNode;
}

/** A whole call. It fills its parent, which needs a height. Without `onEnd`, it shows why the call is over. */
export function Call({ children, texts, className, isEmbedded = false, ...provider }: CallProps) {
  const [attempt, setAttempt] = useState(0);
  const all = useMemo(() => ({ ...TEXTS, ...texts }), [texts]);
  const { tracks = [] } = provider;
  const begins = (source: string) => tracks.some((track) => track.source === source);
  // The first attempt has closed the tracks of the preview.
  const again = {
    tracks: [],
    audio: provider.audio ?? begins('microphone'),
    video: provider.video ?? begins('camera'),
  };
  return (
    <TextsContext.Provider value={all}>
      <CallProvider key={attempt} {...provider} {...(attempt > 0 ? again : {})}>
        <Frame className={className} isEmbedded={isEmbedded} onJoinAgain={() => setAttempt(attempt + 1)}>
          {children ?? (
            <>
              <CallHeader />
              <CallBody />
              <ControlBar />
            </>
          )}
        </Frame>
      </CallProvider>
    </TextsContext.Provider>
  );
}

function Frame({
  className,
  isEmbedded,
  onJoinAgain,
  children,
}: Pick<CallProps, 'className' | 'children'> & { isEmbedded: boolean; onJoinAgain: () => void }) {
  const ui = useNewUi(isEmbedded);
  const Root = isEmbedded ? 'section' : 'main';
  const texts = useTexts();
  const call = useCall();
  const isWaiting = useWaiting();
  const { state, error, closeInfo } = useConnectionState();
  const end = error ?? (closeInfo && { code: closeInfo.reason, message: closeInfo.message });
  return (
    <UiContext.Provider value={ui}>
      <Root ref={ui.setRoot} className={classes('cp-call', className)} aria-label={texts.call} data-state={state}>
        {end !== undefined ? (
          <div className="cp-end">
            <p role="alert">{readableCode(texts, end)}</p>
            <button type="button" className="cp-button cp-primary" onClick={onJoinAgain}>
              {texts.joinAgain}
            </button>
          </div>
        ) : call === undefined || isWaiting ? (
          <Lobby />
        ) : (
          <>
            {children}
            <Announcer />
          </>
        )}
      </Root>
    </UiContext.Provider>
  );
}

/** Before the call. One live region, so that screen readers hear each step. */
function Lobby() {
  const texts = useTexts();
  const call = useCall();
  const { state } = useConnectionState();
  const [name, count] = useCallState(({ room, participantCount }) => [room?.name, participantCount] as const);
  const Heading = useUi().isEmbedded ? 'h2' : 'h1';
  return (
    <div className="cp-end">
      {name !== undefined && <Heading className="cp-room">{name}</Heading>}
      <p role="status">
        {call === undefined ? texts.connecting : state === 'reconnecting' ? texts.away : texts.waitingFor(count)}
      </p>
      {call !== undefined && (
        <button type="button" className="cp-button" onClick={() => void call.leave()}>
          {texts.leave}
        </button>
      )}
    </div>
  );
}

/** The name of the room, how many are in it, whether it is encrypted or recorded, and the state of the connection. */
export function CallHeader({ children }: { children?: ReactNode }) {
  const texts = useTexts();
  const [name, count] = useCallState(({ room, participantCount }) => [room?.name, participantCount] as const);
  const { isRecording, since } = useRecording();
  const { state } = useConnectionState();
  const encryption = useEncryption();
  const Heading = useUi().isEmbedded ? 'h2' : 'h1';
  return (
    <header className="cp-header">
      <Heading className="cp-room">{name}</Heading>
      <span className="cp-count">{texts.here(count)}</span>
      {encryption !== undefined && (
        <span className="cp-count" title={texts.encryptedAs(encryption.fingerprint)}>
          {texts.encrypted}
        </span>
      )}
      {isRecording && (
        <span className="cp-recording" title={since?.toLocaleTimeString()}>
          {texts.recording}
        </span>
      )}
      {children}
      <span className="cp-state" role="status">
        {state === 'closed' ? texts.ended : texts[state]}
      </span>
    </header>
  );
}

/** The stage with the open panel beside it, and the banner above. */
export function CallBody() {
  const { panel } = useUi();
  return (
    <div className="cp-body">
      <div className="cp-main">
        <ConnectionBanner />
        <Stage />
      </div>
      {panel === 'chat' && <Chat />}
      {panel === 'people' && <People />}
    </div>
  );
}
