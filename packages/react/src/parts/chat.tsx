'use client';
import { type SubmitEvent, useEffect, useRef, useState } from 'react';
import type { Message } from '../companion.js';
import { useMessages } from '../hooks.js';
import { readable, useTexts } from '../texts.js';
import { Panel } from './panel.js';

/** Messages of the form `{ text }`, from and to everybody. */
export function Chat() {
  const texts = useTexts();
  const { messages, maySend, send } = useMessages();
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.lastElementChild?.scrollIntoView({ block: 'end' });
  }, [messages]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const message = text.trim();
    if (message === '') return;
    setProblem('');
    send({ text: message }).then(
      () => setText(''),
      (error: unknown) => setProblem(texts.notSent(readable(texts, error))),
    );
  };
  return (
    <Panel name="chat" title={texts.chat}>
      <div ref={list} className="cp-messages" tabIndex={0} role="log" aria-label={texts.messages}>
        {messages.map((message) => (
          <Line key={message.id} message={message} />
        ))}
      </div>
      {problem !== '' && (
        <p className="cp-problem" role="alert">
          {problem}
        </p>
      )}
      <form className="cp-row" onSubmit={submit}>
        <input
          className="cp-input"
          aria-label={texts.message}
          placeholder={texts.message}
          autoComplete="off"
          maxLength={2000}
          disabled={!maySend}
          data-first=""
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" className="cp-button" disabled={!maySend}>
          {texts.send}
        </button>
      </form>
    </Panel>
  );
}

function Line({ message }: { message: Message }) {
  const texts = useTexts();
  const text = textOf(message);
  if (text === undefined) return null;
  const { isOwn, isFromServer, name, sentAt } = message;
  return (
    <div className="cp-message" data-own={isOwn || undefined}>
      <b className="cp-sender">
        {isOwn ? texts.yourName : isFromServer ? texts.server : (name ?? texts.someone)}{' '}
        <time dateTime={sentAt.toISOString()}>
          {sentAt.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}
        </time>
      </b>
      <p dir="auto">{text}</p>
    </div>
  );
}

/** The text of a message of the chat; undefined for other data. */
export function textOf({ data }: Pick<Message, 'data'>): string | undefined {
  const isChat = typeof data === 'object' && data !== null && 'text' in data && typeof data.text === 'string';
  return isChat ? (data.text as string) : undefined;
}

/** The id of the newest message that was shown. */
export function useReadUntil(isShown: boolean): number {
  const { messages } = useMessages();
  const [readUntil, setReadUntil] = useState(0);
  const newest = messages.at(-1)?.id ?? 0;
  useEffect(() => {
    if (isShown) setReadUntil(newest);
  }, [isShown, newest]);
  return readUntil;
}
