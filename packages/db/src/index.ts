export * from './client/database.js';
export * from './client/unavailable.js';
export { Prisma } from './generated/client.js';
