import type { Call, TrackReference } from '@callplane/client-js';
import { useEffect, useRef } from 'react';

/** Videos that a call receives by itself. Of more, the page chooses. */
const VIDEOS_MAX = 25;

/**
 * Receives the videos that a stage shows. The SDK pauses a picture that is out of view; a picture that has no element,
 * as on another page, would be received in full.
 * @param shownKeys the keys of the tiles, with a space between them
 */
export function useReception(call: Call | undefined, shownKeys: string): void {
  /** Whether the stage has asked for a track, or has refused it. */
  const asked = useRef(new Map<string, { track: TrackReference; isShown: boolean }>());
  useEffect(() => {
    if (call === undefined) return undefined;
    const shown = new Set(shownKeys.split(' '));
    const align = () => {
      const changes = changesOf(call, shown, asked.current);
      for (const isShown of [true, false]) {
        const tracks = changes.filter((one) => one.isShown === isShown).map(({ track }) => track);
        if (tracks.length === 0) continue;
        const request = isShown ? call.subscribeTracks(...tracks) : call.unsubscribeTracks(...tracks);
        request.catch(() => tracks.forEach((track) => asked.current.delete(keyOf(track))));
      }
    };
    align();
    return call.subscribe(align);
  }, [call, shownKeys]);
  useEffect(() => {
    const all = asked.current;
    return () => {
      // Another part of the page may show them.
      const refused = [...all.values()].filter(({ isShown }) => !isShown).map(({ track }) => track);
      all.clear();
      if (refused.length > 0 && call?.state === 'connected') call.subscribeTracks(...refused).catch(() => undefined);
    };
  }, [call]);
}

const keyOf = ({ participantId, trackId }: TrackReference) => `${participantId} ${trackId}`;

function changesOf(
  call: Call,
  shown: ReadonlySet<string>,
  asked: Map<string, { track: TrackReference; isShown: boolean }>,
): { track: TrackReference; isShown: boolean }[] {
  const videos = [...call.participants.values()].flatMap(({ tracks }) =>
    [...tracks.values()].filter(({ kind }) => kind === 'video'),
  );
  const present = new Set(videos.map(keyOf));
  for (const key of asked.keys()) if (!present.has(key)) asked.delete(key);
  // Of a larger number, nobody has said which ones the call receives: the stage asks for each, or refuses it.
  const isReceived = videos.length <= VIDEOS_MAX;
  return videos.flatMap(({ participantId, trackId, source }) => {
    const track = { participantId, trackId };
    const isShown = shown.has(source === 'screen' ? `${participantId}/screen` : participantId);
    if ((asked.get(keyOf(track))?.isShown ?? (isReceived || !isShown)) === isShown) return [];
    const change = { track, isShown };
    asked.set(keyOf(track), change);
    return [change];
  });
}
