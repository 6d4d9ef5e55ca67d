/** Calls the REST API of a Callplane and verifies its webhooks. */
export * from '@callplane/webhook-verifier';
export { createClient, type Callplane, type ClientOptions, type OperationOf, type WaitOptions } from './client.js';
export type { ConsumeOptions, ConsumerFailure, EventBatch } from './consume-events.js';
export {
  CallplaneError,
  isCallplaneError,
  type ApiErrorCode,
  type CallplaneErrorCode,
  type ClientErrorCode,
  type ErrorDetail,
} from './errors.js';
export type {
  CallOptions,
  InputOf,
  ListOperation,
  Operation,
  OperationId,
  OptionsOf,
  ResultOf,
  Page,
  PageContent,
} from './operation.js';
export type * from './operations.generated.js';
export type { StreamChange, StreamKind, StreamMessage, StreamOptions } from './stream.js';
