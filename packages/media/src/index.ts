export * from './media-node.js';
