import { connect } from '@callplane/client-js';

/** Joins a room that may have a lobby. `show` gets a line for the user. */
export async function enter(url: string, token: string, show: (text: string) => void) {
  const call = await connect({ url, token });
  const begin = () => {
    show(`You are in ${call.room.name}.`);
    call.publish({ audio: true, video: true }).catch((error: unknown) => show(String(error)));
  };
  if (call.state === 'waiting') {
    show(`${call.room.name} has ${call.participantCount} people. Somebody lets you in soon.`);
    call.on('admitted', begin);
  } else begin();
  call.on('closed', ({ message }) => show(message));
  return call;
}
