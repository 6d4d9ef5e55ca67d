/**
 * The floors of the REST benchmark: bare Express routes without authentication, validation, tokens or logs, on the same
 * PostgreSQL. `/rooms` runs one statement on a table of its own. `/same` runs the statements of the API with `pg`,
 * prepared, their texts made once.
 */
import { randomUUID } from 'node:crypto';
import { ID_PREFIXES, newId, newRoom, roomCreated, type Tenant } from '@callplane/core';
import { findRooms, insertParticipantsIfOpen, insertRooms, Prisma, type TypedSql } from '@callplane/db';
import express from 'express';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const app = express();

await pool.query(
  'CREATE TABLE IF NOT EXISTS floor_rooms (id text PRIMARY KEY, name text NOT NULL, metadata jsonb NOT NULL, created_at timestamptz NOT NULL)',
);
app.post('/rooms', express.json(), async (request, response) => {
  const room = { id: randomUUID(), name: request.body.name, metadata: {}, createdAt: new Date() };
  await pool.query('INSERT INTO floor_rooms (id, name, metadata, created_at) VALUES ($1, $2, $3, $4)', [
    room.id,
    room.name,
    room.metadata,
    room.createdAt,
  ]);
  response.status(201).json(room);
});
app.get('/rooms/:id', async (request, response) => {
  const { rows } = await pool.query('SELECT id, name, metadata, created_at FROM floor_rooms WHERE id = $1', [
    request.params.id,
  ]);
  if (rows.length === 0) response.status(404).end();
  else response.json(rows[0]);
});

const tenant = JSON.parse(process.env.FLOOR_TENANT ?? '') as Tenant;
const room = newRoom({ id: newId('room'), name: 'Bench', maxParticipants: 50, createdAt: new Date() });
const participant = {
  id: newId('participant'),
  externalId: null,
  name: 'Bench',
  metadata: {},
  role: 'participant' as const,
  createdAt: new Date(),
  token: { id: newId('token'), permissions: ['room:join' as const], expiresAt: new Date(Date.now() + 600_000) },
};

/**
 * A statement of packages/db, whose text is made once.
 * @param run asks for the statement
 * @returns a function that puts other ids into its values
 */
async function statementOf(name: string, run: (db: TypedSql) => PromiseLike<unknown>) {
  let { text, values } = Prisma.empty;
  const $queryRaw: TypedSql['$queryRaw'] = (query, ...args) => {
    ({ text, values } = query instanceof Prisma.Sql ? query : Prisma.sql(query, ...args));
    return Promise.resolve([] as never);
  };
  await run({ $queryRaw, $executeRaw: $queryRaw });
  const eventIds = values.filter((value) => typeof value === 'string' && value.startsWith(ID_PREFIXES.event));
  return (ids: [from: string, to: string][]) => {
    const all = [...ids, ...eventIds.map((id): [string, string] => [String(id), newId('event')])];
    const change = (value: string) => all.reduce((changed, [from, to]) => changed.replaceAll(from, to), value);
    return { name, text, values: values.map((value) => (typeof value === 'string' ? change(value) : value)) };
  };
}

const createRoom = await statementOf('create room', (db) =>
  insertRooms(db, [{ tenant, room, created: roomCreated(tenant, room) }]),
);
const createParticipant = await statementOf('create participant', (db) =>
  insertParticipantsIfOpen(db, [{ tenant, participant: { ...participant, roomId: room.id } }], { skipLocked: true }),
);
const findRoom = await statementOf('find room', (db) => findRooms(db, [{ tenant, id: room.id }]));

app.post('/same/rooms', express.json(), async (request, response) => {
  const id = newId('room');
  await pool.query(createRoom([[room.id, id]]));
  response.status(201).json({ ...room, id, name: request.body.name });
});
app.post('/same/rooms/:id/tokens', express.json(), async (request, response) => {
  const [id, tokenId] = [newId('participant'), newId('token')];
  const own: [string, string][] = [
    [participant.id, id],
    [participant.token.id, tokenId],
  ];
  await pool.query(createParticipant([[room.id, request.params.id], ...own]));
  response.status(201).json({ ...participant, id });
});
app.get('/same/rooms/:id', async (request, response) => {
  const { rows } = await pool.query(findRoom([[room.id, request.params.id]]));
  if (rows.length === 0) response.status(404).end();
  else response.json(rows[0]);
});
app.get('/ready', (_request, response) => response.end());
app.listen(Number(process.env.PORT), '127.0.0.1');
