import { expect, test } from '@jest/globals';
import { stopAtEnd } from '@callplane/testing';
import { JOBS_PER_ENVIRONMENT, JobProducer, type NotSent, type OperationWakeUp } from './job-producer.js';

const operation = (kind: OperationWakeUp['kind'], n: number): OperationWakeUp => ({
  kind,
  id: `op_${n}`,
  environmentId: 'env_1',
  run: 1,
  runAttempts: 0,
});

/** A producer that cannot reach Redis: no server listens on port 1. */
function lostProducer(): { producer: JobProducer; notSent: NotSent[] } {
  const notSent: NotSent[] = [];
  const events = { onLost: () => undefined, onReady: () => undefined };
  const producer = new JobProducer('redis://127.0.0.1:1', { ...events, onNotSent: (failed) => notSent.push(failed) });
  stopAtEnd(() => producer.close());
  return { producer, notSent };
}

test('a producer reports every wake-up that it cannot send, by queue', async () => {
  const { producer, notSent } = lostProducer();
  const turn = (endpointId: string, slotMs: number | null) => ({ endpointId, environmentId: 'env_1', slotMs });
  const turns = [turn('whep_1', 64), turn('whep_1', 64), turn('whep_2', 64), turn('whep_3', null)];
  expect(await producer.wakeDeliveries(turns)).toBe(false);
  const operations = [operation('room.end', 1), operation('participant.remove', 2), operation('room.end', 3)];
  expect(await producer.wakeOperations(operations)).toBe(false);
  expect(notSent).toMatchObject([
    { queue: 'webhook-delivery', count: 2, error: expect.any(Error) },
    { queue: 'webhook-delivery-slow', count: 1, error: expect.any(Error) },
    { queue: 'room-end', count: 2, error: expect.any(Error) },
    { queue: 'participant-remove', count: 1, error: expect.any(Error) },
  ]);
});

test('a producer reports wake-ups beyond the bound of their environment', async () => {
  const { producer, notSent } = lostProducer();
  const many = Array.from({ length: JOBS_PER_ENVIRONMENT }, (_, n) => operation('room.end', n));
  await producer.wakeOperations(many);
  notSent.length = 0;
  expect(await producer.wakeOperations([operation('room.end', -1)])).toBe(false);
  expect(notSent).toMatchObject([
    { queue: 'room-end', count: 1, error: { message: expect.stringContaining('limit of jobs in Redis') } },
  ]);
});
