/**
 * The floor of the REST benchmark: a bare Express route that runs one raw `pg` statement on the same PostgreSQL,
 * without authentication, validation or logs.
 */
import { randomUUID } from 'node:crypto';
import express from 'express';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
await pool.query(
  'CREATE TABLE IF NOT EXISTS floor_rooms (id text PRIMARY KEY, name text NOT NULL, metadata jsonb NOT NULL, created_at timestamptz NOT NULL)',
);
const app = express();
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
app.get('/ready', (_request, response) => response.end());
app.listen(Number(process.env.PORT), '127.0.0.1');
