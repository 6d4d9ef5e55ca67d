/** `npm run typecheck` checks this file: every line after `@ts-expect-error` must not compile. */
import { expect, test } from '@jest/globals';
import { createClient, type Callplane, type InputOf, type Room, type WebhookEvent } from './index.js';

/** Never called. */
export async function accepted(api: Callplane): Promise<void> {
  const room: Room = await api.createRoom({ name: 'Daily', metadata: { team: 'blue' } }, { idempotencyKey: 'k' });
  const operation = await api.endRoom({ roomId: room.id }, { waitSeconds: 5 });
  const status: 'pending' | 'completed' | 'failed' | undefined = operation?.status;
  const removing: Promise<undefined> = api.deleteWebhook({ endpointId: 'whep_1' });
  await removing;
  for await (const event of api.listEvents({ roomId: room.id })) {
    const delivered: WebhookEvent = event;
    if (event.type === 'participant.left') console.log(event.data.participant.name, event.data.reason);
    console.log(delivered.id);
  }
  const input: InputOf<'issueTurnCredentials'> = {};
  await api.issueTurnCredentials(input);
  await api.issueTurnCredentials();
  console.log(status);
}

/** Never called. */
export async function refused(api: Callplane): Promise<void> {
  // @ts-expect-error a room has a name
  await api.createRoom({ metadata: {} });
  // @ts-expect-error there is no such field
  await api.createRoom({ name: 'Daily', colour: 'red' });
  // @ts-expect-error the path needs a room
  await api.readRoom();
  // @ts-expect-error a read takes no idempotency key
  await api.readRoom({ roomId: 'room_1' }, { idempotencyKey: 'k' });
  // @ts-expect-error only clean-ups are waited for
  await api.createRoom({ name: 'Daily' }, { waitSeconds: 5 });
  // @ts-expect-error there is no such status
  await api.listRooms({ status: 'open' });
  // @ts-expect-error there is no such operation
  await api.createRooms({ name: 'Daily' });
}

test('the client has the functions of its type', () => {
  expect(createClient({ baseUrl: 'https://calls.example.com', apiKey: 'rtc_sk_1' }).createRoom).toBeInstanceOf(
    Function,
  );
});
