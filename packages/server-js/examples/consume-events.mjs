// DATABASE_URL=postgresql://… BASE=https://calls.example.com/v1 KEY=rtc_sk_… node consume-events.mjs
// Run it twice for a standby: the consumers share the work, and no event counts twice.
import { createClient } from '@callplane/server';
import pg from 'pg';

const CONSUMER = 'call-log'; // Another name is another position.
const callplane = createClient({ baseUrl: process.env.BASE, apiKey: process.env.KEY });
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  // A consumer that hangs keeps the lock no longer than this.
  idle_in_transaction_session_timeout: 30_000,
});
pool.on('error', (error) => console.error('idle connection lost:', error.message));

const ending = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => ending.abort());

const limit = Number(process.env.BATCH ?? 100);
console.log(`consumer ${CONSUMER} runs`);
await callplane.consumeEvents({ loadCursor, handle, onFailure, limit, signal: ending.signal });
await pool.end();

async function loadCursor() {
  const { rows } = await pool.query('SELECT cursor FROM event_cursors WHERE consumer = $1', [CONSUMER]);
  return rows[0].cursor;
}

/** All effects of a batch and its cursor in one transaction: it has happened as a whole, or not at all. */
async function handle({ events, after, nextCursor }) {
  const db = await pool.connect();
  try {
    await db.query('BEGIN');
    // The lock makes a second consumer wait here. Then it finds another cursor, and leaves the batch alone.
    const locked = await db.query('SELECT cursor FROM event_cursors WHERE consumer = $1 FOR UPDATE', [CONSUMER]);
    if (locked.rows[0].cursor === after) {
      for (const event of events) await apply(db, event);
      await db.query('UPDATE event_cursors SET cursor = $2 WHERE consumer = $1', [CONSUMER, nextCursor]);
    }
    await db.query('COMMIT');
    db.release();
  } catch (error) {
    // Closes the connection, and PostgreSQL rolls the transaction back.
    db.release(true);
    throw error;
  }
}

/** Your work. It uses only `db`: an e-mail or a request to another service is no part of a transaction. */
async function apply(db, { id, type, createdAt, data }) {
  await db.query('INSERT INTO call_log (event_id, room_id, type, happened_at) VALUES ($1, $2, $3, $4)', [
    id,
    data.room?.id,
    type,
    createdAt,
  ]);
  await db.query(
    `INSERT INTO event_counts (type, events) VALUES ($1, 1)
     ON CONFLICT (type) DO UPDATE SET events = event_counts.events + 1`,
    [type],
  );
}

function onFailure({ step, error, failures, pauseMs }) {
  console.error(`${step} failed ${failures} times in a row; continues in ${pauseMs} ms:`, error.message);
}
