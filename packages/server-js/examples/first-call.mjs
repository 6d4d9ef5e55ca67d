import { createClient } from '@callplane/server';

const callplane = createClient({ baseUrl: process.env.BASE, apiKey: process.env.KEY });
const room = await callplane.createRoom({ name: 'Stand-up', metadata: { team: 'core' }, maxParticipants: 25 });
const permissions = ['room:join', 'audio:publish', 'video:publish'];
const { token } = await callplane.issueToken({ roomId: room.id, participantName: 'Ada', permissions });
const { iceServers } = await callplane.issueTurnCredentials();
console.log(room.id, token.length, iceServers.length);

const operation = await callplane.endRoom({ roomId: room.id }, { waitSeconds: 5 });
console.log(operation?.status ?? 'completed');
