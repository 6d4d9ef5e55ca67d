export * from './verify-webhook.js';
