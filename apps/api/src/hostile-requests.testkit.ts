import { createHash } from 'node:crypto';
import { PERMISSIONS } from '@callplane/core';
import { publishTracks } from '@callplane/db';
import { eventually } from '@callplane/testing';
import fc from 'fast-check';
import type { Invited, TestApi } from './api.testkit.js';
import type { Route } from './http/route.js';
import { bodyExamples } from './openapi/examples.js';
import { recording } from './recordings/recordings.testkit.js';
import { apiRoutes } from './routes.js';
import { attempt, delivery, finish, webhook } from './webhooks/webhooks.testkit.js';

/** Values of all path parameters, of resources that belong together. */
export type PathValues = Readonly<Record<string, string>>;

/** Creates two resources of each kind, so that each list has a second page. Returns the ids of one of each. */
export async function createResources(api: TestApi): Promise<PathValues> {
  await api.room();
  await webhook(api);
  const roomId = await api.room();
  await enter(api, roomId, await api.invite(roomId));
  const person = await api.invite(roomId);
  // The second session supersedes the first one.
  await enter(api, roomId, person);
  const { trackId, sessionId } = await enter(api, roomId, person);

  await recording(api, roomId);
  const endpoint = await webhook(api);
  await delivery(api, endpoint.path);
  const { id: deliveryId } = await delivery(api, endpoint.path);
  for (const number of [1, 2]) await attempt(api, deliveryId, number);
  await finish(api, deliveryId);
  const window = { since: new Date(Date.now() - 60_000).toISOString(), until: new Date().toISOString() };
  const recover = () => api.call('POST', `${endpoint.path}/recoveries`, { body: window });
  const [recovery] = [await recover(), await recover()];
  // Open transactions of other tests delay the list.
  const eventId = await eventually(
    async () => (await api.call('GET', '/v1/events?limit=1')).body.data[0]?.id as string,
  );
  return {
    roomId,
    participantId: person.participantId,
    trackId,
    sessionId,
    endpointId: endpoint.id,
    deliveryId,
    recoveryId: recovery.body.id,
    eventId,
    ...(await recording(api, roomId)),
  };
}

/** Lets a participant join the room with a microphone. */
async function enter(api: TestApi, roomId: string, invited: Invited): Promise<{ trackId: string; sessionId: string }> {
  const joined = await api.join(roomId, invited, new Date(), PERMISSIONS);
  const track = { trackId: 'mic', kind: 'audio', source: 'microphone', muted: false, feedId: 'f', mid: '0' } as const;
  await publishTracks(api.database, joined, [track], new Date());
  return { trackId: track.trackId, sessionId: joined.sessionId };
}

/** The path of a route with these values. A DELETE gets unknown ids, so that later requests find the resources. */
export function pathOf(path: string, method: string, values: PathValues): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for {${name}}`);
    return method.toUpperCase() === 'DELETE' ? value.replace(/[0-9a-z]{26}$/, '0'.repeat(26)) : value;
  });
}

/** The list of a route with cursors. */
export interface ListUnderTest {
  name: string;
  path: string;
  params: Record<string, string>;
  /** The query parameter of its cursors. */
  parameter: string;
  /** A value for each of its filters. */
  filters: [string, string][];
}

export function listsOf(values: PathValues): ListUnderTest[] {
  const filterValues: Record<string, string> = {
    ...values,
    name: 'Room',
    namePrefix: 'R',
    externalId: 'user',
    type: 'webhook.test',
    eventType: 'webhook.test',
    since: '2026-01-01T00:00:00Z',
    until: '2999-01-01T00:00:00Z',
  };
  return apiRoutes({} as never).flatMap((route) =>
    route.list === undefined ? [] : [listOf(route, route.list, values, filterValues)],
  );
}

function listOf(
  { path, query }: Route,
  { name, parameter, unbound }: NonNullable<Route['list']>,
  values: PathValues,
  filterValues: Record<string, string>,
): ListUnderTest {
  const { properties } = query as unknown as { properties: Record<string, { enum?: string[] }> };
  const others = new Set(['limit', 'projectId', 'environmentId', parameter, ...unbound]);
  const filters = Object.keys(properties)
    .filter((filter) => !others.has(filter))
    .map((filter): [string, string] => {
      const value = filterValues[filter] ?? properties[filter]?.enum?.[0];
      if (value === undefined) throw new Error(`no value for the filter ${filter} of ${path}`);
      return [filter, value];
    });
  const params = Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, param]) => [param!, values[param!]!]));
  return { name, path: pathOf(path, 'GET', values), params, parameter, filters };
}

/** Forges a cursor with a valid check. Any reader of the source code can do this. */
export function forgedCursor(
  list: ListUnderTest,
  environmentId: string,
  filters: Record<string, string>,
  position: unknown,
): string {
  const body = Buffer.from(typeof position === 'string' ? position : JSON.stringify(position)).toString('base64url');
  const scope = JSON.stringify([
    list.name,
    environmentId,
    Object.entries(list.params).sort(([a], [b]) => (a < b ? -1 : 1)),
    Object.entries(filters),
  ]);
  return `2.${body}.${createHash('sha256').update(`${scope}.${body}`).digest('base64url').slice(0, 8)}`;
}

/** Texts that a parser, a calculation or PostgreSQL could stumble over. */
const HOSTILE_TEXTS: readonly string[] = [
  ...['', '\u0000', 'x\u0000', '\ud800', '\ufeff', 'null', '[]', '{}', '[{}]', '["\\u0000"]', "' OR 1=1 --", '%', '_'],
  ...['0', '-0', '-1', '101', '2147483648', '-2147483649', '999999999', '9007199254740993', '9223372036854775808'],
  ...[
    '9'.repeat(400),
    '1e308',
    '1e-400',
    '0x10',
    '1.5',
    'NaN',
    'Infinity',
    'true',
    'latest',
    'room:join',
    'rooms,rooms',
  ],
  ...['0000-01-01', '9999-12-31', '2026-02-30', '275760-09-14', '0000-01-01T00:00:00Z', '9999-12-31T23:59:60Z'],
  ...['2016-12-31T23:59:60Z', '+275760-09-13T00:00:00.000Z', '2026-01-01T00:00:00+99:99', 'https://[::]', '//x', '\\'],
  ...['2.W10.AAAAAAAA', '0.evt_00000000000000000000000000', '9223372036854775807.evt_zzzzzzzzzzzzzzzzzzzzzzzzzz'],
];

const printable = (from: number, maxLength: number) =>
  fc.string({ unit: fc.integer({ min: from, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength });
export const headerText = printable(0x20, 300);
/** The characters that Node's client accepts in a request target. */
export const targetText = printable(0x21, 200);

const anyText = (values: PathValues) =>
  fc.oneof(fc.constantFrom(...HOSTILE_TEXTS, ...Object.values(values)), fc.string({ unit: 'binary' }), targetText);

const anyValue = (values: PathValues) =>
  fc.oneof(
    anyText(values),
    fc.array(anyText(values), { maxLength: 3 }),
    fc.jsonValue(),
    fc.double(),
    fc.constantFrom(1e21, -0, 2 ** 31, 2 ** 53, [], {}, null),
    fc.webUrl(),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  );

const fieldsOf = (schema: unknown): string[] =>
  Object.keys((schema as { properties?: object } | undefined)?.properties ?? {});

/**
 * Bodies of a route: any JSON and any text, objects of fields that the route knows, and valid bodies in which one field
 * is replaced, so that some of them reach the handler.
 */
export function bodiesOf({ body }: Route, values: PathValues): fc.Arbitrary<string> {
  const names = fieldsOf(body);
  const examples = Object.values(bodyExamples(body));
  return fc.oneof(
    fc.json({ maxDepth: 40 }),
    fc.string({ unit: 'binary' }),
    fc
      .dictionary(fc.constantFrom(...names, '__proto__', 'constructor'), anyValue(values))
      .map((it) => JSON.stringify(it)),
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.constantFrom({}, ...examples), fc.constantFrom(...names, '__proto__'), anyValue(values))
        .map(([example, name, value]) => JSON.stringify({ ...example, [name]: value })),
    },
  );
}

/** Query strings of a route: its own parameters and foreign ones, also repeated, with hostile values. */
export function queriesOf({ query }: Route, values: PathValues): fc.Arbitrary<string> {
  const names = fc.constantFrom(...fieldsOf(query), 'limit', 'limit[]', '__proto__');
  return fc.oneof(
    targetText,
    fc
      .array(fc.tuple(names, anyText(values)), { minLength: 1, maxLength: 4 })
      .map((pairs) => pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&')),
  );
}
