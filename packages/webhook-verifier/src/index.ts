export type { WebhookEvent, WebhookEventOf, WebhookEventType } from './event.js';
export * from './verify-webhook.js';
