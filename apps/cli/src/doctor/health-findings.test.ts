import { describe, expect, test } from '@jest/globals';
import type { OldestSnapshot, TableHealth } from '@callplane/db';
import { checkSnapshots, checkTables } from './health-findings.js';

const table = (liveRows: number, deadRows: number): TableHealth => ({
  table: 'webhook_deliveries',
  liveRows,
  deadRows,
  bytes: 1,
  vacuumedAt: null,
});
const snapshot = (more: Partial<OldestSnapshot>): OldestSnapshot => ({
  holder: 'session',
  transactions: 10,
  seconds: 5,
  name: 'pid 1 app psql',
  ...more,
});

describe('the findings about tables and snapshots', () => {
  test('are ok while vacuum keeps up and transactions are short', () => {
    expect(checkTables([table(5_000_000, 250_000), table(100, 400)])).toMatchObject({ status: 'ok' });
    expect(checkSnapshots([])).toMatchObject({ status: 'ok' });
    const slot = snapshot({ holder: 'slot', seconds: null, name: 'standby_1' });
    expect(checkSnapshots([snapshot({}), slot])).toMatchObject({
      status: 'ok',
      detail: 'the oldest transaction is 5 s old',
    });
  });

  test('warn of a table with many dead rows', () => {
    const finding = checkTables([table(100_000, 60_000)]);
    expect(finding).toMatchObject({ status: 'warning', detail: 'webhook_deliveries has 60000 dead rows' });
  });

  test('warn of a transaction that is open for more than an hour, and name it', () => {
    const finding = checkSnapshots([snapshot({ seconds: 3601 })]);
    expect(finding).toMatchObject({ status: 'warning', detail: expect.stringContaining('pid 1 app psql') });
    expect(finding.advice).toContain('pg_terminate_backend');
  });

  test('warn of a slot that holds a snapshot from millions of transactions ago', () => {
    const slot = snapshot({ holder: 'slot', seconds: null, transactions: 5_000_001, name: 'gone' });
    expect(checkSnapshots([snapshot({}), slot])).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining('gone'),
    });
  });
});
