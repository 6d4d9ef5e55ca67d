export * from './folder-store.js';
export type { ObjectStore, StoredObject } from './object-store.js';
