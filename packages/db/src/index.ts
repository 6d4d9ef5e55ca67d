export * from './client/connection-config.js';
export * from './client/database.js';
export * from './client/unavailable.js';
export * from './client/session.js';
export type { RowRequest } from './client/row-requests.js';
export * from './events/event-filter.js';
export * from './events/events.repository.js';
export * from './events/write-events.js';
export * from './idempotency/idempotency.repository.js';
export * from './operations/operation-leases.js';
export {
  findOperation,
  findOperationsOf,
  makeDue,
  type AcceptedOperation,
  type WakeableOperation,
} from './operations/operations.repository.js';
export * from './operations/participant-move.js';
export * from './operations/participant-removal.js';
export * from './participants/admission.js';
export * from './participants/moderation.js';
export * from './operations/room-end.js';
export * from './participants/participant-erasure.js';
export * from './participants/participants.repository.js';
export * from './recordings/recording-captures.js';
export * from './recordings/recording-ends.js';
export * from './recordings/recording-retention.js';
export * from './recordings/recording-work.js';
export * from './recordings/recordings.repository.js';
export * from './rooms/room-retention.js';
export * from './rooms/rooms.repository.js';
export { Prisma } from './generated/client.js';
export * from './webhooks/claims.js';
export * from './webhooks/delivery-leases.js';
export * from './webhooks/delivery-lists.js';
export * from './webhooks/delivery-sweep.js';
export { findDueEndpoints, type DueEndpoint } from './webhooks/due-endpoints.js';
export * from './webhooks/failing-endpoints.js';
export * from './webhooks/recovery-runner.js';
export * from './webhooks/retention.js';
export * from './api-keys/api-keys.repository.js';
export * from './console/console-sessions.js';
export * from './signing-keys/signing-keys.repository.js';
export * from './webhooks/deliveries.repository.js';
export * from './webhooks/endpoint-stats.js';
export * from './webhooks/endpoints.repository.js';
export * from './webhooks/recoveries.repository.js';
export { checkInvariants, INVARIANTS, type InvariantResult } from './invariants/invariants.js';
export * from './operators/operator-lists.js';
export * from './operators/database-health.js';
export * from './operators/operator-webhooks.js';
export * from './media/media-forwards.js';
export * from './media/media-nodes.js';
export * from './media/media-registry.js';
export * from './media/room-placement.js';
export * from './relays/relays.js';
export * from './sessions/session-connection.js';
export * from './sessions/join-sessions.js';
export { endParticipantPresence, endRoomPresence, endSessions, writeSessionsEnded } from './sessions/session-ends.js';
export * from './sessions/lost-sessions.js';
export * from './sessions/room-changes.js';
export * from './sessions/session-history.js';
export * from './sessions/session-tracks.js';
export * from './sessions/token-refusal.js';
export type * from './sessions/session.js';
export * from './operators/reseal.js';
export * from './sweeps/sweep-lease.js';
export * from './overview/overview.js';
export * from './usage/usage.js';
