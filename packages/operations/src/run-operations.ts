import { QUEUE_OF_OPERATION, type OperationKind } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import { JobWorkers, type JobWorkersSettings, type OperationJob } from '@callplane/queue';
import type { AppProcess, Elections, ProcessConfig } from '@callplane/runtime';
import pLimit, { type LimitFunction } from 'p-limit';
import { settleExhausted } from './exhausted.js';
import { namesOf, type Kind, type Kinds, type OperationDeps } from './kind.js';
import { Scan, SCAN_FAST_MS } from './scan.js';
import { workOnOperation } from './work.js';

interface Running {
  redis: JobWorkersSettings<OperationJob>['redisUrl'];
  elections: Elections;
  sweepIntervalMs: number;
}

/** Works on operations of these kinds until the process drains: on their jobs, and on due rows that a scan finds. */
export function runOperations<Deps extends OperationDeps>(
  app: AppProcess<ProcessConfig>,
  deps: Deps,
  kinds: Kinds<Deps>,
  { redis, elections, sweepIntervalMs }: Running,
): void {
  const names = namesOf(kinds);
  const kindOf = (name: OperationKind) => kinds[name] as Kind<Deps>;
  // The jobs and the scan share the slots of their kinds.
  const limits = new Map(names.map((name) => [kindOf(name).slots, pLimit(kindOf(name).slots.concurrency)]));
  // A process that drains gives jobs that wait for a slot back at once. A job of a long kind stands for any of its kind:
  // its place in Redis is older than the turns of the environments.
  const work = (operationId: string, name: OperationKind): Promise<number | null> =>
    (limits.get(kindOf(name).slots) as LimitFunction)(() =>
      app.lifecycle.isClosing ? 0 : workOnOperation(deps, operationId, kinds, kindOf(name).isLong ? name : null),
    );
  const scan = new Scan(deps, names, sweepIntervalMs, work);
  const fastMs = Math.min(SCAN_FAST_MS, sweepIntervalMs);
  app.repeat('scan', fastMs, (signal) => scan.tick(signal), isDatabaseUnavailable);
  const nameOf = Object.fromEntries(names.map((name) => [QUEUE_OF_OPERATION[name], name]));
  app.own(
    'operations',
    new JobWorkers<OperationJob>({
      redisUrl: redis,
      queues: Object.fromEntries(names.map((name) => [QUEUE_OF_OPERATION[name], kindOf(name).slots.concurrency])),
      work: ({ operationId }, { queue }) => work(operationId, nameOf[queue] as OperationKind),
      events: {
        ...app.redisEvents('operations'),
        onFailed: (error, job) => {
          const message = isDatabaseUnavailable(error) ? 'operation waits for PostgreSQL' : 'operation job failed';
          deps.logger.error(message, { operationId: job?.operationId, error });
        },
      },
    }),
  );
  app.repeatElected(elections, 'exhausted', sweepIntervalMs, () => settleExhausted(deps, kinds), isDatabaseUnavailable);
}
