/** The floor of the delivery benchmark: a bare BullMQ worker with four slots that does only the same got POST. */
import { Worker } from 'bullmq';
import got from 'got';
import { Agent } from 'node:http';
import { Redis } from 'ioredis';

const agent = { http: new Agent({ keepAlive: true }) };
const connection = new Redis(process.env.REDIS_URL ?? '', { maxRetriesPerRequest: null });
new Worker(
  'bare-loop',
  async (job) => {
    await got.post(job.data.url, {
      body: job.data.body,
      agent,
      retry: { limit: 0 },
      followRedirect: false,
      decompress: false,
    });
  },
  { connection, concurrency: 4, removeOnComplete: { count: 0 } },
);
process.once('disconnect', () => process.exit());
process.send?.('ready');
