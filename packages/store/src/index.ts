export { FolderStore } from './folder-store.js';
export type { ObjectStore } from './object-store.js';
export { openStore, type StoreSettings } from './open-store.js';
