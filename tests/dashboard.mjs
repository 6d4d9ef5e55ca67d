// Bull Board, as an operator would run it: `REDIS_URL=… node tests/dashboard.mjs`. Prints its address.
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { Queue } from 'bullmq';
import express from 'express';

const connection = { url: process.env.REDIS_URL };
const queues = ['room-end', 'participant-remove', 'webhook-delivery', 'webhook-delivery-slow'].map(
  (name) => new BullMQAdapter(new Queue(name, { connection, prefix: 'callplane' })),
);
const serverAdapter = new ExpressAdapter();
createBullBoard({ queues, serverAdapter });
const server = express()
  .use(serverAdapter.getRouter())
  .listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
