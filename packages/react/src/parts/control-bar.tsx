'use client';
import { type ReactNode, useCallback, useEffect, useRef } from 'react';
import { useCall } from '../context.js';
import { useMessages } from '../hooks.js';
import { type LocalSource, useLocalMedia } from '../local-media.js';
import { useTexts } from '../texts.js';
import { BarButton } from './bar-button.js';
import { textOf, useReadUntil } from './chat.js';
import { SettingsButton } from './settings.js';
import { type PanelName, useUi } from './ui.js';

/** Buttons for microphone, camera, screen, panels, settings, and to leave. `children` replaces them. */
export function ControlBar({ children }: { children?: ReactNode }) {
  const texts = useTexts();
  const ref = useRef<HTMLDivElement>(null);
  const { hasShortcuts } = useUi();
  useEffect(() => {
    // The button that opened the call is gone.
    if (document.activeElement === document.body) ref.current?.querySelector('button')?.focus();
  }, []);
  useEffect(() => {
    if (!hasShortcuts) return undefined;
    const onKey = (event: KeyboardEvent) => ref.current && pressByShortcut(event, ref.current);
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [hasShortcuts]);
  return (
    <div ref={ref} className="cp-bar" role="group" aria-label={texts.call}>
      {children ?? (
        <>
          <SourceButton source="microphone" />
          <SourceButton source="camera" />
          <SourceButton source="screen" />
          <PanelButton panel="chat" />
          <PanelButton panel="people" />
          <SettingsButton />
          <LeaveButton />
        </>
      )}
    </div>
  );
}

/** Presses the button whose shortcut is typed, unless the user writes, or a dialog is open. */
function pressByShortcut(event: KeyboardEvent, bar: HTMLElement): void {
  const { target, ctrlKey, altKey, metaKey, repeat, key } = event;
  const writes =
    target instanceof HTMLElement && target.closest('input, select, textarea, [contenteditable], [role=dialog]');
  if (writes !== false && writes !== null) return;
  if (ctrlKey || altKey || metaKey || repeat) return;
  const button = bar.querySelector<HTMLButtonElement>(`button[aria-keyshortcuts="${CSS.escape(key.toLowerCase())}"]`);
  if (button === null) return;
  event.preventDefault();
  button.click();
}

const SHORTCUTS = { microphone: 'm', camera: 'v', screen: 's' } as const;

/** Switches the microphone, the camera or the share of a screen. Its label names the effect of a press. */
export function SourceButton({ source }: { source: LocalSource }) {
  const texts = useTexts();
  const { isOn, isPending, isAvailable, toggle } = useLocalMedia(source);
  const label = {
    microphone: isOn ? texts.mute : texts.unmute,
    camera: isOn ? texts.stopCamera : texts.startCamera,
    screen: isOn ? texts.stopShare : texts.share,
  }[source];
  return (
    <BarButton
      icon={source === 'screen' || isOn ? source : `${source}-off`}
      label={label}
      shortcut={SHORTCUTS[source]}
      data-source={source}
      data-off={source !== 'screen' && !isOn}
      aria-pressed={source === 'screen' ? isOn : undefined}
      aria-busy={isPending}
      disabled={!isAvailable}
      onClick={() => void toggle()}
    />
  );
}

/** Opens and closes the chat, or the list of people. */
export function PanelButton({ panel }: { panel: PanelName }) {
  const texts = useTexts();
  const ui = useUi();
  const isOpen = ui.panel === panel;
  return (
    <BarButton
      icon={panel}
      label={texts[panel]}
      shortcut={panel.charAt(0)}
      aria-expanded={isOpen}
      onClick={() => ui.setPanel(isOpen ? undefined : panel)}
    >
      {panel === 'chat' && <Unread isOpen={isOpen} />}
    </BarButton>
  );
}

function Unread({ isOpen }: { isOpen: boolean }) {
  const texts = useTexts();
  const { messages } = useMessages();
  const readUntil = useReadUntil(isOpen);
  const count = isOpen ? 0 : messages.filter((one) => one.id > readUntil && textOf(one) !== undefined).length;
  if (count === 0) return null;
  return (
    <b className="cp-unread" aria-label={texts.unread(count)} role="img">
      {count}
    </b>
  );
}

export function LeaveButton() {
  const texts = useTexts();
  const call = useCall();
  const leave = useCallback(() => void call?.leave(), [call]);
  return <BarButton icon="leave" label={texts.leave} shortcut="l" data-danger="" onClick={leave} />;
}
