import { PrismaClient as RealClient } from '../../../packages/db/src/generated/client.js';

export * from '../../../packages/db/src/generated/client.js';

let shared: RealClient | undefined;

/**
 * One client for all simulated processes: to load the interpreter takes 100 ms of the machine's time. Its pool finds the
 * process whose code runs.
 */
export const PrismaClient = function (options: ConstructorParameters<typeof RealClient>[0]): RealClient {
  return (shared ??= new RealClient(options));
} as unknown as typeof RealClient;
