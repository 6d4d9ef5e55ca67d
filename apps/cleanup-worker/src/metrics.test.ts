import { beforeAll, expect, test } from '@jest/globals';
import { scanOf, startTestWorker, withSteps, type TestWorker, workOnOperation } from './worker.testkit.js';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});

test('metrics count attempts, finished runs and swept operations by kind', async () => {
  await workOnOperation(worker.deps, await worker.newOperation());
  const failing = await worker.newOperation();
  await workOnOperation(worker.deps, failing, withSteps({ name: 'fail', run: () => Promise.reject(new Error('no')) }));
  await worker.sql(`UPDATE runtime_operations SET due_at = now() - interval '1 minute' WHERE id = '${failing}'`);
  await scanOf(worker.deps, 0, () => Promise.reject(new Error('not now'))).tick(new AbortController().signal);
  const lines = (await worker.metrics()).split('\n');
  for (const line of [
    'callplane_operation_attempts_total{kind="room.end",outcome="completed",app="cleanup-worker"} 1',
    'callplane_operation_attempts_total{kind="room.end",outcome="retry",app="cleanup-worker"} 1',
    'callplane_operations_finished_total{kind="room.end",status="completed",app="cleanup-worker"} 1',
    'callplane_operation_start_lag_seconds_count{app="cleanup-worker",kind="room.end"} 2',
    'callplane_operation_attempt_duration_seconds_count{app="cleanup-worker",kind="room.end"} 2',
    'callplane_operation_swept_total{kind="room.end",what="woken",app="cleanup-worker"} 1',
  ])
    expect(lines).toContain(line);
});
