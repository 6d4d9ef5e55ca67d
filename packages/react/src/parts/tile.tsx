'use client';
import { memo, type ReactNode, useCallback, useState } from 'react';
import { useCallState } from '../context.js';
import { trackOf } from '../local-media.js';
import { useTexts } from '../texts.js';
import { Icon } from './icons.js';
import { Media } from './media.js';

export interface TileProps {
  /** Default: you. */
  participantId?: string | undefined;
  source?: 'camera' | 'screen' | undefined;
  isStaged?: boolean | undefined;
  /** Shows a button that puts the tile on the stage, or takes it off. */
  onPin?: (() => void) | undefined;
  /** More parts of the tile, above its picture. */
  children?: ReactNode;
}

/** A participant's camera, or a shared screen: picture or initial, name, microphone, quality, and who speaks. */
export const Tile = memo(function Tile({
  participantId,
  source = 'camera',
  isStaged = false,
  onPin,
  children,
}: TileProps) {
  const texts = useTexts();
  const isOwn = participantId === undefined;
  const [name = '', attach, detach, isPaused, isMuted, quality, isConnected, isSpeaking, isUndecryptable] =
    useCallState((now) => {
      const person = isOwn ? undefined : now.participants.get(participantId);
      const tracks = isOwn ? now.tracks : person?.tracks;
      const shown = tracks && trackOf<NonNullable<ReturnType<typeof tracks.get>>>(tracks, source);
      const video = shown?.muted === false ? shown : undefined;
      return [
        isOwn ? now.participant?.name : person?.name,
        video?.attach,
        video?.detach,
        video !== undefined && 'quality' in video && video.quality === 'paused',
        tracks === undefined ||
          trackOf<NonNullable<ReturnType<typeof tracks.get>>>(tracks, 'microphone')?.muted !== false,
        isOwn ? now.connectionQuality : person?.connectionQuality,
        isOwn || person?.connected !== false,
        source === 'camera' && person?.isSpeaking === true,
        [...(person?.tracks.values() ?? [])].some((track) => track.isUndecryptable),
      ] as const;
    });
  const [hasPicture, setPicture] = useState(false);
  const onPicture = useCallback((isShown: boolean) => setPicture(isShown), []);
  const isScreen = source === 'screen';
  const label = isScreen ? (isOwn ? texts.yourScreen : texts.screenOf(name)) : isOwn ? texts.you(name) : name;
  const remarks = [
    ...(isConnected ? [] : [texts.reconnecting]),
    ...(isPaused ? [texts.paused] : []),
    ...(isUndecryptable ? [texts.undecryptable] : []),
    ...(quality === undefined || isScreen ? [] : [texts.qualities[quality]]),
  ].filter((remark) => remark !== '');
  const pinText = isStaged ? texts.takeOff(label) : texts.enlarge(label);
  return (
    <div
      className="cp-tile"
      data-source={source}
      data-own={isOwn || undefined}
      data-dark={!hasPicture || undefined}
      data-speaking={isSpeaking || undefined}
      data-away={!isConnected || isPaused || undefined}
      data-staged={isStaged || undefined}
    >
      {attach !== undefined && detach !== undefined && (
        <Media track={{ kind: 'video', attach, detach }} onPicture={onPicture} />
      )}
      {!hasPicture && (
        <span className="cp-initial" aria-hidden="true">
          {isScreen ? <Icon name="screen" /> : (/\p{L}|\p{N}/u.exec(name)?.[0] ?? '?').toUpperCase()}
        </span>
      )}
      <p className="cp-label">
        {isMuted && !isScreen && <Icon name="microphone-off" />}
        <span className="cp-name" dir="auto">
          {label}
        </span>
        {isMuted && !isScreen && <span className="cp-hidden">, {texts.muted}</span>}
        {remarks.length > 0 && <span className="cp-remark">{remarks.join(' · ')}</span>}
      </p>
      {onPin !== undefined && (
        <button
          type="button"
          className="cp-pin"
          title={pinText}
          aria-label={pinText}
          aria-pressed={isStaged}
          onClick={onPin}
        >
          <Icon name="enlarge" />
        </button>
      )}
      {children}
    </div>
  );
});
