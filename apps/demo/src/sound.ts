import type { Call, RemoteTrack } from '@callplane/client-js';
import { button, element } from './elements.js';

/** Plays the others' microphones and the sound of their screens. Asks for a click if the browser demands one. */
export function playSound(call: Call): () => void {
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
  notice.hidden = true;
  call.on('audioPlaybackBlocked', () => (notice.hidden = false));
  call.on('audioPlaybackStarted', () => (notice.hidden = true));
  button('start-audio').onclick = () => void call.startAudio().catch(() => undefined);
  return () => {
    sounds.replaceChildren();
    notice.hidden = true;
  };
}
