// Written by packages/dev/src/generate from the OpenAPI document. Do not edit; run "npm run generate".

import type { ListOperation, Operation } from './operation.js';
import type { components } from './openapi.generated.js';

export type ApiContext = components['schemas']['ApiContext'];
export type AttemptOutcomes = components['schemas']['AttemptOutcomes'];
export type CallsOverview = components['schemas']['CallsOverview'];
export type ConsoleSession = components['schemas']['ConsoleSession'];
export type EventPage = components['schemas']['EventPage'];
export type EventTypeDescription = components['schemas']['EventTypeDescription'];
export type EventTypes = components['schemas']['EventTypes'];
export type IceServer = components['schemas']['IceServer'];
export type IssuedToken = components['schemas']['IssuedToken'];
export type IssuedTokenPage = components['schemas']['IssuedTokenPage'];
export type Move = components['schemas']['Move'];
export type MoveOne = components['schemas']['MoveOne'];
export type Moves = components['schemas']['Moves'];
export type MutedTrack = components['schemas']['MutedTrack'];
export type Overview = components['schemas']['Overview'];
export type Participant = components['schemas']['Participant'];
export type ParticipantAnswer = components['schemas']['ParticipantAnswer'];
export type ParticipantPage = components['schemas']['ParticipantPage'];
export type ParticipantToken = components['schemas']['ParticipantToken'];
export type PublicKey = components['schemas']['PublicKey'];
export type PublicKeySet = components['schemas']['PublicKeySet'];
export type PublishedTrack = components['schemas']['PublishedTrack'];
export type RecordRoom = components['schemas']['RecordRoom'];
export type Recording = components['schemas']['Recording'];
export type RecordingFile = components['schemas']['RecordingFile'];
export type RecordingGap = components['schemas']['RecordingGap'];
export type RecordingLink = components['schemas']['RecordingLink'];
export type RecordingPage = components['schemas']['RecordingPage'];
export type Room = components['schemas']['Room'];
export type RoomMedia = components['schemas']['RoomMedia'];
export type RoomMediaForward = components['schemas']['RoomMediaForward'];
export type RoomMediaNode = components['schemas']['RoomMediaNode'];
export type RoomPage = components['schemas']['RoomPage'];
export type RuntimeOperation = components['schemas']['RuntimeOperation'];
export type SentMessage = components['schemas']['SentMessage'];
export type Session = components['schemas']['Session'];
export type SessionPage = components['schemas']['SessionPage'];
export type SessionQuality = components['schemas']['SessionQuality'];
export type SessionTrack = components['schemas']['SessionTrack'];
export type SignatureContract = components['schemas']['SignatureContract'];
export type StoredParticipant = components['schemas']['StoredParticipant'];
export type StoredRoom = components['schemas']['StoredRoom'];
export type Track = components['schemas']['Track'];
export type TriedFilterPath = components['schemas']['TriedFilterPath'];
export type TriedWebhookFilter = components['schemas']['TriedWebhookFilter'];
export type TurnCredentials = components['schemas']['TurnCredentials'];
export type UpdatedParticipant = components['schemas']['UpdatedParticipant'];
export type Usage = components['schemas']['Usage'];
export type UsageDay = components['schemas']['UsageDay'];
export type WebhookAttempt = components['schemas']['WebhookAttempt'];
export type WebhookAttemptPage = components['schemas']['WebhookAttemptPage'];
export type WebhookDelivery = components['schemas']['WebhookDelivery'];
export type WebhookDeliveryDetail = components['schemas']['WebhookDeliveryDetail'];
export type WebhookDeliveryPage = components['schemas']['WebhookDeliveryPage'];
export type WebhookDiagnosis = components['schemas']['WebhookDiagnosis'];
export type WebhookEndpoint = components['schemas']['WebhookEndpoint'];
export type WebhookEndpointPage = components['schemas']['WebhookEndpointPage'];
export type WebhookEndpointWithSecret = components['schemas']['WebhookEndpointWithSecret'];
export type WebhookRecovery = components['schemas']['WebhookRecovery'];
export type WebhookRecoveryPage = components['schemas']['WebhookRecoveryPage'];
export type WebhookStats = components['schemas']['WebhookStats'];
export type WebhookStatsInterval = components['schemas']['WebhookStatsInterval'];
export type WebhookStatsTotal = components['schemas']['WebhookStatsTotal'];
export type WebhooksOverview = components['schemas']['WebhooksOverview'];

/** Every operation of the API. */
export interface Operations {
  /**
   * Read the context of the API key.
   *
   * Accepts a secret or a publishable key, or a console session, which it describes. Needs no scope.
   *
   * `GET /v1/`.
   */
  readContext: Operation<'readContext'>;
  /**
   * Sign in to the console.
   *
   * Send a secret API key, or the code of a link of `rtc console login`, as `Authorization: Bearer`. The answer sets the cookie of a session, which every route accepts instead of the key. The session has the scopes of the key or link. It ends after 8 hours, after one hour without a request, and with its key.
   *
   * `POST /v1/console/sessions`.
   */
  createConsoleSession: Operation<'createConsoleSession'>;
  /**
   * Sign out of the console.
   *
   * Ends the session of the request, at every instance within 5 seconds, and deletes its cookie.
   *
   * `DELETE /v1/console/sessions/current`.
   */
  endConsoleSession: Operation<'endConsoleSession'>;
  /**
   * Create a room.
   *
   * Creating a room joins no participant and opens no media devices. Issue participant tokens next.
   *
   * `POST /v1/rooms`, scope `rooms:create`.
   */
  createRoom: Operation<'createRoom'>;
  /**
   * List rooms, newest first.
   *
   * `GET /v1/rooms`, scope `rooms:read`.
   */
  listRooms: ListOperation<'listRooms'>;
  /**
   * Read a room.
   *
   * `GET /v1/rooms/{roomId}`, scope `rooms:read`.
   */
  readRoom: Operation<'readRoom'>;
  /**
   * Change a room.
   *
   * Changes the given fields, also in a running call, and writes `room.updated`. A request that changes nothing writes no event.
   *
   * `PATCH /v1/rooms/{roomId}`, scope `rooms:update`.
   */
  updateRoom: Operation<'updateRoom'>;
  /**
   * End a room for everyone.
   *
   * Disconnects all participants and removes live media resources, as a durable operation. Repeating the request never creates a second operation. After a failure, it starts a new run of the same operation.
   *
   * `DELETE /v1/rooms/{roomId}`, scope `rooms:end`.
   */
  endRoom: Operation<'endRoom'>;
  /**
   * Read the clean-up of a room.
   *
   * `GET /v1/rooms/{roomId}/runtime-operation`, scope `rooms:read`.
   */
  readRoomOperation: Operation<'readRoomOperation'>;
  /**
   * Read the media servers of a room.
   *
   * `GET /v1/rooms/{roomId}/media`, scope `rooms:read`.
   */
  readRoomMedia: Operation<'readRoomMedia'>;
  /**
   * Send a message to participants.
   *
   * Sends data to everyone in the room, or to some participants. Clients get it as a `message` from `server`. The message reaches clients that are connected, and is not stored.
   *
   * `POST /v1/rooms/{roomId}/messages`, scope `participants:update`.
   */
  sendMessage: Operation<'sendMessage'>;
  /**
   * Issue a participant token.
   *
   * Every call creates a new participant identity, unless `participantId` names one. Authenticate your own user and check access to the room before you issue a token.
   *
   * `POST /v1/rooms/{roomId}/tokens`, scope `tokens:create`.
   */
  issueToken: Operation<'issueToken'>;
  /**
   * List issued tokens, newest first.
   *
   * Shows who may still join with a token, and who has. Begins with the newest participant; the tokens of one follow each other. The tokens themselves are not stored.
   *
   * `GET /v1/rooms/{roomId}/tokens`, scope `participants:read`.
   */
  listTokens: ListOperation<'listTokens'>;
  /**
   * List participants, the latest first.
   *
   * Lists only participants that have connected at least once.
   *
   * `GET /v1/rooms/{roomId}/participants`, scope `participants:read`.
   */
  listParticipants: ListOperation<'listParticipants'>;
  /**
   * Read a participant.
   *
   * `GET /v1/rooms/{roomId}/participants/{participantId}`, scope `participants:read`.
   */
  readParticipant: Operation<'readParticipant'>;
  /**
   * Remove a participant.
   *
   * Blocks the identity, revokes its tokens and disconnects it, as a durable operation. Works before the first join too.
   *
   * `DELETE /v1/rooms/{roomId}/participants/{participantId}`, scope `participants:remove`.
   */
  removeParticipant: Operation<'removeParticipant'>;
  /**
   * Change a participant.
   *
   * Changes the given fields, also in a running call, and writes `participant.updated`. Tracks that the participant may no longer publish are unpublished. New permissions take effect without a new token, and stay for later joins. Works before the first join too. A request that changes nothing writes no event.
   *
   * `PATCH /v1/rooms/{roomId}/participants/{participantId}`, scope `participants:update`.
   */
  updateParticipant: Operation<'updateParticipant'>;
  /**
   * Read the clean-up of a participant.
   *
   * `GET /v1/rooms/{roomId}/participants/{participantId}/runtime-operation`, scope `participants:read`.
   */
  readParticipantOperation: Operation<'readParticipantOperation'>;
  /**
   * Let a participant in.
   *
   * Lets a participant out of the lobby into the room, within a second and without a new join, with its own permissions, and writes `participant.admitted`. It never waits again. Works before the first join too. Admitting a participant that need not wait changes nothing. To refuse one, remove it.
   *
   * `POST /v1/rooms/{roomId}/participants/{participantId}/admit`, scope `participants:update`.
   */
  admitParticipant: Operation<'admitParticipant'>;
  /**
   * Mute a track.
   *
   * Mutes a published track for everyone, and writes `track.muted`. The participant may unmute it. To keep it silent, change its permissions. Muting a muted track changes nothing.
   *
   * `POST /v1/rooms/{roomId}/participants/{participantId}/tracks/{trackId}/mute`, scope `participants:update`.
   */
  muteTrack: Operation<'muteTrack'>;
  /**
   * Move a participant to another room.
   *
   * Continues the session of the participant in another room of the environment, as a durable operation: without a new token, and with the same devices. The target has a new participant with the same data. A participant without a session is refused. The answer waits only if `Prefer` asks for it.
   *
   * `POST /v1/rooms/{roomId}/participants/{participantId}/move`, scope `participants:update`.
   */
  moveParticipant: Operation<'moveParticipant'>;
  /**
   * Read the move of a participant.
   *
   * `GET /v1/rooms/{roomId}/participants/{participantId}/move`, scope `participants:read`.
   */
  readMoveOperation: Operation<'readMoveOperation'>;
  /**
   * Move participants to other rooms.
   *
   * Moves up to 100 participants of a room, each as `moveParticipant` does.
   *
   * `POST /v1/rooms/{roomId}/moves`, scope `participants:update`.
   */
  moveParticipants: Operation<'moveParticipants'>;
  /**
   * Ask a participant.
   *
   * Sends a request to the client of a participant in the room, and answers with its answer. The client handles the method, and needs no permission for that. Nothing is stored. After an error that names no refusal of the request, the client may have handled it.
   *
   * `POST /v1/rooms/{roomId}/participants/{participantId}/requests`, scope `participants:update`.
   */
  askParticipant: Operation<'askParticipant'>;
  /**
   * List the sessions of a room, newest first.
   *
   * A session is one stay of a participant in the room, with its tracks and its quality.
   *
   * `GET /v1/rooms/{roomId}/sessions`, scope `participants:read`.
   */
  listRoomSessions: ListOperation<'listRoomSessions'>;
  /**
   * List the sessions of a participant, newest first.
   *
   * `GET /v1/rooms/{roomId}/participants/{participantId}/sessions`, scope `participants:read`.
   */
  listParticipantSessions: ListOperation<'listParticipantSessions'>;
  /**
   * Start a recording.
   *
   * Records until the recording is stopped, its room ends, or its longest duration is over. The files exist once its status is `completed`; the event `recording.completed` says so. A room has at most one composite at a time.
   *
   * `POST /v1/rooms/{roomId}/recordings`, scope `recordings:write`.
   */
  startRecording: Operation<'startRecording'>;
  /**
   * List the recordings of a room, newest first.
   *
   * `GET /v1/rooms/{roomId}/recordings`, scope `recordings:read`.
   */
  listRoomRecordings: ListOperation<'listRoomRecordings'>;
  /**
   * List recordings, newest first.
   *
   * `GET /v1/recordings`, scope `recordings:read`.
   */
  listRecordings: ListOperation<'listRecordings'>;
  /**
   * Read a recording.
   *
   * `GET /v1/recordings/{recordingId}`, scope `recordings:read`.
   */
  readRecording: Operation<'readRecording'>;
  /**
   * Delete a recording and its files.
   *
   * Reads no longer find the recording from then on. A durable operation deletes its files.
   *
   * `DELETE /v1/recordings/{recordingId}`, scope `recordings:write`.
   */
  deleteRecording: Operation<'deleteRecording'>;
  /**
   * Stop a recording.
   *
   * Ends the recording, and makes its files as a durable operation. A recording that has ended stays as it is. The end of a room stops its recordings as well.
   *
   * `POST /v1/recordings/{recordingId}/stop`, scope `recordings:write`.
   */
  stopRecording: Operation<'stopRecording'>;
  /**
   * Create a link to a file.
   *
   * The link is for one file, and needs no API key.
   *
   * `POST /v1/recordings/{recordingId}/files/{fileId}/url`, scope `recordings:read`.
   */
  createRecordingLink: Operation<'createRecordingLink'>;
  /**
   * Read the live figures.
   *
   * Rooms, participants and joins need `rooms:read`, deliveries and endpoints `webhooks:read`. A part without its scope is null. No figure counts more than 10,000 rows. `GET /v1/usage` has the figures of days.
   *
   * `GET /v1/overview`.
   */
  readOverview: Operation<'readOverview'>;
  /**
   * Read the usage by day.
   *
   * Usage of the environment by UTC day. Sessions that have not ended count until now. The figures of a day outlive its rooms.
   *
   * `GET /v1/usage`, scope `rooms:read`.
   */
  readUsage: Operation<'readUsage'>;
  /**
   * Issue temporary STUN/TURN credentials.
   *
   * Send roomId and sessionId to get credentials for an active session, or an empty object to get credentials for the environment. Without a configured relay, the response lists STUN servers only.
   *
   * `POST /v1/turn/credentials`, scope `tokens:create`.
   */
  issueTurnCredentials: Operation<'issueTurnCredentials'>;
  /**
   * Read the signing and retry policy.
   *
   * `GET /v1/webhooks/signature-contract`, scope `webhooks:read`.
   */
  readSignatureContract: Operation<'readSignatureContract'>;
  /**
   * Register a webhook endpoint.
   *
   * The endpoint receives later events of the environment. An environment has at most 50 endpoints.
   *
   * `POST /v1/webhooks`, scope `webhooks:write`.
   */
  createWebhook: Operation<'createWebhook'>;
  /**
   * List webhook endpoints, newest first.
   *
   * `GET /v1/webhooks`, scope `webhooks:read`.
   */
  listWebhooks: ListOperation<'listWebhooks'>;
  /**
   * Read a webhook endpoint.
   *
   * `GET /v1/webhooks/{endpointId}`, scope `webhooks:read`.
   */
  readWebhook: Operation<'readWebhook'>;
  /**
   * Change a webhook endpoint.
   *
   * Changes the given fields. Delivery runs that have begun keep their URL. The order, the limits, `headers`, `standardWebhooks` and `retryRejected` apply to attempts that begin later, also of deliveries that are pending already.
   *
   * `PATCH /v1/webhooks/{endpointId}`, scope `webhooks:write`.
   */
  updateWebhook: Operation<'updateWebhook'>;
  /**
   * Remove a webhook endpoint.
   *
   * Ends the open deliveries of the endpoint (`endpoint_deleted`) and cancels its recoveries. Its deliveries stay readable under its id until retention removes them.
   *
   * `DELETE /v1/webhooks/{endpointId}`, scope `webhooks:write`.
   */
  deleteWebhook: Operation<'deleteWebhook'>;
  /**
   * Try a filter on a past event.
   *
   * Sends and stores nothing. Without `filter`, it tries the filter of the endpoint.
   *
   * `POST /v1/webhooks/{endpointId}/try-filter`, scope `webhooks:read`.
   */
  tryWebhookFilter: Operation<'tryWebhookFilter'>;
  /**
   * Rotate the signing secret of a webhook endpoint.
   *
   * Delivery runs that begin after `activateInSeconds` (default 0: at once) are signed with the new secret. Runs that have begun keep the old one: select the secret by `x-service-signing-key-version` when you verify.
   *
   * `POST /v1/webhooks/{endpointId}/rotate-secret`, scope `webhooks:write`.
   */
  rotateWebhookSecret: Operation<'rotateWebhookSecret'>;
  /**
   * Cancel a rotation of the signing secret that waits for its activation.
   *
   * The next secret signs nothing, and its version number is not given again.
   *
   * `DELETE /v1/webhooks/{endpointId}/rotate-secret`, scope `webhooks:write`.
   */
  cancelWebhookSecretRotation: Operation<'cancelWebhookSecretRotation'>;
  /**
   * Activate the next signing secret of a webhook endpoint at once.
   *
   * `POST /v1/webhooks/{endpointId}/rotate-secret/activate`, scope `webhooks:write`.
   */
  activateWebhookSecret: Operation<'activateWebhookSecret'>;
  /**
   * Read the attempts, outcomes and durations of an endpoint over time.
   *
   * One entry for each interval, also without attempts. The durations are exact.
   *
   * `GET /v1/webhooks/{endpointId}/stats`, scope `webhooks:read`.
   */
  readWebhookStats: Operation<'readWebhookStats'>;
  /**
   * Send a webhook.test event to one endpoint.
   *
   * `POST /v1/webhooks/{endpointId}/test`, scope `webhooks:write`.
   */
  testWebhook: Operation<'testWebhook'>;
  /**
   * List the deliveries of an endpoint, newest first.
   *
   * Also works with the id of a removed endpoint.
   *
   * `GET /v1/webhooks/{endpointId}/deliveries`, scope `webhooks:read`.
   */
  listDeliveries: ListOperation<'listDeliveries'>;
  /**
   * List the deliveries of all endpoints, newest first.
   *
   * Includes the deliveries of removed endpoints.
   *
   * `GET /v1/deliveries`, scope `webhooks:read`.
   */
  listAllDeliveries: ListOperation<'listAllDeliveries'>;
  /**
   * Read a delivery with its event and its last attempt.
   *
   * `GET /v1/webhooks/{endpointId}/deliveries/{deliveryId}`, scope `webhooks:read`.
   */
  readDelivery: Operation<'readDelivery'>;
  /**
   * List the attempts of a delivery over all its runs, newest first.
   *
   * `GET /v1/webhooks/{endpointId}/deliveries/{deliveryId}/attempts`, scope `webhooks:read`.
   */
  listAttempts: ListOperation<'listAttempts'>;
  /**
   * Replay a finished delivery.
   *
   * Starts a new run with the endpoint's current URL and secret. The event and the delivery id stay the same, and the replay count increases by one. If several conflicts apply, the response has the first of these codes: `REPLAY_COUNT_MISMATCH` (`details` contain the current count), `DELIVERY_NOT_TERMINAL`, `EVENT_ERASED`, `REPLAY_LIMIT_REACHED`, `WEBHOOK_DISABLED`.
   *
   * `POST /v1/webhooks/{endpointId}/deliveries/{deliveryId}/replay`, scope `webhooks:write`.
   */
  replayDelivery: Operation<'replayDelivery'>;
  /**
   * Retry a pending delivery now.
   *
   * Brings the next attempt forward to now, in the same run: same bytes, same replay count. It counts like any other attempt. If the attempt is due already, nothing changes. If several conflicts apply, the response has the first of these codes: `DELIVERY_NOT_PENDING` (finished), `DELIVERY_IN_FLIGHT` (being sent), `WEBHOOK_DISABLED`.
   *
   * `POST /v1/webhooks/{endpointId}/deliveries/{deliveryId}/retry`, scope `webhooks:write`.
   */
  retryDelivery: Operation<'retryDelivery'>;
  /**
   * Send all unsuccessful deliveries of a time window now.
   *
   * Call it when a receiver works again. A worker replays the failed deliveries and brings the pending ones forward, oldest first and at most 100 a second; poll the recovery for its progress. It skips failed deliveries with 100 replays and deliveries of erased events. A delivery that is being sent is included if that attempt fails. The recovery pauses while the endpoint is disabled. With `dryRun`, it only counts.
   *
   * `POST /v1/webhooks/{endpointId}/recoveries`, scope `webhooks:write`.
   */
  createRecovery: Operation<'createRecovery'>;
  /**
   * List the recoveries of an endpoint, newest first.
   *
   * Also works with the id of a removed endpoint.
   *
   * `GET /v1/webhooks/{endpointId}/recoveries`, scope `webhooks:read`.
   */
  listRecoveries: ListOperation<'listRecoveries'>;
  /**
   * Read the progress of a recovery.
   *
   * `GET /v1/webhooks/{endpointId}/recoveries/{recoveryId}`, scope `webhooks:read`.
   */
  readRecovery: Operation<'readRecovery'>;
  /**
   * Cancel a recovery.
   *
   * Deliveries that the recovery has replayed or brought forward continue. Cancelling a complete recovery changes nothing.
   *
   * `DELETE /v1/webhooks/{endpointId}/recoveries/{recoveryId}`, scope `webhooks:write`.
   */
  cancelRecovery: Operation<'cancelRecovery'>;
  /**
   * List the event types.
   *
   * With the meaning, the JSON Schema and an example of each. The list changes only with the version.
   *
   * `GET /v1/event-types`, scope `webhooks:read`.
   */
  listEventTypes: Operation<'listEventTypes'>;
  /**
   * List events, oldest first, or wait for them.
   *
   * Each item is the body that webhooks send. With `roomId`, events are ordered by their sequence, otherwise by their transactions. An event appears once no older transaction is open, so an event that commits late is never skipped. With `wait`, the answer comes with the next event, usually within a second of its commit, or empty when the time is over.
   *
   * `GET /v1/events`, scope `webhooks:read`.
   */
  listEvents: ListOperation<'listEvents'>;
  /**
   * Read an event.
   *
   * The body that webhooks send. Events are kept for 30 days, and as long as a delivery refers to them.
   *
   * `GET /v1/events/{eventId}`, scope `webhooks:read`.
   */
  readEvent: Operation<'readEvent'>;
  /**
   * Read the public keys that verify participant tokens.
   *
   * Needs no API key. Verifiers may cache the response for 60 seconds. Read it again for an unknown `kid`.
   *
   * `GET /.well-known/jwks.json`.
   */
  readJwks: Operation<'readJwks'>;
}
