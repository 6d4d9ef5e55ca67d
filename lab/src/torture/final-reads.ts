import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Answer, AnswerBody, Caller } from './caller.js';
import type { KnownTenant } from '../fleet/operator.js';
import type { Known } from './load.js';

const AT_ONCE = 4;
const LOOK_EVERY_MS = 1000;
const PAGES_MAX = 10_000;
const PAGE = 100;

type Item = NonNullable<AnswerBody['data']>[number];

interface Reader {
  caller: Caller;
  tenant: KnownTenant;
}

function get({ caller, tenant }: Reader, path: string, client = 'final'): Promise<Answer> {
  return caller.call({ tenant: tenant.name, key: tenant.key, client: `${tenant.name} ${client}` }, 'GET', path);
}

/**
 * Reads a list to its last page.
 * @param cursorName the list of events continues after its last page: `after` is the cursor of the next event.
 */
async function readList(reader: Reader, path: string, cursorName: 'cursor' | 'after' = 'cursor'): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const more: string = cursor === null ? '' : `&${cursorName}=${encodeURIComponent(cursor)}`;
    const { status, body } = await get(reader, `${path}${path.includes('?') ? '&' : '?'}limit=${PAGE}${more}`);
    if (status !== 200) return items;
    items.push(...(body.data ?? []));
    cursor = body.nextCursor ?? null;
    if (cursor === null || (cursorName === 'after' && (body.data?.length ?? 0) < PAGE)) return items;
  }
  return items;
}

/** Whether every operation has ended. Ended ones are no longer read. A room may end before its removals. */
async function areOperationsOver(reader: Reader, open: Set<string>): Promise<boolean> {
  for (const path of open) {
    const { status, body } = await get(reader, path, 'settling');
    if (status === null || status >= 500 || body.status === 'pending') return false;
    open.delete(path);
  }
  return true;
}

export async function untilSettled(
  tenants: readonly (Reader & { known: Pick<Known, 'operations' | 'recordings'> })[],
  withinMs: number,
): Promise<boolean> {
  const readers = tenants.map((one) => ({ ...one, open: new Set(one.known.operations) }));
  const untilMs = performance.now() + withinMs;
  const paths = [
    '/v1/rooms?status=ending&limit=1',
    '/v1/deliveries?status=pending&limit=1',
    '/v1/deliveries?status=delivering&limit=1',
  ];
  const ofRecordings = ['/v1/recordings?status=recording&limit=1', '/v1/recordings?status=processing&limit=1'];
  while (performance.now() < untilMs) {
    const answers = await Promise.all(
      readers.flatMap((reader) =>
        [...paths, ...(reader.known.recordings === null ? [] : ofRecordings)].map((path) =>
          get(reader, path, 'settling'),
        ),
      ),
    );
    const over = await Promise.all(readers.map((reader) => areOperationsOver(reader, reader.open)));
    const isEmpty = answers.every(({ status, body }) => status === 200 && body.data?.length === 0);
    if (isEmpty && over.every(Boolean)) return true;
    await delay(LOOK_EVERY_MS);
  }
  return false;
}

/** Reads everything that a tenant has, as `RequestLine` says. */
export async function readAll(reader: Reader, known: Known, endpointIds: readonly string[]): Promise<void> {
  const listed = await readList(reader, '/v1/rooms');
  const rooms = new Set([...known.rooms, ...listed.map(({ id }) => id)]);
  await pLimit(AT_ONCE).map([...rooms], async (id) => {
    const room = `/v1/rooms/${id}`;
    await get(reader, room);
    await get(reader, `${room}/runtime-operation`);
    await readList(reader, `${room}/participants`);
    await readList(reader, `${room}/sessions`);
    await readList(reader, `/v1/events?roomId=${id}`, 'after');
  });
  await pLimit(AT_ONCE).map([...known.participants], async ([id, roomId]) => {
    await get(reader, `/v1/rooms/${roomId}/participants/${id}`);
  });
  await pLimit(AT_ONCE).map([...known.operations], (path) => get(reader, path));
  if (known.recordings !== null) {
    await readList(reader, '/v1/recordings');
    for (const id of known.recordings) await get(reader, `/v1/recordings/${id}`);
  }
  await readList(reader, '/v1/webhooks');
  for (const endpointId of endpointIds) {
    const path = `/v1/webhooks/${endpointId}/deliveries`;
    const deliveries = await readList(reader, path);
    await pLimit(AT_ONCE).map(deliveries, ({ id }) => readList(reader, `${path}/${id}/attempts`));
  }
}
