import { beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { newId } from '@callplane/core';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { makeRecordable, recording } from '../recordings/recordings.testkit.js';
import { apiRoutes } from '../routes.js';
import { delivery, finish, webhook } from '../webhooks/webhooks.testkit.js';
import { openApiDocument } from './document.js';
import { EXAMPLE_IDS } from './examples.js';

type Json = Record<string, any>;

let api: TestApi;
/** Replaces example ids by real ones. All read operations share these resources because they change nothing. */
let forReads: (text: string) => string;
beforeAll(async () => {
  api = await startTestApi();
  forReads = await realIds('read');
});

// The cast is safe: routes use their dependencies only while they handle a request.
const document: Json = openApiDocument(apiRoutes({} as never));
const operations: [id: string, method: string, path: string, operation: Json][] = Object.entries(
  document['paths'] as Json,
).flatMap(([path, methods]) =>
  Object.entries(methods as Json).map(([method, operation]): [string, string, string, Json] => [
    operation.operationId,
    method.toUpperCase(),
    path,
    operation,
  ]),
);

describe('the examples of the OpenAPI document', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: 'openapi', ...document });
  const validate = (schema: Json, value: unknown) =>
    ajv.validate(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/')), value)
      ? []
      : [ajv.errorsText(ajv.errors), value];
  /** Finds all media types, parameters and headers that have a schema and examples. */
  const exampleHolders = (value: unknown): Json[] => {
    if (typeof value !== 'object' || value === null) return [];
    const inside = Object.values(value).flatMap(exampleHolders);
    return 'schema' in value && ('example' in value || 'examples' in value) ? [value, ...inside] : inside;
  };

  test('match their schemas in requests, answers and webhooks', () => {
    const holders = exampleHolders({ ...document, components: { responses: document['components'].responses } });
    expect(holders.length).toBeGreaterThan(operations.length);
    for (const { schema, example, examples } of holders) {
      const values = examples === undefined ? [example] : Object.values(examples as Json).map(({ value }) => value);
      expect(values).not.toHaveLength(0);
      for (const value of values) expect(validate(schema, value)).toEqual([]);
    }
  });
});

describe('the API', () => {
  // A stream of changes does not end; stream.routes.test.ts opens it.
  // A participant answers only with a page, as in tests/ends/requests.test.ts.
  const answered = operations.filter(([id]) => id !== 'openStream' && id !== 'askParticipant');

  test.each(answered)('accepts the example requests of %s', async (id, method, path, operation) => {
    const names = Object.keys(operation['requestBody']?.content['application/json'].examples ?? {});
    for (const name of names.length === 0 ? [null] : names) {
      const toReal = method === 'GET' && !id.endsWith('Operation') ? forReads : await realIds(id);
      const example = name === null ? undefined : operation['requestBody'].content['application/json'].examples[name];
      const { target, headers } = requestOf(path, operation['parameters'] ?? [], toReal);
      const body = example === undefined ? {} : { body: JSON.parse(toReal(JSON.stringify(example.value))) };
      const caller = id === 'endConsoleSession' ? { key: null, headers: await consoleSession() } : { headers };
      const response = await api.call(method, target, { ...caller, ...body });
      // `call` has already checked the answer against the document.
      expect([name, response.status < 300, response.text]).toEqual([name, true, response.text]);
      if (method === 'PATCH' || response.status === 201) await expectStored(path, target, body.body, response.body);
      // An environment may have 50 endpoints.
      if (toReal !== forReads) await api.call('DELETE', `/v1/webhooks/${toReal(EXAMPLE_IDS.endpointId)}`);
    }
  });

  /** A read returns the values that were sent and answered: a statement may lack a field. */
  async function expectStored(path: string, target: string, sent: Json, answer: Json): Promise<void> {
    const isRead = (one: string) => one.startsWith(`${path}/{`) && one.endsWith('}') && 'get' in document['paths'][one];
    if ('post' in document['paths'][path] && !Object.keys(document['paths']).some(isRead)) return;
    const [resource] = target.split('?');
    const at = 'patch' in document['paths'][path] ? resource! : `${resource}/${answer['id']}`;
    const { body: stored } = await api.call('GET', at);
    const values = (names: Json, of: Json) => Object.keys(names).map((name) => [name, of[name]]);
    const both = Object.fromEntries(Object.entries(answer).filter(([name]) => name in stored));
    expect(values(both, stored)).toEqual(values(both, answer));
    // Reads mask the values of headers.
    const { headers = {}, ...plain } = sent;
    expect(values(plain, stored)).toEqual(values(plain, plain));
    expect(Object.keys(stored['headers'] ?? {})).toEqual(Object.keys(headers as Json));
  }
});

/** Signs in to the console. Returns the headers of its page, because no API key ends a session. */
async function consoleSession(): Promise<Record<string, string>> {
  const { headers } = await api.call('POST', '/v1/console/sessions', { body: {} });
  const [cookie] = (headers['set-cookie'] as unknown as string[])[0]!.split(';');
  return { cookie: cookie!, origin: api.url, 'x-callplane-csrf': '1' };
}

/** A required parameter has its example beside the schema, an optional one inside it. */
const exampleOf = ({ required, example, schema }: Json): unknown =>
  required === true ? example : schema.examples?.[0];

/** Builds the request from the examples of all parameters. */
function requestOf(path: string, parameters: Json[], toReal: (text: string) => string) {
  const placed = (place: string) =>
    parameters
      .filter((parameter) => parameter['in'] === place && exampleOf(parameter) !== undefined)
      .map((parameter): [string, string] => [parameter['name'], toReal(String(exampleOf(parameter)))]);
  const filled = placed('path').reduce((target, [name, value]) => target.replace(`{${name}}`, value), path);
  const query = new URLSearchParams(placed('query')).toString();
  // Each request gets its own idempotency key, because the examples of one operation have different bodies.
  const headers = Object.fromEntries(
    placed('header').map(([name, value]) => [name, name === 'Prefer' ? 'respond-async' : value + newId('request')]),
  );
  return { target: query === '' ? filled : `${filled}?${query}`, headers };
}

/**
 * Creates the resources that the examples refer to. Returns a function that replaces the example ids in a text by their
 * ids.
 */
async function realIds(operationId: string): Promise<(text: string) => string> {
  const { projectId, environmentId } = api.tenant;
  const roomId = await api.room();
  const invited = await api.invite(roomId);
  const { participantId } = invited;
  const { sessionId } = await api.join(roomId, invited);
  const camera = { trackId: 'camera', kind: 'video', source: 'camera', feedId: 'feed', mid: '0', muted: false };
  await api.database.prisma.sessionTrack.create({ data: { sessionId, ...camera, publishedAt: new Date() } });
  const endpoint = await webhook(api);
  const sent = await delivery(api, endpoint.path);
  if (operationId === 'replayDelivery') await finish(api, sent.id);
  if (['activateWebhookSecret', 'cancelWebhookSecretRotation'].includes(operationId))
    await api.call('POST', `${endpoint.path}/rotate-secret`, { body: { activateInSeconds: 86_400 } });
  const eventId: string = (await api.call('GET', `/v1/events?roomId=${roomId}`)).body.data[0].id;
  const recovery = await api.call('POST', `${endpoint.path}/recoveries`, { body: { since: '2026-01-01T00:00:00Z' } });
  const room = `/v1/rooms/${roomId}`;
  const headers = { prefer: 'respond-async' };
  if (['startRecording', 'createRoom', 'updateRoom'].includes(operationId)) await makeRecordable(api);
  if (operationId === 'readRoomOperation') await api.call('DELETE', room, { headers });
  if (operationId === 'readParticipantOperation')
    await api.call('DELETE', `${room}/participants/${participantId}`, { headers });
  const targetId = await api.room();
  if (operationId === 'readMoveOperation')
    await api.call('POST', `${room}/participants/${participantId}/move`, { body: { roomId: targetId } });
  const real: typeof EXAMPLE_IDS = {
    projectId,
    environmentId,
    roomId,
    participantId,
    sessionId,
    eventId,
    endpointId: endpoint.id,
    deliveryId: sent.id,
    recoveryId: recovery.body.id,
    targetId,
    ...(await recording(api, roomId)),
  } as never;
  return (text) =>
    Object.entries(EXAMPLE_IDS).reduce(
      (changed, [name, id]) => changed.replaceAll(id, real[name as keyof typeof EXAMPLE_IDS]),
      text,
    );
}
