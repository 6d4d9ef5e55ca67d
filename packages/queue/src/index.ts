export * from './jobs/catalogue.js';
export * from './jobs/job-producer.js';
export * from './jobs/job-worker.js';
export * from './jobs/queue-depths.js';
export { QUEUE_OF_LANE, TurnWorker, type Handed, type Turn } from './jobs/turns.js';
export * from './notices/notices.js';
export * from './notices/room-bus.js';
export * from './redis/redis-facts.js';
export * from './redis/redis-health.js';
export * from './redis/redis.js';
export {
  parseRedisUrl,
  readRedisTarget,
  RedisSettingsError,
  type RedisLocation,
  type RedisSettings,
  type RedisTarget,
} from './redis/redis-target.js';
export type { Redis } from 'ioredis';
