export * from './jobs/job-producer.js';
export { JobWorkers, type Handed } from './jobs/job-workers.js';
export {
  QUEUE_NAMES,
  QUEUE_OF_LANE,
  QUEUE_OF_OPERATION,
  type OperationJob,
  type Turn,
  type TurnJob,
} from './jobs/jobs.js';
export * from './jobs/queue-depths.js';
export { NoticeListener, publishNotice, publishOnce, SHARED_CHANNEL, type Notice } from './notices/notices.js';
export * from './notices/room-bus.js';
export { InvalidPayloadError, parsePayload, payloadReader } from './redis/payloads.js';
export * from './redis/redis-facts.js';
export * from './redis/redis-health.js';
export * from './redis/redis.js';
export { readRedisTarget } from './redis/redis-target.js';
