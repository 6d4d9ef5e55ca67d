import { expect, test } from '@jest/globals';
import { insertedColumns, updatedColumns } from './written-columns.js';

test('finds the columns that a statement writes, in each of its parts', () => {
  const text = `
    WITH room AS (
      INSERT INTO rooms AS r (id, name) SELECT id, name -- label
      FROM new ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = rooms.version + 1
    )
    UPDATE sessions s SET ended_at = CASE WHEN (SELECT a = b FROM x) THEN now() END, s.reason = coalesce($1, reason)
    FROM room WHERE s.id = room.id RETURNING s.id = $2`;
  expect(insertedColumns(text)).toEqual(['rooms.id', 'rooms.name']);
  expect(updatedColumns(text).sort()).toEqual(['rooms.name', 'rooms.version', 'sessions.ended_at', 'sessions.reason']);
  expect(insertedColumns('INSERT INTO "public"."projects" ("id","name") VALUES ($1,$2)')).toEqual([
    'projects.id',
    'projects.name',
  ]);
});
