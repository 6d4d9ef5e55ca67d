export * from './folder-store.js';
export type { ObjectStore } from './object-store.js';
