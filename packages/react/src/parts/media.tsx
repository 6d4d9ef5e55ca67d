'use client';
import type { PublishedTrack, RemoteTrack } from '@callplane/client-js';
import { useEffect, useRef } from 'react';

type Played = Pick<RemoteTrack | PublishedTrack, 'kind' | 'attach' | 'detach'>;

/**
 * Plays a track: a `<video>` for a camera or a screen, an `<audio>` for sound.
 * @param onPicture whether the element shows a picture of the track
 */
export function Media({
  track,
  hidden = false,
  onPicture,
}: {
  track: Played;
  hidden?: boolean;
  onPicture?: ((isShown: boolean) => void) | undefined;
}) {
  const ref = useRef<HTMLVideoElement & HTMLAudioElement>(null);
  // Both stay the same while the track is published.
  const { kind, attach, detach } = track;
  useEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    attach(element);
    return () => {
      detach(element);
      onPicture?.(false);
    };
  }, [attach, detach, onPicture]);
  if (kind === 'audio') return <audio ref={ref} hidden={hidden} />;
  return (
    <video
      ref={ref}
      className="cp-video"
      aria-hidden="true"
      onLoadedData={() => onPicture?.(true)}
      onEmptied={() => onPicture?.(false)}
    />
  );
}
