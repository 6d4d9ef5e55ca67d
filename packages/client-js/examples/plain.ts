import { CallplaneError, connect, createLocalTracks } from '@callplane/client-js';

/** Joins, plays everyone in `place`, and publishes the devices that the user has. */
export async function enterRoom(url: string, token: string, place: HTMLElement) {
  const { tracks, failed } = await createLocalTracks({ audio: true, video: true }).catch((error: unknown) => {
    // With neither camera nor microphone, the user can still watch and listen.
    if (error instanceof CallplaneError && error.code.startsWith('device_')) return { tracks: [], failed: [] };
    throw error;
  });
  for (const { source, message } of failed) console.warn(`Without ${source}: ${message}`);
  const call = await connect({ url, token });
  call.on('trackSubscribed', (track) => place.append(track.attach()));
  call.on('trackUnsubscribed', (track) => track.detach().forEach((element) => element.remove()));
  call.on('audioPlaybackBlocked', () => addEventListener('click', () => void call.startAudio(), { once: true }));
  await call.publish(tracks);
  return call;
}
