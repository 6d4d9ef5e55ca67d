'use client';
import type { Participant } from '@callplane/client-js';
import { memo, useEffect } from 'react';
import { useCallState } from '../context.js';
import { useEncryption, useParticipant, useParticipants, useRosterPages } from '../hooks.js';
import { useTexts } from '../texts.js';
import { Panel } from './panel.js';

const idOf = ({ participantId }: Participant) => participantId;

/**
 * Who is here: everyone in a small room; in a large one a page of the publishers, and how many only watch. In an encrypted
 * call, the digits to compare.
 */
export function People() {
  const texts = useTexts();
  const [own, viewerCount] = useCallState((now) => [now.participant?.name ?? '', now.viewerCount] as const);
  const ids = useParticipants(idOf);
  const { participants, isPaged, hasNext, next } = useRosterPages();
  const encryption = useEncryption();
  useEffect(() => {
    if (isPaged && participants.length === 0) void next();
  }, [isPaged, participants.length, next]);
  return (
    <Panel name="people" title={texts.people}>
      <ul className="cp-list" tabIndex={0} aria-label={texts.people}>
        {!isPaged && <li className="cp-row">{texts.you(own)}</li>}
        {isPaged
          ? participants.map(({ participantId, name }) => <Person key={participantId} id={participantId} name={name} />)
          : ids.map((id) => <Person key={id} id={id} />)}
      </ul>
      {isPaged && (
        <>
          <p>{texts.watching(viewerCount)}</p>
          <button type="button" className="cp-button" onClick={() => void next()}>
            {hasNext ? texts.next : texts.firstPage}
          </button>
        </>
      )}
      {encryption !== undefined && (
        <p>
          {texts.encrypted}. {texts.encryptedAs(encryption.fingerprint)}
        </p>
      )}
    </Panel>
  );
}

/** @param name as of the page of the roster; the call knows the present name of each participant that it shows */
const Person = memo(function Person({ id, name }: { id: string; name?: string }) {
  const texts = useTexts();
  const participant = useParticipant(id);
  const tracks = [...(participant?.tracks.values() ?? [])].filter(({ muted }) => !muted);
  const note =
    participant?.connected === false
      ? [texts.reconnecting]
      : tracks.some(({ isUndecryptable }) => isUndecryptable)
        ? [texts.undecryptable]
        : tracks.map(({ source }) => texts.sources[source]);
  return (
    <li className="cp-row">
      <span>{participant?.name ?? name}</span>
      <small>{note.join(', ')}</small>
    </li>
  );
});
