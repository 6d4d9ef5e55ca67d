'use client';
import type { Call } from '@callplane/client-js';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useCall } from '../context.js';
import { useTexts } from '../texts.js';
import { textOf } from './chat.js';
import { useUi } from './ui.js';

const SHOWN_MAX = 5;

/** Tells users of screen readers what others see: joins, leaves, shared screens, messages, and the recording. */
export function Announcer() {
  const call = useCall();
  const texts = useTexts();
  const [lines, setLines] = useState<readonly { id: number; text: string }[]>([]);
  const greeted = useRef<Call>(undefined);
  const isChatOpen = useUi().panel === 'chat';
  const say = useCallback(
    (text: string) => setLines((before) => [...before, { id: (before.at(-1)?.id ?? 0) + 1, text }].slice(-SHOWN_MAX)),
    [],
  );
  useEffect(() => {
    if (call === undefined || greeted.current === call) return;
    greeted.current = call;
    const recorded = call.recordingSince === null ? '' : ` ${texts.recorded}`;
    say(texts.joined(call.participantCount - 1) + recorded);
  }, [call, texts, say]);
  useEffect(() => {
    if (call === undefined) return undefined;
    // In a large room the list also changes when the page of the roster changes.
    const saySmall = (text: string) => {
      if (!call.isRosterPaged) say(text);
    };
    const stops = [
      call.on('participantJoined', ({ name }) => saySmall(texts.joinedOther(name))),
      call.on('participantLeft', ({ name }) => saySmall(texts.leftOther(name))),
      call.on('trackPublished', ({ source, participantId }) => {
        const name = call.participants.get(participantId)?.name;
        if (source === 'screen' && name !== undefined) say(texts.shares(name));
      }),
      call.on('message', ({ isFromServer, participant, data }) => {
        const text = isChatOpen ? undefined : textOf({ data });
        const name = isFromServer ? texts.server : (participant?.name ?? texts.someone);
        if (text !== undefined) say(texts.messageFrom(name, text));
      }),
      call.on('recordingChanged', (since) => say(since === null ? texts.recordingEnded : texts.recordingStarted)),
    ];
    return () => stops.forEach((stop) => stop());
  }, [call, texts, say, isChatOpen]);
  return (
    <div className="cp-hidden" aria-live="polite">
      {lines.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}
