import { fork } from 'node:child_process';
import { join } from 'node:path';
import { NODE_FLAGS } from '@callplane/local-servers';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { openStage } from './stage.js';

/** Starts the floor of deliveries in a process of its own. It ends with the stage. */
export async function openBareLoop(stage: Awaited<ReturnType<typeof openStage>>) {
  const loop = fork(join(import.meta.dirname, 'bare-loop.js'), {
    execArgv: NODE_FLAGS,
    env: { ...process.env, REDIS_URL: stage.environment.REDIS_URL },
  });
  await new Promise((resolve) => loop.once('message', resolve));
  const redis = new Redis(stage.environment.REDIS_URL, { maxRetriesPerRequest: null });
  const queue = new Queue('bare-loop', { connection: redis });
  stage.onClose(async () => {
    loop.kill('SIGKILL');
    await queue.close();
    redis.disconnect();
  });
  return {
    pid: Number(loop.pid),
    /** Sends requests to a receiver. Resolves as `receiver.arrivals` does. */
    async send<T>(receiver: { url: string; arrivals: (count: number) => Promise<T> }, count: number): Promise<T> {
      const arrived = receiver.arrivals(count);
      const body = `{"id":"bench","data":{"text":"${'x'.repeat(500)}"}}`;
      await queue.addBulk(Array.from({ length: count }, () => ({ name: 'post', data: { url: receiver.url, body } })));
      return arrived;
    },
  };
}
