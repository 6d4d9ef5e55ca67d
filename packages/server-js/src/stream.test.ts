import { afterEach, expect, test } from '@jest/globals';
import { createClient, type StreamMessage, type StreamOptions } from './index.js';
import { cut, failure, scriptedServer, type Answer, type ScriptedServer } from './scripted-server.testkit.js';

let server: ScriptedServer;
afterEach(() => server.close());

/** Answers with a stream of these chunks, and ends it, or cuts it. */
const stream =
  (chunks: (string | Uint8Array)[], isCut = false): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const chunk of chunks) response.write(chunk);
    if (isCut) setImmediate(() => response.destroy());
    else response.end();
  };
const READY = 'retry: 2000\n\nid: 1.evt_a\nevent: ready\ndata: {"kinds":["rooms"],"resumed":false}\n\n';

/** Reads messages until `count` have come. */
async function read(answers: Answer[], count: number, options: StreamOptions = {}): Promise<StreamMessage[]> {
  server = await scriptedServer(...answers);
  const ending = new AbortController();
  const api = createClient({ baseUrl: server.baseUrl, apiKey: 'rtc_sk_1' });
  const messages: StreamMessage[] = [];
  for await (const message of api.stream({ signal: ending.signal, ...options })) {
    messages.push(message);
    if (messages.length === count) ending.abort();
  }
  return messages;
}

test('messages come in order, however their bytes are divided', async () => {
  const text = `${READY}id: 2.evt_b\nevent: changes\ndata: {"changes":[{"kind":"rooms","type":"room.created","name":"ä"}]}\n\n`;
  const messages = await read([stream([...Buffer.from(text)].map((byte) => Buffer.from([byte])))], 2, {
    kinds: ['rooms'],
    roomId: 'room_1',
  });
  expect(messages).toEqual([
    { event: 'ready', id: '1.evt_a', kinds: ['rooms'], resumed: false },
    { event: 'changes', id: '2.evt_b', changes: [{ kind: 'rooms', type: 'room.created', name: 'ä' }] },
  ]);
  expect(server.received[0]).toMatchObject({ url: '/v1/stream?kinds=rooms&roomId=room_1' });
});

test('after an interruption the stream continues behind the last position, which a heartbeat may have told', async () => {
  const failures: unknown[] = [];
  const messages = await read(
    [stream([READY, 'id: 3.evt_c\n: heartbeat\n\n'], true), cut, failure(503, 'UNAVAILABLE'), stream([READY])],
    2,
    { onFailure: ({ error }) => failures.push((error as { code: string }).code) },
  );
  expect(messages.map(({ event }) => event)).toEqual(['ready', 'ready']);
  expect(server.received.map(({ headers }) => headers['last-event-id'])).toEqual([
    undefined,
    '3.evt_c',
    '3.evt_c',
    '3.evt_c',
  ]);
  expect(failures).toEqual(['CONNECTION_FAILED', 'CONNECTION_FAILED', 'UNAVAILABLE']);
});

test('a refusal for good ends the stream with its error', async () => {
  await expect(read([failure(403, 'INSUFFICIENT_SCOPE')], 1)).rejects.toMatchObject({
    code: 'INSUFFICIENT_SCOPE',
    status: 403,
    operationId: 'openStream',
  });
});
