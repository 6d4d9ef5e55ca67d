import type { components } from './events.generated.js';

/**
 * The body of a delivery: `type` determines the fields of `data`, which holds the resources of the event as the API
 * returns them. `id` is the same in every retry and replay: store it with the result of the processing. Later versions
 * of the API may send further types, so ignore types that you do not know.
 */
export type WebhookEvent = components['schemas']['Event'];

export type WebhookEventType = WebhookEvent['type'];

/** The event of one type: `WebhookEventOf<'room.ended'>`. */
export type WebhookEventOf<Type extends WebhookEventType> = Extract<WebhookEvent, { type: Type }>;
