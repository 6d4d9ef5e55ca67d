import { connect } from '@callplane/client-js';

/** Joins with a token that permits `audio:publish` and `video:publish`, plays everyone, and publishes both. */
export async function firstCall(url: string, token: string) {
  const call = await connect({ url, token });
  call.on('trackSubscribed', (track) => document.body.append(track.attach()));
  call.on('trackUnsubscribed', (track) => track.detach().forEach((element) => element.remove()));
  call.on('audioPlaybackBlocked', () => addEventListener('click', () => void call.startAudio(), { once: true }));
  call.on('participantLeft', ({ name }) => console.log(`${name} left`));
  call.on('closed', ({ reason, canRejoin }) => console.log(`The call is over: ${reason}`, { canRejoin }));
  const { failed } = await call.publish({ audio: true, video: true });
  for (const { source, message } of failed) console.warn(`Without ${source}: ${message}`);
  return call;
}
