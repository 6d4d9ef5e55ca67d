/** With it, the console of this repository calls each operation in its own session. Not part of the SDK. */
export { OPERATIONS } from './facts.generated.js';
export type { InputOf, OperationId, ResultOf } from './operation.js';
export type * from './operations.generated.js';
export { buildRequest, type AllOptions } from './request.js';
