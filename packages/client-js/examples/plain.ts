import { CallplaneError, connect, createLocalTracks } from '@callplane/client-js';

/** Joins, plays everyone in `place`, and publishes the devices that the user has. */
export async function enterRoom(url: string, token: string, place: HTMLElement) {
  const preview = await createLocalTracks({ audio: true, video: true }).catch((error: unknown) => {
    // Without camera or microphone, the user can still watch and listen.
    if (error instanceof CallplaneError && error.code.startsWith('device_')) return [];
    throw error;
  });
  const call = await connect({ url, token });
  call.on('trackSubscribed', (track) => place.append(track.attach()));
  call.on('trackUnsubscribed', (track) => track.detach().forEach((element) => element.remove()));
  call.on('audioPlaybackBlocked', () => addEventListener('click', () => void call.startAudio(), { once: true }));
  await call.publish(preview);
  return call;
}
