import { createClient } from '@callplane/server';
import { CallPage } from '../call-page';

/** Runs on the server, which keeps the API key and decides who may join which room. */
async function fetchToken(name) {
  'use server';
  const { CALLPLANE_URL, CALLPLANE_API_KEY, CALLPLANE_SIGNALING_URL, ROOM_ID } = process.env;
  const { token } = await createClient({ baseUrl: CALLPLANE_URL, apiKey: CALLPLANE_API_KEY }).issueToken({
    roomId: ROOM_ID,
    participantName: name,
    permissions: ['room:join', 'audio:publish', 'video:publish', 'screen:publish', 'messages:send'],
  });
  return { url: CALLPLANE_SIGNALING_URL, token };
}

export default function Page() {
  return <CallPage fetchToken={fetchToken} />;
}
