// Written by packages/dev/src/generate from the OpenAPI document. Do not edit; run "npm run generate".

export interface paths {
    "/v1/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the context of the API key
         * @description Accepts a secret or a publishable key, or a console session, which it describes. Needs no scope.
         */
        get: operations["readContext"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/console/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in to the console
         * @description Send a secret API key, or the code of a link of `rtc console login`, as `Authorization: Bearer`. The answer sets the cookie of a session, which every route accepts instead of the key. The session has the scopes of the key or link. It ends after 8 hours, after one hour without a request, and with its key.
         */
        post: operations["createConsoleSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/console/sessions/current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Sign out of the console
         * @description Ends the session of the request, at every instance within 5 seconds, and deletes its cookie.
         */
        delete: operations["endConsoleSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List rooms, newest first */
        get: operations["listRooms"];
        put?: never;
        /**
         * Create a room
         * @description Creating a room joins no participant and opens no media devices. Issue participant tokens next.
         */
        post: operations["createRoom"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a room */
        get: operations["readRoom"];
        put?: never;
        post?: never;
        /**
         * End a room for everyone
         * @description Disconnects all participants and removes live media resources, as a durable operation. Repeating the request never creates a second operation. After a failure, it starts a new run of the same operation.
         */
        delete: operations["endRoom"];
        options?: never;
        head?: never;
        /**
         * Change a room
         * @description Changes the given fields, also in a running call, and writes `room.updated`. A request that changes nothing writes no event.
         */
        patch: operations["updateRoom"];
        trace?: never;
    };
    "/v1/rooms/{roomId}/runtime-operation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the clean-up of a room */
        get: operations["readRoomOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/media": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the media servers of a room */
        get: operations["readRoomMedia"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a message to participants
         * @description Sends data to everyone in the room, or to some participants. Clients get it as a `message` from `server`. The message reaches clients that are connected, and is not stored.
         */
        post: operations["sendMessage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List issued tokens, newest first
         * @description Shows who may still join with a token, and who has. Begins with the newest participant; the tokens of one follow each other. The tokens themselves are not stored.
         */
        get: operations["listTokens"];
        put?: never;
        /**
         * Issue a participant token
         * @description Every call creates a new participant identity, unless `participantId` names one. Authenticate your own user and check access to the room before you issue a token.
         */
        post: operations["issueToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List participants, the latest first
         * @description Lists only participants that have connected at least once.
         */
        get: operations["listParticipants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants/{participantId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a participant */
        get: operations["readParticipant"];
        put?: never;
        post?: never;
        /**
         * Remove a participant
         * @description Blocks the identity, revokes its tokens and disconnects it, as a durable operation. Works before the first join too.
         */
        delete: operations["removeParticipant"];
        options?: never;
        head?: never;
        /**
         * Change a participant
         * @description Changes the given fields, also in a running call, and writes `participant.updated`. Tracks that the participant may no longer publish are unpublished. New permissions take effect without a new token, and stay for later joins. Works before the first join too. A request that changes nothing writes no event.
         */
        patch: operations["updateParticipant"];
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants/{participantId}/runtime-operation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the clean-up of a participant */
        get: operations["readParticipantOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants/{participantId}/admit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a participant in
         * @description Lets a participant out of the lobby into the room, within a second and without a new join, with its own permissions, and writes `participant.admitted`. It never waits again. Works before the first join too. Admitting a participant that need not wait changes nothing. To refuse one, remove it.
         */
        post: operations["admitParticipant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants/{participantId}/tracks/{trackId}/mute": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mute a track
         * @description Mutes a published track for everyone, and writes `track.muted`. The participant may unmute it. To keep it silent, change its permissions. Muting a muted track changes nothing.
         */
        post: operations["muteTrack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants/{participantId}/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the move of a participant */
        get: operations["readMoveOperation"];
        put?: never;
        /**
         * Move a participant to another room
         * @description Continues the session of the participant in another room of the environment, as a durable operation: without a new token, and with the same devices. The target has a new participant with the same data. A participant without a session is refused. The answer waits only if `Prefer` asks for it.
         */
        post: operations["moveParticipant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/moves": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move participants to other rooms
         * @description Moves up to 100 participants of a room, each as `moveParticipant` does.
         */
        post: operations["moveParticipants"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants/{participantId}/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask a participant
         * @description Sends a request to the client of a participant in the room, and answers with its answer. The client handles the method, and needs no permission for that. Nothing is stored. After an error that names no refusal of the request, the client may have handled it.
         */
        post: operations["askParticipant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions of a room, newest first
         * @description A session is one stay of a participant in the room, with its tracks and its quality.
         */
        get: operations["listRoomSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/participants/{participantId}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the sessions of a participant, newest first */
        get: operations["listParticipantSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rooms/{roomId}/recordings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the recordings of a room, newest first */
        get: operations["listRoomRecordings"];
        put?: never;
        /**
         * Start a recording
         * @description Records until the recording is stopped, its room ends, or its longest duration is over. The files exist once its status is `completed`; the event `recording.completed` says so. A room has at most one composite at a time.
         */
        post: operations["startRecording"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recordings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List recordings, newest first */
        get: operations["listRecordings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recordings/{recordingId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a recording */
        get: operations["readRecording"];
        put?: never;
        post?: never;
        /**
         * Delete a recording and its files
         * @description Reads no longer find the recording from then on. A durable operation deletes its files.
         */
        delete: operations["deleteRecording"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recordings/{recordingId}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop a recording
         * @description Ends the recording, and makes its files as a durable operation. A recording that has ended stays as it is. The end of a room stops its recordings as well.
         */
        post: operations["stopRecording"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recordings/{recordingId}/files/{fileId}/url": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a link to a file
         * @description The link is for one file, and needs no API key.
         */
        post: operations["createRecordingLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the live figures
         * @description Rooms, participants and joins need `rooms:read`, deliveries and endpoints `webhooks:read`. A part without its scope is null. No figure counts more than 10,000 rows. `GET /v1/usage` has the figures of days.
         */
        get: operations["readOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the usage by day
         * @description Usage of the environment by UTC day. Sessions that have not ended count until now. The figures of a day outlive its rooms.
         */
        get: operations["readUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/turn/credentials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Issue temporary STUN/TURN credentials
         * @description Send roomId and sessionId to get credentials for an active session, or an empty object to get credentials for the environment. Without a configured relay, the response lists STUN servers only.
         */
        post: operations["issueTurnCredentials"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/signature-contract": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the signing and retry policy */
        get: operations["readSignatureContract"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List webhook endpoints, newest first */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Register a webhook endpoint
         * @description The endpoint receives later events of the environment. An environment has at most 50 endpoints.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a webhook endpoint */
        get: operations["readWebhook"];
        put?: never;
        post?: never;
        /**
         * Remove a webhook endpoint
         * @description Ends the open deliveries of the endpoint (`endpoint_deleted`) and cancels its recoveries. Its deliveries stay readable under its id until retention removes them.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook endpoint
         * @description Changes the given fields. Delivery runs that have begun keep their URL. The order, the limits, `headers`, `standardWebhooks` and `retryRejected` apply to attempts that begin later, also of deliveries that are pending already.
         */
        patch: operations["updateWebhook"];
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/try-filter": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try a filter on a past event
         * @description Sends and stores nothing. Without `filter`, it tries the filter of the endpoint.
         */
        post: operations["tryWebhookFilter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the signing secret of a webhook endpoint
         * @description Delivery runs that begin after `activateInSeconds` (default 0: at once) are signed with the new secret. Runs that have begun keep the old one: select the secret by `x-service-signing-key-version` when you verify.
         */
        post: operations["rotateWebhookSecret"];
        /**
         * Cancel a rotation of the signing secret that waits for its activation
         * @description The next secret signs nothing, and its version number is not given again.
         */
        delete: operations["cancelWebhookSecretRotation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/rotate-secret/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Activate the next signing secret of a webhook endpoint at once */
        post: operations["activateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the attempts, outcomes and durations of an endpoint over time
         * @description One entry for each interval, also without attempts. The durations are exact.
         */
        get: operations["readWebhookStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a webhook.test event to one endpoint */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of an endpoint, newest first
         * @description Also works with the id of a removed endpoint.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of all endpoints, newest first
         * @description Includes the deliveries of removed endpoints.
         */
        get: operations["listAllDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/deliveries/{deliveryId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a delivery with its event and its last attempt */
        get: operations["readDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/deliveries/{deliveryId}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the attempts of a delivery over all its runs, newest first */
        get: operations["listAttempts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/deliveries/{deliveryId}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay a finished delivery
         * @description Starts a new run with the endpoint's current URL and secret. The event and the delivery id stay the same, and the replay count increases by one. If several conflicts apply, the response has the first of these codes: `REPLAY_COUNT_MISMATCH` (`details` contain the current count), `DELIVERY_NOT_TERMINAL`, `EVENT_ERASED`, `REPLAY_LIMIT_REACHED`, `WEBHOOK_DISABLED`.
         */
        post: operations["replayDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/deliveries/{deliveryId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a pending delivery now
         * @description Brings the next attempt forward to now, in the same run: same bytes, same replay count. It counts like any other attempt. If the attempt is due already, nothing changes. If several conflicts apply, the response has the first of these codes: `DELIVERY_NOT_PENDING` (finished), `DELIVERY_IN_FLIGHT` (being sent), `WEBHOOK_DISABLED`.
         */
        post: operations["retryDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/recoveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the recoveries of an endpoint, newest first
         * @description Also works with the id of a removed endpoint.
         */
        get: operations["listRecoveries"];
        put?: never;
        /**
         * Send all unsuccessful deliveries of a time window now
         * @description Call it when a receiver works again. A worker replays the failed deliveries and brings the pending ones forward, oldest first and at most 100 a second; poll the recovery for its progress. It skips failed deliveries with 100 replays and deliveries of erased events. A delivery that is being sent is included if that attempt fails. The recovery pauses while the endpoint is disabled. With `dryRun`, it only counts.
         */
        post: operations["createRecovery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpointId}/recoveries/{recoveryId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the progress of a recovery */
        get: operations["readRecovery"];
        put?: never;
        post?: never;
        /**
         * Cancel a recovery
         * @description Deliveries that the recovery has replayed or brought forward continue. Cancelling a complete recovery changes nothing.
         */
        delete: operations["cancelRecovery"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/event-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the event types
         * @description With the meaning, the JSON Schema and an example of each. The list changes only with the version.
         */
        get: operations["listEventTypes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List events, oldest first, or wait for them
         * @description Each item is the body that webhooks send. With `roomId`, events are ordered by their sequence, otherwise by their transactions. An event appears once no older transaction is open, so an event that commits late is never skipped. With `wait`, the answer comes with the next event, usually within a second of its commit, or empty when the time is over.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/{eventId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an event
         * @description The body that webhooks send. Events are kept for 30 days, and as long as a delivery refers to them.
         */
        get: operations["readEvent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream changes as they happen
         * @description Server-sent events. `ready` comes first, `changes` names the changed objects, `reset` says that changes were missed: read everything again. `end` says why the stream ends: connect again. Send the last `id` as `Last-Event-ID` to continue. Rooms and operations need `rooms:read`, participants `participants:read`.
         */
        get: operations["openStream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the public keys that verify participant tokens
         * @description Needs no API key. Verifiers may cache the response for 60 seconds. Read it again for an unknown `kid`.
         */
        get: operations["readJwks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ApiContext: {
            /** @constant */
            apiVersion: "v1";
            projectId: string;
            environmentId: string;
            /** @description The API key; of a console session the key that made it, or of a link the session. */
            keyId: string;
            /** @enum {string} */
            keyType: "secret" | "publishable";
            scopes: ("rooms:create" | "rooms:read" | "rooms:update" | "rooms:end" | "tokens:create" | "participants:read" | "participants:update" | "participants:remove" | "recordings:read" | "recordings:write" | "webhooks:read" | "webhooks:write")[];
            session?: components["schemas"]["ConsoleSession"];
        };
        /** @description The attempts by their `outcome`. */
        AttemptOutcomes: {
            success: number;
            dns: number;
            connect: number;
            tls: number;
            timeout: number;
            response: number;
            blocked: number;
        };
        CallsOverview: {
            /** @description Rooms with at least one participant. */
            activeRooms: {
                count: number;
                /** @description Whether there may be more than `count`. */
                capped: boolean;
            };
            /** @description Participants that are in a room. */
            participants: {
                count: number;
                /** @description Whether there may be more than `count`. */
                capped: boolean;
            };
            joins: {
                count: number;
                /** @description Whether there are more: then only the newest ones are counted. */
                capped: boolean;
                /**
                 * Format: date-time
                 * @description Beginning of the first bucket, one hour ago.
                 */
                since: string;
                buckets: {
                    /**
                     * Format: date-time
                     * @description Beginning of five minutes.
                     */
                    from: string;
                    count: number;
                }[];
            };
        };
        ConsoleSession: {
            id: string;
            /**
             * @description Whether an API key or a link of `rtc console login` made the session.
             * @enum {string}
             */
            source: "api_key" | "link";
            /** @description Whether the session has only scopes that end in `:read`. */
            readOnly: boolean;
            projectName: string;
            environmentName: string;
            /**
             * Format: date-time
             * @description Time of the sign-in.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When the session ends at the latest.
             */
            expiresAt: string;
            /** @description Seconds without a request after which the session ends. */
            idleSeconds: number;
            signalingUrl: string | null;
        };
        Error: {
            error: {
                /**
                 * @description Error code for programs. See docs/errors.md.
                 * @enum {string}
                 */
                code: "VALIDATION_FAILED" | "MALFORMED_JSON" | "UNAUTHENTICATED" | "INSUFFICIENT_SCOPE" | "PERMISSION_DENIED" | "ORIGIN_NOT_ALLOWED" | "CROSS_SITE_REQUEST" | "ROOM_NOT_FOUND" | "PARTICIPANT_NOT_FOUND" | "SESSION_NOT_FOUND" | "TRACK_NOT_FOUND" | "WEBHOOK_NOT_FOUND" | "DELIVERY_NOT_FOUND" | "EVENT_NOT_FOUND" | "RECOVERY_NOT_FOUND" | "OPERATION_NOT_FOUND" | "RECORDING_NOT_FOUND" | "CONSOLE_SESSION_NOT_FOUND" | "ROUTE_NOT_FOUND" | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "ROOM_ENDED" | "ROOM_FULL" | "SESSION_REPLACED" | "RECORDING_ACTIVE" | "ROOM_ENCRYPTED" | "PARTICIPANT_REMOVED" | "PARTICIPANT_NOT_CONNECTED" | "PARTICIPANT_MOVED" | "ENCRYPTION_DIFFERS" | "NO_HANDLER" | "HANDLER_FAILED" | "RESPONSE_TOO_LARGE" | "PARTICIPANT_TIMED_OUT" | "REPLAY_COUNT_MISMATCH" | "DELIVERY_NOT_TERMINAL" | "DELIVERY_NOT_PENDING" | "DELIVERY_IN_FLIGHT" | "EVENT_ERASED" | "REPLAY_LIMIT_REACHED" | "WEBHOOK_DISABLED" | "SECRET_ROTATION_WAITS" | "NO_SECRET_ROTATION" | "WEBHOOK_LIMIT_REACHED" | "CONSOLE_SESSION_LIMIT_REACHED" | "IDEMPOTENCY_CONFLICT" | "PRECONDITION_FAILED" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE" | "IDEMPOTENCY_KEY_REUSED" | "PRECONDITION_REQUIRED" | "RATE_LIMITED" | "HEADERS_TOO_LARGE" | "INTERNAL" | "RECORDING_UNAVAILABLE" | "UNAVAILABLE";
                /** @description Error message for people. The text may change. */
                message: string;
                /** @description The value of the `x-request-id` header. */
                requestId: string;
                /** @description Every failure that belongs to a part of the request. */
                details?: {
                    /** @description E.g. `body.name`, `path.roomId`, `query.limit`. */
                    path: string;
                    message: string;
                }[];
            };
        };
        /** @description The `type` determines the content of `data`. Later versions may add types: ignore types that you do not know. */
        Event: components["schemas"]["RoomCreatedEvent"] | components["schemas"]["RoomStartedEvent"] | components["schemas"]["RoomUpdatedEvent"] | components["schemas"]["RoomEndedEvent"] | components["schemas"]["ParticipantJoinedEvent"] | components["schemas"]["ParticipantWaitingEvent"] | components["schemas"]["ParticipantAdmittedEvent"] | components["schemas"]["ParticipantLeftEvent"] | components["schemas"]["ParticipantUpdatedEvent"] | components["schemas"]["TrackPublishedEvent"] | components["schemas"]["TrackUnpublishedEvent"] | components["schemas"]["TrackMutedEvent"] | components["schemas"]["RecordingStartedEvent"] | components["schemas"]["RecordingStoppedEvent"] | components["schemas"]["RecordingCompletedEvent"] | components["schemas"]["RecordingFailedEvent"] | components["schemas"]["OperationFailedEvent"] | components["schemas"]["WebhookDisabledEvent"] | components["schemas"]["WebhookEndpointFailingEvent"] | components["schemas"]["WebhookEndpointRecoveredEvent"] | components["schemas"]["WebhookTestEvent"];
        EventPage: {
            data: components["schemas"]["Event"][];
            nextCursor: string | null;
        };
        EventTypeDescription: {
            /** @enum {string} */
            type: "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test";
            /** @description When the event happens. */
            description: string;
            /** @description JSON Schema (2020-12) of the body, without references. Later versions may add fields. */
            schema: {
                [key: string]: unknown;
            };
            /** @description A body that matches the schema. */
            example: {
                [key: string]: unknown;
            };
        };
        EventTypes: {
            data: components["schemas"]["EventTypeDescription"][];
            /** @description Always null: one page has all types. */
            nextCursor: null;
        };
        /** @description An entry of `RTCConfiguration.iceServers`. STUN entries have `urls` only. */
        IceServer: {
            urls: string[];
            username?: string;
            credential?: string;
            /** @constant */
            credentialType?: "password";
        };
        IssuedToken: {
            /** @description The `jti` of the token, `tok_…`. */
            id: string;
            participantId: string;
            participantName: string;
            permissions: string[];
            /**
             * @description `unused` and `used` tokens let their participant join; `used`: it has joined before. `room_ended`: the room ends or has ended.
             * @enum {string}
             */
            state: "unused" | "used" | "expired" | "room_ended" | "revoked";
            /**
             * Format: date-time
             * @description When the token was issued.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description Until when the participant may join with it.
             */
            expiresAt: string;
            usedAt: string | null;
            revokedAt: string | null;
        };
        IssuedTokenPage: {
            data: components["schemas"]["IssuedToken"][];
            nextCursor: string | null;
        };
        Move: {
            participantId: string;
            operation: components["schemas"]["RuntimeOperation"] | null;
            error: {
                code: string;
                message: string;
            } | null;
        };
        MoveOne: {
            participantId: string;
            /** @description The room to move to. */
            roomId: string;
            /** @description All permissions in the target. By default, the participant keeps its permissions. */
            permissions?: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
        };
        Moves: {
            /** @description In the order of the request, each with its operation, or the error that refuses it. */
            data: components["schemas"]["Move"][];
        };
        MutedTrack: {
            trackId: string;
            /** @enum {string} */
            kind: "audio" | "video";
            /** @enum {string} */
            source: "microphone" | "camera" | "screen" | "screen_audio";
            /** @description Always true. */
            muted: boolean;
        };
        OperationFailedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "operation.failed";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                operation: components["schemas"]["RuntimeOperation"];
                room: components["schemas"]["StoredRoom"];
                participant?: components["schemas"]["StoredParticipant"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        Overview: {
            /**
             * Format: date-time
             * @description Time of the figures.
             */
            at: string;
            calls: components["schemas"]["CallsOverview"] | null;
            webhooks: components["schemas"]["WebhooksOverview"] | null;
        };
        Participant: {
            /** @description Participant identifier, `part_…`. */
            id: string;
            roomId: string;
            externalId: string | null;
            name: string;
            metadata: {
                [key: string]: unknown;
            };
            /** @description The `role` of the token request, by default `participant`. */
            role: string;
            /**
             * Format: date-time
             * @description When the participant first connected. Before that, when its token was issued.
             */
            joinedAt: string;
            leftAt: string | null;
            /**
             * @description `invited`: it has not connected yet. `waiting`: it is in the lobby. `connected`: it is in the room. `disconnected`: it is in the room, but its connection was lost a moment ago. `left`: it may join again with a valid token. `removed` and `moved`: it may not.
             * @enum {string}
             */
            state: "invited" | "waiting" | "connected" | "disconnected" | "left" | "removed" | "moved";
            /** @description All permissions of the participant. */
            permissions: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
            /** @description The tracks that the participant publishes at this moment. */
            tracks: components["schemas"]["PublishedTrack"][];
            /** @description The participant in the room that it was moved to. */
            movedTo?: {
                roomId: string;
                participantId: string;
            };
            /** @description The participant in the room that it was moved from. */
            movedFrom?: {
                roomId: string;
                participantId: string;
            };
        };
        ParticipantAdmittedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "participant.admitted";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                sessionId: string | null;
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        ParticipantAnswer: {
            /** @description The answer of the participant: any JSON value, at most 16 KiB. */
            payload: unknown;
        };
        ParticipantJoinedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "participant.joined";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                /** @description Session of the participant, `sess_…`. */
                sessionId: string;
                /** @description Where a move has taken the participant from. */
                movedFrom?: {
                    roomId: string;
                    participantId: string;
                    sessionId: string;
                };
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        ParticipantLeftEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "participant.left";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                /** @description Session of the participant, `sess_…`. */
                sessionId: string;
                /**
                 * @description Why the session ended.
                 * @enum {string}
                 */
                reason: "left" | "removed" | "room_ended" | "connection_lost" | "superseded" | "moved";
                /** @description Where a move has taken the participant, if `moved`. */
                movedTo?: {
                    roomId: string;
                    participantId: string;
                    sessionId: string;
                };
                /**
                 * @description The session was in the lobby.
                 * @constant
                 */
                waiting?: true;
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        ParticipantPage: {
            data: components["schemas"]["Participant"][];
            nextCursor: string | null;
        };
        ParticipantToken: {
            /** @description Bearer token (JWT, ES256) for one participant. */
            token: string;
            /** @description The participant of the token. */
            participantId: string;
            /** @description Token identifier, `tok_…`. */
            tokenId: string;
            /**
             * Format: date-time
             * @description The token's `exp` as a time.
             */
            expiresAt: string;
        };
        ParticipantUpdatedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "participant.updated";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                sessionId: string | null;
                /** @description All permissions of the participant from now on. */
                permissions: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        ParticipantWaitingEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "participant.waiting";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                /** @description Session of the participant, `sess_…`. */
                sessionId: string;
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        PublicKey: {
            /** @constant */
            kty: "EC";
            /** @constant */
            crv: "P-256";
            x: string;
            y: string;
            /** @description Key identifier. The `kid` in the token's header refers to it. */
            kid: string;
            /** @constant */
            alg: "ES256";
            /** @constant */
            use: "sig";
        };
        /** @description The public keys that verify participant tokens. */
        PublicKeySet: {
            keys: components["schemas"]["PublicKey"][];
        };
        PublishedTrack: {
            trackId: string;
            /** @enum {string} */
            kind: "audio" | "video";
            /** @enum {string} */
            source: "microphone" | "camera" | "screen" | "screen_audio";
            /** @description Whether the participant or the server has muted it. */
            muted: boolean;
        };
        RecordRoom: {
            /**
             * @description `composite`: one file of everything, 1280×720. `tracks`: a file for each track, and another one after each reconnection.
             * @enum {string}
             */
            mode: "composite" | "tracks";
            /** @description Whether pictures are left out. */
            audioOnly?: boolean;
            /**
             * @description Of a composite: everyone in equal size (the default), or the speaker large.
             * @enum {string}
             */
            layout?: "grid" | "speaker";
            /** @description The recording stops by itself after this time. */
            maxDurationSeconds?: number;
            /** @description Application-defined. At most 16 KiB of JSON, measured as a read returns it, with numbers written in full. */
            metadata?: {
                [key: string]: unknown;
            };
        };
        Recording: {
            /** @description Recording identifier, `rec_…`. */
            id: string;
            roomId: string;
            /**
             * @description `composite`: one file of everything, 1280×720. `tracks`: a file for each track, and another one after each reconnection.
             * @enum {string}
             */
            mode: "composite" | "tracks";
            audioOnly: boolean;
            layout: ("grid" | "speaker") | null;
            participantId: string | null;
            metadata: {
                [key: string]: unknown;
            };
            maxDurationSeconds: number;
            /**
             * @description `recording` → `processing` (stopped) → `completed` or `failed`.
             * @enum {string}
             */
            status: "recording" | "processing" | "completed" | "failed";
            /** @description Progress of the processing, 0 to 100. */
            progress: number;
            queuePosition: number | null;
            lastError: {
                code: string;
                message: string;
            } | null;
            /**
             * Format: date-time
             * @description Begin of the recording.
             */
            startedAt: string;
            endedAt: string | null;
            completedAt: string | null;
            durationMs: number | null;
            /** @description Media that is in no file. */
            gaps: components["schemas"]["RecordingGap"][];
            /** @description In the order in which they were made. */
            files: components["schemas"]["RecordingFile"][];
        };
        RecordingCompletedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "recording.completed";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                recording: components["schemas"]["Recording"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        RecordingFailedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "recording.failed";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                recording: components["schemas"]["Recording"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        RecordingFile: {
            /** @description File identifier, `recf_…`. */
            id: string;
            /** @enum {string} */
            kind: "composite" | "track";
            participantId: string | null;
            trackId: string | null;
            source: ("microphone" | "camera" | "screen" | "screen_audio") | null;
            /** @description A track is `audio/webm` (Opus) or `video/webm` (VP8), a composite also `audio/mp4` (AAC) or `video/mp4` (H.264, AAC). */
            contentType: string;
            bytes: number;
            sha256: string;
            /** @description Begin of the file in the recording, in milliseconds. */
            startMs: number;
            durationMs: number;
            width: number | null;
            height: number | null;
        };
        RecordingGap: {
            startMs: number;
            durationMs: number;
            /** @enum {string} */
            reason: "media_server_lost" | "codec_unsupported";
        };
        RecordingLink: {
            /** @description Needs no API key. Supports ranges, so players can seek. */
            url: string;
            /**
             * Format: date-time
             * @description Until when the link works.
             */
            expiresAt: string;
        };
        RecordingPage: {
            data: components["schemas"]["Recording"][];
            nextCursor: string | null;
        };
        RecordingStartedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "recording.started";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                recording: components["schemas"]["Recording"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        RecordingStoppedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "recording.stopped";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                recording: components["schemas"]["Recording"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        Room: {
            /** @description Room identifier, `room_…`. */
            id: string;
            projectId: string;
            environmentId: string;
            name: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * @description `created` → `active` (a participant joined) → `ending` (the end was accepted) → `ended` (the clean-up is complete).
             * @enum {string}
             */
            status: "created" | "active" | "ending" | "ended";
            maxParticipants: number;
            emptyTimeoutSeconds: number | null;
            /** @description The recording that starts with the first participant. Null: none. */
            record: components["schemas"]["RecordRoom"] | null;
            /**
             * @description Whether clients must encrypt their media end to end. Such a room cannot be recorded. Fixed at the creation.
             * @enum {string}
             */
            encryption: "none" | "required";
            /** @description Whether participants wait in the lobby until they are admitted, unless the request for their token says otherwise. A change holds for tokens that are issued later. */
            waitingRoom: boolean;
            /**
             * Format: date-time
             * @description When the room was created.
             */
            createdAt: string;
            startedAt: string | null;
            endedAt: string | null;
            recordingSince: string | null;
            /** @description Participants in the room at this moment, also the ones that lost their connection a moment ago. */
            participantCount: number;
        };
        RoomCreatedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "room.created";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["Room"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        RoomEndedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "room.ended";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["Room"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        RoomMedia: {
            /** @description The media servers of the room, its own first. Empty before anybody has joined, and in an ended room. */
            nodes: components["schemas"]["RoomMediaNode"][];
            /** @description Feeds that one media server of the room sends to another, newest first, at most 100. */
            forwards: components["schemas"]["RoomMediaForward"][];
            /** @description All forwards of the room. */
            forwardCount: number;
        };
        RoomMediaForward: {
            /** @description The participant whose tracks are forwarded. */
            participantId: string;
            fromNodeId: string;
            /** @description The media server on which somebody receives them. */
            toNodeId: string;
            /** @enum {string} */
            state: "opening" | "up" | "closing";
            /** @description Tracks that are forwarded. Zero while it opens. */
            streams: number;
            /**
             * Format: date-time
             * @description When a gateway opened it.
             */
            createdAt: string;
        };
        RoomMediaNode: {
            /** @description Name of the media server. */
            id: string;
            region: string | null;
            state: ("up" | "down") | null;
            /** @description Sessions of the room on this media server. */
            sessions: number;
        };
        RoomPage: {
            data: components["schemas"]["Room"][];
            nextCursor: string | null;
        };
        RoomStartedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "room.started";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["Room"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        RoomUpdatedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "room.updated";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["Room"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        /** @description A durable clean-up that can be polled. */
        RuntimeOperation: {
            /** @description Operation identifier, `op_…`. */
            id: string;
            /** @enum {string} */
            kind: "room.end" | "participant.remove" | "participant.move" | "recording.process" | "recording.delete";
            /**
             * @description `pending` until the operation is `completed` or `failed`.
             * @enum {string}
             */
            status: "pending" | "completed" | "failed";
            /** @description Attempts of all runs. An attempt counts when it begins. */
            attempts: number;
            lastError: {
                code: string;
                message: string;
            } | null;
            completedAt: string | null;
        };
        SentMessage: {
            /**
             * Format: date-time
             * @description The `sentAt` of the message.
             */
            sentAt: string;
            /** @description Number of participants in the room that the message is for. */
            recipients: number;
        };
        Session: {
            /** @description Session identifier, `sess_…`. */
            id: string;
            roomId: string;
            participantId: string;
            /**
             * Format: date-time
             * @description When the session began.
             */
            joinedAt: string;
            leftAt: string | null;
            reason: ("left" | "removed" | "room_ended" | "connection_lost" | "superseded" | "moved") | null;
            permissions: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
            /** @description The tracks that the session publishes, and the latest 100 that it has published. */
            tracks: components["schemas"]["SessionTrack"][];
            quality: components["schemas"]["SessionQuality"] | null;
        };
        SessionPage: {
            data: components["schemas"]["Session"][];
            nextCursor: string | null;
        };
        SessionQuality: {
            /**
             * @description The worst level that lasted for at least a second.
             * @enum {string}
             */
            worst: "good" | "fair" | "poor" | "lost";
            /** @description Whether media went through a TURN server. */
            relay: boolean;
            seconds: {
                /** @description Seconds with good quality. */
                good: number;
                /** @description Seconds with fair quality. */
                fair: number;
                /** @description Seconds with poor quality. */
                poor: number;
                /** @description Seconds without a connection. */
                lost: number;
                /** @description Seconds among these with media through a TURN server. */
                relayed: number;
            };
        };
        SessionTrack: {
            trackId: string;
            /** @enum {string} */
            kind: "audio" | "video";
            /** @enum {string} */
            source: "microphone" | "camera" | "screen" | "screen_audio";
            /**
             * Format: date-time
             * @description When the track was published.
             */
            publishedAt: string;
            unpublishedAt: string | null;
        };
        SignatureContract: {
            /** @constant */
            version: "v1";
            /** @constant */
            algorithm: "HMAC-SHA256";
            /** @constant */
            signatureHeader: "x-service-signature";
            /** @constant */
            deliveryIdHeader: "x-service-delivery-id";
            /** @constant */
            replayCountHeader: "x-service-replay-count";
            /** @constant */
            secretVersionHeader: "x-service-signing-key-version";
            /** @constant */
            signedContent: "The ASCII bytes of \"timestamp.deliveryId.replayCount.\" followed by the exact raw request body bytes.";
            /** @constant */
            signatureFormat: "t=<Unix seconds>,v1=<lowercase hexadecimal HMAC>";
            /** @constant */
            secretEncoding: "The complete signing secret, including its whsec_ prefix, is used as UTF-8 bytes for the HMAC key.";
            /** @constant */
            toleranceSeconds: 300;
            /** @constant */
            deduplication: "A valid signature does not prevent duplicate processing. Store the event id atomically with the result of the business processing; retries and replays keep the same event id and delivery id.";
            /** @constant */
            replay: "An explicit replay increments the signed replay count and resets the retry budget. It creates no new business event.";
            /** @constant */
            attemptsPerRun: 8;
            /** @constant */
            maximumExplicitReplays: 100;
            /** @constant */
            concurrencyPerWorker: 4;
            /** @constant */
            leaseSeconds: 120;
            /**
             * @example [
             *       5,
             *       30,
             *       120,
             *       600,
             *       1800,
             *       3600,
             *       21600
             *     ]
             */
            backoffSeconds: number[];
            /** @constant */
            backoffJitter: "Each retry delay gets up to 20 percent additional random jitter.";
            /** @constant */
            retryPolicy: "DNS and network failures, HTTP 408, 425, 429 and 5xx are retried. Other HTTP failures and unsafe destinations are terminal. Automatic retries use the original delivery URL.";
            /** @constant */
            deliveryDeadlineSeconds: 10;
            /** @constant */
            dnsDeadlineSeconds: 5;
            /** @constant */
            maximumRunAgeDays: 7;
            /** @constant */
            terminalRetentionDays: 30;
            /** @constant */
            retention: "Deliveries and attempt logs are kept for 30 days after the most recent terminal outcome. Events are kept while any delivery references them.";
            /** @constant */
            replayInput: "The caller supplies expectedReplayCount, taken from the current delivery record. Pending or delivering records cannot be replayed.";
            /** @constant */
            replayDestination: "A replay uses the endpoint's current URL and signing secret.";
            /** @constant */
            verification: "Reject malformed headers and timestamps, and a timestamp more than 300 seconds from your clock. Verify timestamp, delivery id, replay count and signature against the raw bytes before parsing JSON, and compare signatures in constant time.";
        };
        StoredParticipant: {
            /** @description Participant identifier, `part_…`. */
            id: string;
            roomId: string;
            externalId: string | null;
            name: string;
            metadata: {
                [key: string]: unknown;
            };
            /** @description The `role` of the token request, by default `participant`. */
            role: string;
            /**
             * Format: date-time
             * @description When the participant first connected. Before that, when its token was issued.
             */
            joinedAt: string;
            leftAt: string | null;
        };
        StoredRoom: {
            /** @description Room identifier, `room_…`. */
            id: string;
            projectId: string;
            environmentId: string;
            name: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * @description `created` → `active` (a participant joined) → `ending` (the end was accepted) → `ended` (the clean-up is complete).
             * @enum {string}
             */
            status: "created" | "active" | "ending" | "ended";
            maxParticipants: number;
            emptyTimeoutSeconds: number | null;
            /** @description The recording that starts with the first participant. Null: none. */
            record: components["schemas"]["RecordRoom"] | null;
            /**
             * @description Whether clients must encrypt their media end to end. Such a room cannot be recorded. Fixed at the creation.
             * @enum {string}
             */
            encryption: "none" | "required";
            /** @description Whether participants wait in the lobby until they are admitted, unless the request for their token says otherwise. A change holds for tokens that are issued later. */
            waitingRoom: boolean;
            /**
             * Format: date-time
             * @description When the room was created.
             */
            createdAt: string;
            startedAt: string | null;
            endedAt: string | null;
            recordingSince: string | null;
        };
        Track: {
            trackId: string;
            /** @enum {string} */
            kind: "audio" | "video";
            /** @enum {string} */
            source: "microphone" | "camera" | "screen" | "screen_audio";
        };
        TrackMutedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "track.muted";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                /** @description Session of the participant, `sess_…`. */
                sessionId: string;
                track: components["schemas"]["Track"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        TrackPublishedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "track.published";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                /** @description Session of the participant, `sess_…`. */
                sessionId: string;
                track: components["schemas"]["Track"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        TrackUnpublishedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "track.unpublished";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                room: components["schemas"]["StoredRoom"];
                participant: components["schemas"]["StoredParticipant"];
                /** @description Session of the participant, `sess_…`. */
                sessionId: string;
                track: components["schemas"]["Track"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        TriedFilterPath: {
            path: string;
            /** @description The value of the event at the path; null without one. */
            value: unknown;
            /** @description Whether it is one of the values of the filter. */
            matches: boolean;
        };
        TriedWebhookFilter: {
            /** @enum {string} */
            eventType: "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test";
            /** @description Whether `events` of the endpoint has the type of the event. */
            subscribed: boolean;
            /** @description Whether the event matches all paths of the filter. */
            matches: boolean;
            paths: components["schemas"]["TriedFilterPath"][];
        };
        TurnCredentials: {
            /**
             * Format: date-time
             * @description When the credentials expire.
             */
            expiresAt: string;
            username: string;
            ttlSeconds: number;
            iceServers: components["schemas"]["IceServer"][];
        };
        UpdatedParticipant: {
            /** @description Participant identifier, `part_…`. */
            id: string;
            roomId: string;
            externalId: string | null;
            name: string;
            metadata: {
                [key: string]: unknown;
            };
            /** @description The `role` of the token request, by default `participant`. */
            role: string;
            /**
             * Format: date-time
             * @description When the participant first connected. Before that, when its token was issued.
             */
            joinedAt: string;
            leftAt: string | null;
            /** @description All permissions of the participant. */
            permissions: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
        };
        Usage: {
            /** Format: date */
            from: string;
            /** Format: date */
            to: string;
            /** @enum {string} */
            interval: "day";
            days: components["schemas"]["UsageDay"][];
        };
        UsageDay: {
            /**
             * Format: date
             * @description UTC day.
             */
            day: string;
            /** @description Rooms that had a participant. */
            rooms: number;
            /** @description Duration of all sessions together, within the day. */
            participantSeconds: number;
            /** @description The same in minutes. */
            participantMinutes: number;
            /** @description Maximum number of participants at one instant, over all rooms. */
            peakParticipants: number;
            relayShare: number | null;
            /** @description Webhook deliveries that were created. */
            deliveries: number;
            /** @description Duration of the recordings that ended on the day. */
            recordedMinutes: number;
            /** @description Duration of the files of recordings that were completed on the day. */
            convertedMinutes: number;
            /** @description Size of these files. */
            recordedBytes: number;
        };
        WebhookAttempt: {
            /** @description Attempt identifier, `att_…`. */
            id: string;
            deliveryId: string;
            /** @description The run: 0, or the number of the replay. */
            replayCount: number;
            /** @description 1 to 8 within the run. */
            attempt: number;
            url: string;
            signingKeyVersion: number;
            /**
             * Format: date-time
             * @description When the attempt began.
             */
            startedAt: string;
            durationMs: number;
            /**
             * @description The stage in which the attempt ended.
             * @enum {string}
             */
            outcome: "success" | "dns" | "connect" | "tls" | "timeout" | "response" | "blocked";
            errorCode: string | null;
            statusCode: number | null;
            address: string | null;
            timings: {
                dnsMs: number | null;
                connectMs: number | null;
                tlsMs: number | null;
                firstByteMs: number | null;
            };
            responseBody: string | null;
            /** @description Whether the response was longer than `responseBody`. */
            responseTruncated: boolean;
            responseHeaders: {
                [key: string]: string;
            } | null;
            requestHeaders: {
                [key: string]: string;
            } | null;
            /** @description Addresses of the host that refused a connection before `address` was tried, at most 3. */
            earlierAddresses: {
                address: string;
                errorCode: string | null;
                durationMs: number;
            }[];
            /** @description The time of the attempt as a waterfall: its phases one after another. A phase that did not happen is left out, such as `connect` on a connection that was kept alive. */
            phases: {
                /** @enum {string} */
                phase: "dns" | "earlier_addresses" | "connect" | "tls" | "first_byte" | "body";
                /** @description From the beginning of the attempt, in milliseconds. */
                startMs: number;
                /** @description In milliseconds. */
                durationMs: number;
                /** @description Whether the attempt ended in this phase without an answer. */
                failed: boolean;
            }[];
            diagnosis: components["schemas"]["WebhookDiagnosis"] | null;
        };
        WebhookAttemptPage: {
            data: components["schemas"]["WebhookAttempt"][];
            nextCursor: string | null;
        };
        WebhookDelivery: {
            /** @description Delivery identifier, `dlv_…`. The same for all retries and replays. */
            id: string;
            eventId: string;
            /** @enum {string} */
            eventType: "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test";
            endpointId: string;
            roomId: string | null;
            /** @description URL of this run. Before its first attempt, the endpoint's current URL. */
            url: string;
            /** @enum {string} */
            status: "pending" | "delivering" | "succeeded" | "failed";
            failureReason: ("attempts_exhausted" | "rejected" | "unsafe_destination" | "run_expired" | "endpoint_deleted") | null;
            /** @description Explicit replays so far. Send it as `expectedReplayCount`. */
            replayCount: number;
            /** @description Attempts of this run. An attempt counts when it begins. */
            attempts: number;
            lastStatusCode: number | null;
            lastErrorCode: string | null;
            nextAttemptAt: string | null;
            blockedBy: string | null;
            /** @description Version of the secret that signs this run. */
            signingKeyVersion: number;
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            completedAt: string | null;
        };
        WebhookDeliveryDetail: {
            /** @description Delivery identifier, `dlv_…`. The same for all retries and replays. */
            id: string;
            eventId: string;
            /** @enum {string} */
            eventType: "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test";
            endpointId: string;
            roomId: string | null;
            /** @description URL of this run. Before its first attempt, the endpoint's current URL. */
            url: string;
            /** @enum {string} */
            status: "pending" | "delivering" | "succeeded" | "failed";
            failureReason: ("attempts_exhausted" | "rejected" | "unsafe_destination" | "run_expired" | "endpoint_deleted") | null;
            /** @description Explicit replays so far. Send it as `expectedReplayCount`. */
            replayCount: number;
            /** @description Attempts of this run. An attempt counts when it begins. */
            attempts: number;
            lastStatusCode: number | null;
            lastErrorCode: string | null;
            nextAttemptAt: string | null;
            blockedBy: string | null;
            /** @description Version of the secret that signs this run. */
            signingKeyVersion: number;
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            completedAt: string | null;
            event: components["schemas"]["Event"];
            /** @description The exact text of the request body, which the signature covers. */
            body: string;
            lastAttempt: components["schemas"]["WebhookAttempt"] | null;
            diagnosis: components["schemas"]["WebhookDiagnosis"] | null;
        };
        WebhookDeliveryPage: {
            data: components["schemas"]["WebhookDelivery"][];
            nextCursor: string | null;
        };
        /** @description An explanation for people. Programs use `outcome`, `errorCode` and `failureReason`. */
        WebhookDiagnosis: {
            /** @description Why it failed, in one sentence. */
            summary: string;
            /** @description Advice to the owner of the receiver. */
            advice: string;
        };
        WebhookDisabledEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "webhook.disabled";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                webhook: components["schemas"]["WebhookEndpoint"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        WebhookEndpoint: {
            /** @description Endpoint identifier, `whep_…`. */
            id: string;
            url: string;
            /** @description Event types that the endpoint receives. `*` means all types, including types of later versions. */
            events: ("*" | "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test")[];
            description: string | null;
            /** @description Deliveries are held back while the endpoint is disabled. */
            enabled: boolean;
            disabledReason: string | null;
            /** @description Version of the secret that signs new runs. */
            signingKeyVersion: number;
            nextSigningKeyVersion: number | null;
            nextActivatesAt: string | null;
            /**
             * @description `room`: the events of a room are sent one at a time, in their order. The next one waits until the one before it has succeeded or failed for good. `none`: nothing waits.
             * @enum {string}
             */
            ordering: "none" | "room";
            maxPerSecond: number | null;
            maxConcurrent: number | null;
            /** @description Whether deliveries also carry the headers of the Standard Webhooks specification: `webhook-id`, `webhook-timestamp` and `webhook-signature`. */
            standardWebhooks: boolean;
            /** @description Whether deliveries that the receiver rejects, with a status that is final otherwise, are retried like after 503. 410 stays final. */
            retryRejected: boolean;
            /** @description Names of the headers that each attempt carries. All values are shown as `***`. */
            headers: {
                [key: string]: string;
            };
            /** @description Only events whose `data` matches make deliveries: each path, such as `room.metadata.team`, has to have one of its values, or begin with `{ "prefix": … }`. An array matches with one of its elements. At most 8 paths of 8 values. Null: all events of the types in `events`. */
            filter: {
                [key: string]: (string | number | boolean | null | {
                    prefix: string;
                })[];
            } | null;
            failingSince: string | null;
            /**
             * Format: date-time
             * @description When the endpoint was registered.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When the endpoint was last changed through the API or disabled.
             */
            updatedAt: string;
        };
        WebhookEndpointFailingEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "webhook.endpoint.failing";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                webhook: components["schemas"]["WebhookEndpoint"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        WebhookEndpointPage: {
            data: components["schemas"]["WebhookEndpoint"][];
            nextCursor: string | null;
        };
        WebhookEndpointRecoveredEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "webhook.endpoint.recovered";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                webhook: components["schemas"]["WebhookEndpoint"];
                /**
                 * Format: date-time
                 * @description Time of the first failed attempt of the series that has ended.
                 */
                failedSince: string;
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        WebhookEndpointWithSecret: {
            /** @description Endpoint identifier, `whep_…`. */
            id: string;
            url: string;
            /** @description Event types that the endpoint receives. `*` means all types, including types of later versions. */
            events: ("*" | "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test")[];
            description: string | null;
            /** @description Deliveries are held back while the endpoint is disabled. */
            enabled: boolean;
            disabledReason: string | null;
            /** @description Version of the secret that signs new runs. */
            signingKeyVersion: number;
            nextSigningKeyVersion: number | null;
            nextActivatesAt: string | null;
            /**
             * @description `room`: the events of a room are sent one at a time, in their order. The next one waits until the one before it has succeeded or failed for good. `none`: nothing waits.
             * @enum {string}
             */
            ordering: "none" | "room";
            maxPerSecond: number | null;
            maxConcurrent: number | null;
            /** @description Whether deliveries also carry the headers of the Standard Webhooks specification: `webhook-id`, `webhook-timestamp` and `webhook-signature`. */
            standardWebhooks: boolean;
            /** @description Whether deliveries that the receiver rejects, with a status that is final otherwise, are retried like after 503. 410 stays final. */
            retryRejected: boolean;
            /** @description Names of the headers that each attempt carries. All values are shown as `***`. */
            headers: {
                [key: string]: string;
            };
            /** @description Only events whose `data` matches make deliveries: each path, such as `room.metadata.team`, has to have one of its values, or begin with `{ "prefix": … }`. An array matches with one of its elements. At most 8 paths of 8 values. Null: all events of the types in `events`. */
            filter: {
                [key: string]: (string | number | boolean | null | {
                    prefix: string;
                })[];
            } | null;
            failingSince: string | null;
            /**
             * Format: date-time
             * @description When the endpoint was registered.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When the endpoint was last changed through the API or disabled.
             */
            updatedAt: string;
            /** @description Signing secret, `whsec_…`, of `nextSigningKeyVersion` or, if that is null, of `signingKeyVersion`. Reads do not return it. */
            signingSecret: string;
        };
        WebhookRecovery: {
            /** @description Recovery identifier, `rcv_…`. */
            id: string;
            endpointId: string;
            /**
             * Format: date-time
             * @description Start of the window: deliveries created from this time on.
             */
            since: string;
            /**
             * Format: date-time
             * @description End of the window: deliveries created up to this time.
             */
            until: string;
            /** @description Whether the recovery only counts and changes nothing. */
            dryRun: boolean;
            /** @description Whether pending deliveries are brought forward, too. */
            includePending: boolean;
            /** @enum {string} */
            status: "pending" | "completed" | "cancelled";
            /** @description Failed and pending deliveries found in the window so far. */
            matched: number;
            /** @description Failed deliveries that were replayed. 0 with `dryRun`. */
            replayed: number;
            /** @description Pending deliveries whose next attempt was brought forward to now. 0 with `dryRun`. */
            woken: number;
            /** @description Failed deliveries that were not replayed: they have 100 replays, their event was erased, or another client replayed them meanwhile. */
            skipped: number;
            /**
             * Format: date-time
             * @description When the recovery was created.
             */
            createdAt: string;
            completedAt: string | null;
        };
        WebhookRecoveryPage: {
            data: components["schemas"]["WebhookRecovery"][];
            nextCursor: string | null;
        };
        WebhookStats: {
            /**
             * Format: date-time
             * @description Begin of the first interval.
             */
            from: string;
            /**
             * Format: date-time
             * @description End of the time.
             */
            to: string;
            /** @enum {string} */
            interval: "minute" | "hour" | "day";
            total: components["schemas"]["WebhookStatsTotal"];
            intervals: components["schemas"]["WebhookStatsInterval"][];
        };
        WebhookStatsInterval: {
            /**
             * Format: date-time
             * @description Begin of the interval.
             */
            start: string;
            /** @description Attempts that began in the time and have ended. */
            attempts: number;
            outcomes: components["schemas"]["AttemptOutcomes"];
            p50Ms: number | null;
            p95Ms: number | null;
        };
        WebhookStatsTotal: {
            /** @description Attempts that began in the time and have ended. */
            attempts: number;
            outcomes: components["schemas"]["AttemptOutcomes"];
            p50Ms: number | null;
            p95Ms: number | null;
        };
        WebhookTestEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "webhook.test";
            /** @constant */
            apiVersion: "v1";
            /**
             * Format: date-time
             * @description When the event happened.
             */
            createdAt: string;
            projectId: string;
            environmentId: string;
            sequence: number | null;
            /** @description The resources of the event, each as the API returns it; the room of an event of a participant, a track or an operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more. */
            data: {
                webhook: components["schemas"]["WebhookEndpoint"];
            } & {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When the participant's personal data was erased from the event. No delivery carries this field.
             */
            erasedAt?: string;
        };
        WebhooksOverview: {
            /** @description The deliveries that were created in the last hour, by their present status. */
            deliveries: {
                /**
                 * Format: date-time
                 * @description Beginning of the first bucket, one hour ago.
                 */
                since: string;
                pending: number;
                delivering: number;
                succeeded: number;
                failed: number;
                /** @description Whether there are more: then only the newest ones are counted. */
                capped: boolean;
                buckets: {
                    /**
                     * Format: date-time
                     * @description Beginning of five minutes.
                     */
                    from: string;
                    pending: number;
                    delivering: number;
                    succeeded: number;
                    failed: number;
                }[];
            };
            oldestDueAt: string | null;
            endpoints: {
                enabled: number;
                disabled: number;
            };
            /** @description Enabled endpoints of which all attempts have failed for 15 minutes, as `webhook.endpoint.failing` reports. The endpoint that fails for the longest time comes first. */
            failingEndpoints: {
                endpointId: string;
                url: string;
                enabled: boolean;
                /**
                 * Format: date-time
                 * @description Beginning of the present series of failures.
                 */
                failingSince: string;
                lastFailedAt: string | null;
            }[];
            /** @description How many deliveries of the last hour were tried, and of how many of these the latest attempt has failed. Endpoints without such deliveries are left out. */
            failureRates: {
                endpointId: string;
                tried: number;
                failed: number;
            }[];
        };
    };
    responses: {
        /** @description `CONSOLE_SESSION_LIMIT_REACHED`: The environment has 100 open console sessions and links. End one with "rtc console sessions revoke". */
        ConsoleSessionLimitReached: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `CONSOLE_SESSION_NOT_FOUND`: The request has an API key, not a console session. */
        ConsoleSessionNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `CROSS_SITE_REQUEST`: A request with a console session must come from the console. Other programs send an API key. */
        CrossSiteRequest: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `CROSS_SITE_REQUEST`: A request with a console session must come from the console. Other programs send an API key.
         *
         *     `INSUFFICIENT_SCOPE`: The API key lacks the scope that this operation needs.
         */
        CrossSiteRequestOrInsufficientScope: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `CROSS_SITE_REQUEST`: A request with a console session must come from the console. Other programs send an API key. */
        CrossSiteRequestWithoutRateLimit: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `DELIVERY_NOT_PENDING`: The delivery is finished. A finished delivery can be replayed.
         *
         *     `DELIVERY_IN_FLIGHT`: The delivery is being sent at this moment.
         *
         *     `WEBHOOK_DISABLED`: The webhook endpoint is disabled.
         */
        DeliveryNotPendingOrDeliveryInFlightOrWebhookDisabled: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `EVENT_NOT_FOUND`: Event not found in this environment. */
        EventNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `IDEMPOTENCY_CONFLICT`: A request with this Idempotency-Key is in progress. Try again shortly. */
        IdempotencyConflict: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `IDEMPOTENCY_CONFLICT`: A request with this Idempotency-Key is in progress. Try again shortly.
         *
         *     `ROOM_ENCRYPTED`: The room is encrypted end to end. The server cannot record it.
         */
        IdempotencyConflictOrRoomEncrypted: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `IDEMPOTENCY_CONFLICT`: A request with this Idempotency-Key is in progress. Try again shortly.
         *
         *     `ROOM_ENDED`: The room is ending or has ended.
         */
        IdempotencyConflictOrRoomEnded: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `IDEMPOTENCY_CONFLICT`: A request with this Idempotency-Key is in progress. Try again shortly.
         *
         *     `ROOM_ENDED`: The room is ending or has ended.
         *
         *     `ROOM_ENCRYPTED`: The room is encrypted end to end. The server cannot record it.
         *
         *     `RECORDING_ACTIVE`: A recording is still running. Stop it first.
         */
        IdempotencyConflictOrRoomEndedOrRoomEncryptedOrRecordingActive: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `IDEMPOTENCY_CONFLICT`: A request with this Idempotency-Key is in progress. Try again shortly.
         *
         *     `ROOM_ENDED`: The room is ending or has ended.
         *
         *     `ROOM_FULL`: The room has as many participants as it may have.
         *
         *     `ENCRYPTION_DIFFERS`: One of the rooms is encrypted end to end, and the other one is not.
         *
         *     `PARTICIPANT_REMOVED`: The participant was removed from the room.
         *
         *     `PARTICIPANT_MOVED`: The participant is moving, or has moved, to another room.
         *
         *     `PARTICIPANT_NOT_CONNECTED`: The participant has no session in the room.
         */
        IdempotencyConflictOrRoomEndedOrRoomFullOrEncryptionDiffersOrParticipantRemovedOrParticipantMovedOrParticipantNotConnected: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `IDEMPOTENCY_CONFLICT`: A request with this Idempotency-Key is in progress. Try again shortly.
         *
         *     `WEBHOOK_LIMIT_REACHED`: The environment already has 50 webhook endpoints.
         */
        IdempotencyConflictOrWebhookLimitReached: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `IDEMPOTENCY_KEY_REUSED`: This Idempotency-Key was used with a different request body. */
        IdempotencyKeyReused: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `INSUFFICIENT_SCOPE`: The API key lacks the scope that this operation needs.
         *
         *     `CROSS_SITE_REQUEST`: A request with a console session must come from the console. Other programs send an API key.
         */
        InsufficientScopeOrCrossSiteRequest: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `INTERNAL`: Internal error. Quote the requestId when you report it. */
        Internal: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `INTERNAL`: Internal error. Quote the requestId when you report it. */
        InternalWithoutRateLimit: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `METHOD_NOT_ALLOWED`: The route does not support this method. See the Allow header. */
        MethodNotAllowed: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                allow: components["headers"]["Allow"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `NO_SECRET_ROTATION`: No new secret of the endpoint waits for its activation. */
        NoSecretRotation: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `PAYLOAD_TOO_LARGE`: The request body is too large. */
        PayloadTooLarge: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `RATE_LIMITED`: Too many requests. See Retry-After. */
        RateLimited: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                "retry-after": components["headers"]["RetryAfter"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `RECORDING_ACTIVE`: A recording is still running. Stop it first. */
        RecordingActive: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `RECORDING_NOT_FOUND`: Recording or file not found in this environment. */
        RecordingNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `REPLAY_COUNT_MISMATCH`: The replay count does not match. See details.
         *
         *     `DELIVERY_NOT_TERMINAL`: The delivery is pending or delivering. Only finished deliveries can be replayed.
         *
         *     `EVENT_ERASED`: Personal data of the event was erased. It cannot be sent again.
         *
         *     `REPLAY_LIMIT_REACHED`: The delivery has been replayed 100 times.
         *
         *     `WEBHOOK_DISABLED`: The webhook endpoint is disabled.
         */
        ReplayCountMismatchOrDeliveryNotTerminalOrEventErasedOrReplayLimitReachedOrWebhookDisabled: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_ENDED`: The room is ending or has ended.
         *
         *     `NO_HANDLER`: The client of the participant has no handler for this method.
         *
         *     `HANDLER_FAILED`: The handler at the client of the participant has failed.
         *
         *     `RESPONSE_TOO_LARGE`: The answer of the participant has more than 16 KiB.
         *
         *     `PARTICIPANT_TIMED_OUT`: The participant is in the room, and did not answer in time. It may have handled the request.
         */
        RoomEndedOrNoHandlerOrHandlerFailedOrResponseTooLargeOrParticipantTimedOut: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_ENDED`: The room is ending or has ended.
         *
         *     `PARTICIPANT_REMOVED`: The participant was removed from the room.
         *
         *     `PARTICIPANT_MOVED`: The participant is moving, or has moved, to another room.
         */
        RoomEndedOrParticipantRemovedOrParticipantMoved: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_ENDED`: The room is ending or has ended.
         *
         *     `ROOM_ENCRYPTED`: The room is encrypted end to end. The server cannot record it.
         */
        RoomEndedOrRoomEncrypted: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_ENDED`: The room is ending or has ended.
         *
         *     `ROOM_FULL`: The room has as many participants as it may have.
         *
         *     `PARTICIPANT_REMOVED`: The participant was removed from the room.
         */
        RoomEndedOrRoomFullOrParticipantRemoved: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `ROOM_NOT_FOUND`: Room not found in this environment. */
        RoomNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_NOT_FOUND`: Room not found in this environment.
         *
         *     `OPERATION_NOT_FOUND`: No runtime operation exists for this resource.
         */
        RoomNotFoundOrOperationNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_NOT_FOUND`: Room not found in this environment.
         *
         *     `PARTICIPANT_NOT_FOUND`: Participant not found in this room.
         */
        RoomNotFoundOrParticipantNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_NOT_FOUND`: Room not found in this environment.
         *
         *     `PARTICIPANT_NOT_FOUND`: Participant not found in this room.
         *
         *     `OPERATION_NOT_FOUND`: No runtime operation exists for this resource.
         */
        RoomNotFoundOrParticipantNotFoundOrOperationNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `ROOM_NOT_FOUND`: Room not found in this environment.
         *
         *     `PARTICIPANT_NOT_FOUND`: Participant not found in this room.
         *
         *     `TRACK_NOT_FOUND`: The participant publishes no such track at present.
         */
        RoomNotFoundOrParticipantNotFoundOrTrackNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `ROUTE_NOT_FOUND`: Route not found. */
        RouteNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `SECRET_ROTATION_WAITS`: A new secret of the endpoint waits for its activation. Activate or cancel that rotation first. */
        SecretRotationWaits: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `SESSION_NOT_FOUND`: Active session not found in this room. */
        SessionNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `UNAUTHENTICATED`: Send a valid API key as "Authorization: Bearer <API_KEY>". */
        Unauthenticated: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                "www-authenticate": components["headers"]["WwwAuthenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `UNAVAILABLE`: The database is temporarily unavailable. Try again shortly. */
        Unavailable: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                "retry-after": components["headers"]["RetryAfter"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `UNAVAILABLE`: The database is temporarily unavailable. Try again shortly.
         *
         *     `RECORDING_UNAVAILABLE`: The deployment cannot record at present: it lacks a store, a recorder, or an agent that records.
         */
        UnavailableOrRecordingUnavailable: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                "retry-after": components["headers"]["RetryAfter"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `UNAVAILABLE`: The database is temporarily unavailable. Try again shortly. */
        UnavailableWithoutRateLimit: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                "retry-after": components["headers"]["RetryAfter"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `UNSUPPORTED_MEDIA_TYPE`: Send the body as "Content-Type: application/json" in UTF-8. */
        UnsupportedMediaType: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `VALIDATION_FAILED`: The request is invalid.
         *
         *     `MALFORMED_JSON`: The request body is not valid JSON.
         */
        ValidationFailedOrMalformedJson: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `WEBHOOK_DISABLED`: The webhook endpoint is disabled. */
        WebhookDisabled: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `WEBHOOK_NOT_FOUND`: Webhook endpoint not found in this environment. */
        WebhookNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `WEBHOOK_NOT_FOUND`: Webhook endpoint not found in this environment.
         *
         *     `DELIVERY_NOT_FOUND`: Delivery not found for this webhook endpoint.
         */
        WebhookNotFoundOrDeliveryNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `WEBHOOK_NOT_FOUND`: Webhook endpoint not found in this environment.
         *
         *     `EVENT_NOT_FOUND`: Event not found in this environment.
         */
        WebhookNotFoundOrEventNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `WEBHOOK_NOT_FOUND`: Webhook endpoint not found in this environment.
         *
         *     `RECOVERY_NOT_FOUND`: Recovery not found for this webhook endpoint.
         */
        WebhookNotFoundOrRecoveryNotFound: {
            headers: {
                "x-request-id": components["headers"]["RequestId"];
                ratelimit: components["headers"]["RateLimit"];
                "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Identifies the request in logs. The server keeps a well-formed `x-request-id` of the request. */
        RequestId: string;
        /** @description Seconds to wait before sending the request again. */
        RetryAfter: number;
        /** @description The authentication scheme. */
        WwwAuthenticate: "Bearer";
        /** @description The methods that the path accepts. */
        Allow: string;
        /** @description Present if the server repeats the first response for the same `Idempotency-Key`. */
        IdempotencyReplayed: "true";
        /** @description The preference that the server applied (RFC 7240). */
        PreferenceApplied: string;
        /** @description Requests left in the rate limit, and seconds until the limit is full again (draft-ietf-httpapi-ratelimit-headers-10). Absent if no limit is configured. */
        RateLimit: string;
        /** @description The rate limit: requests (`q`) per window in seconds (`w`). */
        RateLimitPolicy: string;
        /** @description The cookie of the console session: `HttpOnly`, `SameSite=Strict`, over https also `Secure`. */
        SetCookie: string;
        /** @description How long a verifier may cache the keys. */
        JwksCacheControl: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    readContext: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The project, environment, type and scopes of the key. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "apiVersion": "v1",
                     *       "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *       "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *       "keyId": "…",
                     *       "keyType": "secret",
                     *       "scopes": [
                     *         "rooms:create"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ApiContext"];
                };
            };
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["CrossSiteRequestWithoutRateLimit"];
            500: components["responses"]["InternalWithoutRateLimit"];
            503: components["responses"]["UnavailableWithoutRateLimit"];
        };
    };
    createConsoleSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description Whether the session gets only the scopes that end in `:read`.
                     * @default false
                     */
                    readOnly?: boolean;
                };
            };
        };
        responses: {
            /** @description The context of the session. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "set-cookie": components["headers"]["SetCookie"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "apiVersion": "v1",
                     *       "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *       "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *       "keyId": "…",
                     *       "keyType": "secret",
                     *       "scopes": [
                     *         "rooms:create"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ApiContext"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["CrossSiteRequestOrInsufficientScope"];
            409: components["responses"]["ConsoleSessionLimitReached"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    endConsoleSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session has ended. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "set-cookie": components["headers"]["SetCookie"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["CrossSiteRequest"];
            404: components["responses"]["ConsoleSessionNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listRooms: {
        parameters: {
            query?: {
                status?: "created" | "active" | "ending" | "ended";
                /** @description Returns only rooms with exactly this name. Trimmed, 1-120 characters. */
                name?: string;
                /** @description Returns only rooms whose names begin with this text, in the order of their names instead of newest first. Trimmed, 1-120 characters. */
                namePrefix?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of rooms. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *           "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *           "name": "Daily",
                     *           "metadata": {
                     *             "team": "blue",
                     *             "tags": [
                     *               "weekly"
                     *             ]
                     *           },
                     *           "status": "created",
                     *           "maxParticipants": 20,
                     *           "emptyTimeoutSeconds": 900,
                     *           "record": {
                     *             "mode": "composite"
                     *           },
                     *           "encryption": "none",
                     *           "waitingRoom": false,
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "startedAt": null,
                     *           "endedAt": null,
                     *           "recordingSince": null,
                     *           "participantCount": 1
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["RoomPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createRoom: {
        parameters: {
            query?: never;
            header?: {
                /** @description Kept for 24 hours. A request with the same key and body gets the first response again. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Name of the room. Trimmed, 1-120 characters. */
                    name: string;
                    /**
                     * @description Application-defined. At most 16 KiB of JSON, measured as a read returns it, with numbers written in full.
                     * @default {}
                     */
                    metadata?: {
                        [key: string]: unknown;
                    };
                    /**
                     * @description Maximum number of participants that are connected at the same time.
                     * @default 100
                     */
                    maxParticipants?: number;
                    /** @default null */
                    emptyTimeoutSeconds?: number | null;
                    /**
                     * @description Starts a recording with the first participant. Null: only requests start recordings.
                     * @default null
                     */
                    record?: components["schemas"]["RecordRoom"] | null;
                    /**
                     * @description Whether clients must encrypt their media end to end. Such a room cannot be recorded. Fixed at the creation.
                     * @default none
                     * @enum {string}
                     */
                    encryption?: "none" | "required";
                    /**
                     * @description Whether participants wait in the lobby until they are admitted, unless the request for their token says otherwise. A change holds for tokens that are issued later.
                     * @default false
                     */
                    waitingRoom?: boolean;
                };
            };
        };
        responses: {
            /** @description The room. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "idempotency-replayed": components["headers"]["IdempotencyReplayed"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *       "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *       "name": "Daily",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "status": "created",
                     *       "maxParticipants": 20,
                     *       "emptyTimeoutSeconds": 900,
                     *       "record": {
                     *         "mode": "composite"
                     *       },
                     *       "encryption": "none",
                     *       "waitingRoom": false,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "startedAt": null,
                     *       "endedAt": null,
                     *       "recordingSince": null,
                     *       "participantCount": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Room"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            409: components["responses"]["IdempotencyConflictOrRoomEncrypted"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrRecordingUnavailable"];
        };
    };
    readRoom: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The room. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *       "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *       "name": "Daily",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "status": "created",
                     *       "maxParticipants": 20,
                     *       "emptyTimeoutSeconds": 900,
                     *       "record": {
                     *         "mode": "composite"
                     *       },
                     *       "encryption": "none",
                     *       "waitingRoom": false,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "startedAt": null,
                     *       "endedAt": null,
                     *       "recordingSince": null,
                     *       "participantCount": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Room"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    endRoom: {
        parameters: {
            query?: never;
            header?: {
                /** @description `wait=N` waits up to N seconds (at most 10) for completion. `respond-async` does not wait (RFC 7240). */
                Prefer?: string;
            };
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The clean-up is pending: poll the runtime operation. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "preference-applied": components["headers"]["PreferenceApplied"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "kind": "room.end",
                     *       "status": "pending",
                     *       "attempts": 1,
                     *       "lastError": null,
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["RuntimeOperation"];
                };
            };
            /** @description The clean-up is complete. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "preference-applied": components["headers"]["PreferenceApplied"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateRoom: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Name of the room. Trimmed, 1-120 characters. */
                    name?: string;
                    /** @description Replaces the metadata. At most 16 KiB of JSON, measured as a read returns it, with numbers written in full. */
                    metadata?: {
                        [key: string]: unknown;
                    };
                    /** @description Maximum number of participants that are connected at the same time. A number below the present one removes no participant: joins are refused until enough have left. */
                    maxParticipants?: number;
                    emptyTimeoutSeconds?: number | null;
                    /** @description As at the creation. A change after the first participant has joined starts and stops nothing. */
                    record?: components["schemas"]["RecordRoom"] | null;
                    /** @description Whether participants wait in the lobby until they are admitted, unless the request for their token says otherwise. A change holds for tokens that are issued later. */
                    waitingRoom?: boolean;
                };
            };
        };
        responses: {
            /** @description The room. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *       "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *       "name": "Daily",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "status": "created",
                     *       "maxParticipants": 20,
                     *       "emptyTimeoutSeconds": 900,
                     *       "record": {
                     *         "mode": "composite"
                     *       },
                     *       "encryption": "none",
                     *       "waitingRoom": false,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "startedAt": null,
                     *       "endedAt": null,
                     *       "recordingSince": null,
                     *       "participantCount": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Room"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            409: components["responses"]["RoomEndedOrRoomEncrypted"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrRecordingUnavailable"];
        };
    };
    readRoomOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "kind": "room.end",
                     *       "status": "pending",
                     *       "attempts": 1,
                     *       "lastError": null,
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["RuntimeOperation"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrOperationNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readRoomMedia: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The media servers of the room. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "nodes": [
                     *         {
                     *           "id": "m1",
                     *           "region": "eu-west",
                     *           "state": null,
                     *           "sessions": 1
                     *         }
                     *       ],
                     *       "forwards": [
                     *         {
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "fromNodeId": "m1",
                     *           "toNodeId": "m2",
                     *           "state": "opening",
                     *           "streams": 1,
                     *           "createdAt": "2026-11-20T10:00:00.000Z"
                     *         }
                     *       ],
                     *       "forwardCount": 1
                     *     }
                     */
                    "application/json": components["schemas"]["RoomMedia"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    sendMessage: {
        parameters: {
            query?: never;
            header?: {
                /** @description Kept for 24 hours. A request with the same key and body gets the first response again. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Any JSON value, at most 16 KiB. */
                    data: unknown;
                    /** @description Participants that get the message. Everyone in the room by default. */
                    to?: string[];
                };
            };
        };
        responses: {
            /** @description The message is on its way. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "idempotency-replayed": components["headers"]["IdempotencyReplayed"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sentAt": "2026-11-20T10:00:00.000Z",
                     *       "recipients": 1
                     *     }
                     */
                    "application/json": components["schemas"]["SentMessage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            409: components["responses"]["IdempotencyConflictOrRoomEnded"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listTokens: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of tokens. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "tok_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "participantName": "Ada",
                     *           "permissions": [
                     *             "room:join",
                     *             "video:publish"
                     *           ],
                     *           "state": "unused",
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "expiresAt": "2026-11-20T10:00:00.000Z",
                     *           "usedAt": null,
                     *           "revokedAt": null
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["IssuedTokenPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    issueToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Name of the participant. Trimmed, 1-120 characters. */
                    participantName: string;
                    /**
                     * @description Permissions of the participant. Must include `room:join`.
                     * @default [
                     *       "room:join"
                     *     ]
                     */
                    permissions?: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
                    /**
                     * @description Initial participant metadata. At most 16 KiB of JSON, measured as a read returns it, with numbers written in full.
                     * @default {}
                     */
                    metadata?: {
                        [key: string]: unknown;
                    };
                    /**
                     * @description Lifetime of the token, in seconds.
                     * @default 600
                     */
                    ttlSeconds?: number;
                    /** @description Identifier of the user in your application. Trimmed, 1-255 characters. */
                    externalId?: string;
                    /**
                     * @description Name of the role for your application. It grants nothing: `permissions` do. Trimmed, 1-32 characters.
                     * @default participant
                     */
                    role?: string;
                    /** @description Region of the client, such as `eu-west`: its session goes to a media server of the nearest region first. Default: the region of its gateway. 1-32 lower-case letters, digits and inner hyphens. */
                    region?: string;
                    /** @description Whether the participant waits in the lobby until it is admitted. Default: `waitingRoom` of the room. Not with `participantId`. */
                    waiting?: boolean;
                    /** @description A participant of the room that the token is for. Without it, the call creates a new participant. The fields that are given change the participant as `updateParticipant` does; it keeps the others, its permissions too. */
                    participantId?: string;
                };
            };
        };
        responses: {
            /** @description The token. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "eyJhbGciOiJFUzI1NiIsImtpZCI6Ii4uLiJ9.….…",
                     *       "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *       "tokenId": "tok_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "expiresAt": "2026-11-20T10:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["ParticipantToken"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            409: components["responses"]["RoomEndedOrParticipantRemovedOrParticipantMoved"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listParticipants: {
        parameters: {
            query?: {
                /** @description `active`: in the room. `waiting`: in its lobby. `left`: not any more. */
                status?: "active" | "waiting" | "left";
                /** @description Returns only participants with exactly this id. Trimmed, 1-255 characters. */
                externalId?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of participants. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "externalId": "user-4711",
                     *           "name": "Ada",
                     *           "metadata": {
                     *             "team": "blue",
                     *             "tags": [
                     *               "weekly"
                     *             ]
                     *           },
                     *           "role": "…",
                     *           "joinedAt": "2026-11-20T10:00:00.000Z",
                     *           "leftAt": null,
                     *           "state": "invited",
                     *           "permissions": [
                     *             "room:join",
                     *             "video:publish"
                     *           ],
                     *           "tracks": [
                     *             {
                     *               "trackId": "camera",
                     *               "kind": "audio",
                     *               "source": "microphone",
                     *               "muted": false
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["ParticipantPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readParticipant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The participant. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "externalId": "user-4711",
                     *       "name": "Ada",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "role": "…",
                     *       "joinedAt": "2026-11-20T10:00:00.000Z",
                     *       "leftAt": null,
                     *       "state": "invited",
                     *       "permissions": [
                     *         "room:join",
                     *         "video:publish"
                     *       ],
                     *       "tracks": [
                     *         {
                     *           "trackId": "camera",
                     *           "kind": "audio",
                     *           "source": "microphone",
                     *           "muted": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Participant"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    removeParticipant: {
        parameters: {
            query?: never;
            header?: {
                /** @description `wait=N` waits up to N seconds (at most 10) for completion. `respond-async` does not wait (RFC 7240). */
                Prefer?: string;
            };
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The clean-up is pending: poll the runtime operation. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "preference-applied": components["headers"]["PreferenceApplied"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "kind": "room.end",
                     *       "status": "pending",
                     *       "attempts": 1,
                     *       "lastError": null,
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["RuntimeOperation"];
                };
            };
            /** @description The clean-up is complete. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "preference-applied": components["headers"]["PreferenceApplied"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateParticipant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Name of the participant. Trimmed, 1-120 characters. */
                    name?: string;
                    /** @description Replaces the metadata. At most 16 KiB of JSON, measured as a read returns it, with numbers written in full. */
                    metadata?: {
                        [key: string]: unknown;
                    };
                    /** @description All permissions of the participant from now on. They override its tokens. Must include `room:join`. */
                    permissions?: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
                };
            };
        };
        responses: {
            /** @description The participant. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "externalId": "user-4711",
                     *       "name": "Daily",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "role": "…",
                     *       "joinedAt": "2026-11-20T10:00:00.000Z",
                     *       "leftAt": null,
                     *       "permissions": [
                     *         "room:join",
                     *         "video:publish"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["UpdatedParticipant"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            409: components["responses"]["RoomEndedOrParticipantRemovedOrParticipantMoved"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readParticipantOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "kind": "room.end",
                     *       "status": "pending",
                     *       "attempts": 1,
                     *       "lastError": null,
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["RuntimeOperation"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFoundOrOperationNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    admitParticipant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The participant. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "externalId": "user-4711",
                     *       "name": "Daily",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "role": "…",
                     *       "joinedAt": "2026-11-20T10:00:00.000Z",
                     *       "leftAt": null,
                     *       "permissions": [
                     *         "room:join",
                     *         "video:publish"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["UpdatedParticipant"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            409: components["responses"]["RoomEndedOrRoomFullOrParticipantRemoved"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    muteTrack: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
                /**
                 * @description Track that the participant publishes at present.
                 * @example camera
                 */
                trackId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The muted track. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "trackId": "camera",
                     *       "kind": "audio",
                     *       "source": "microphone",
                     *       "muted": true
                     *     }
                     */
                    "application/json": components["schemas"]["MutedTrack"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFoundOrTrackNotFound"];
            409: components["responses"]["RoomEndedOrParticipantRemovedOrParticipantMoved"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readMoveOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "kind": "room.end",
                     *       "status": "pending",
                     *       "attempts": 1,
                     *       "lastError": null,
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["RuntimeOperation"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFoundOrOperationNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    moveParticipant: {
        parameters: {
            query?: never;
            header?: {
                /** @description Kept for 24 hours. A request with the same key and body gets the first response again. */
                "Idempotency-Key"?: string;
                /** @description `wait=N` waits up to N seconds (at most 10) for completion. `respond-async` does not wait (RFC 7240). */
                Prefer?: string;
            };
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The room to move to. */
                    roomId: string;
                    /** @description All permissions in the target. By default, the participant keeps its permissions. */
                    permissions?: ("room:join" | "audio:publish" | "video:publish" | "screen:publish" | "messages:send" | "metadata:update")[];
                };
            };
        };
        responses: {
            /** @description The operation. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "idempotency-replayed": components["headers"]["IdempotencyReplayed"];
                    "preference-applied": components["headers"]["PreferenceApplied"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "kind": "room.end",
                     *       "status": "pending",
                     *       "attempts": 1,
                     *       "lastError": null,
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["RuntimeOperation"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            409: components["responses"]["IdempotencyConflictOrRoomEndedOrRoomFullOrEncryptionDiffersOrParticipantRemovedOrParticipantMovedOrParticipantNotConnected"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    moveParticipants: {
        parameters: {
            query?: never;
            header?: {
                /** @description Kept for 24 hours. A request with the same key and body gets the first response again. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Each participant at most once. */
                    moves: components["schemas"]["MoveOne"][];
                };
            };
        };
        responses: {
            /** @description The moves. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "idempotency-replayed": components["headers"]["IdempotencyReplayed"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "operation": {
                     *             "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *             "kind": "room.end",
                     *             "status": "pending",
                     *             "attempts": 1,
                     *             "lastError": null,
                     *             "completedAt": null
                     *           },
                     *           "error": {
                     *             "code": "…",
                     *             "message": "…"
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Moves"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            409: components["responses"]["IdempotencyConflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    askParticipant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The method that a client handles with `call.handle()`. */
                    method: string;
                    /** @description Any JSON value, at most 16 KiB. Null by default. */
                    payload?: unknown;
                    /** @description How long to wait for the answer, in milliseconds; default 15000. */
                    timeoutMs?: number;
                };
            };
        };
        responses: {
            /** @description The answer of the participant. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "payload": {
                     *         "cleared": 3
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ParticipantAnswer"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            409: components["responses"]["RoomEndedOrNoHandlerOrHandlerFailedOrResponseTooLargeOrParticipantTimedOut"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listRoomSessions: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of sessions. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "sess_01m7xhkw0cfvqteeeq2c3fv3q3",
                     *           "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "joinedAt": "2026-11-20T10:00:00.000Z",
                     *           "leftAt": null,
                     *           "reason": null,
                     *           "permissions": [
                     *             "room:join",
                     *             "video:publish"
                     *           ],
                     *           "tracks": [
                     *             {
                     *               "trackId": "camera",
                     *               "kind": "audio",
                     *               "source": "microphone",
                     *               "publishedAt": "2026-11-20T10:00:00.000Z",
                     *               "unpublishedAt": null
                     *             }
                     *           ],
                     *           "quality": {
                     *             "worst": "good",
                     *             "relay": false,
                     *             "seconds": {
                     *               "good": 1,
                     *               "fair": 1,
                     *               "poor": 1,
                     *               "lost": 1,
                     *               "relayed": 1
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["SessionPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listParticipantSessions: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
                /**
                 * @description Participant in this room.
                 * @example part_01m7xhkw0cfvqteeeq2c3fv3q2
                 */
                participantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of sessions. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "sess_01m7xhkw0cfvqteeeq2c3fv3q3",
                     *           "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "joinedAt": "2026-11-20T10:00:00.000Z",
                     *           "leftAt": null,
                     *           "reason": null,
                     *           "permissions": [
                     *             "room:join",
                     *             "video:publish"
                     *           ],
                     *           "tracks": [
                     *             {
                     *               "trackId": "camera",
                     *               "kind": "audio",
                     *               "source": "microphone",
                     *               "publishedAt": "2026-11-20T10:00:00.000Z",
                     *               "unpublishedAt": null
                     *             }
                     *           ],
                     *           "quality": {
                     *             "worst": "good",
                     *             "relay": false,
                     *             "seconds": {
                     *               "good": 1,
                     *               "fair": 1,
                     *               "poor": 1,
                     *               "lost": 1,
                     *               "relayed": 1
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["SessionPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listRoomRecordings: {
        parameters: {
            query?: {
                status?: "recording" | "processing" | "completed" | "failed";
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of recordings. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "rec_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *           "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "mode": "composite",
                     *           "audioOnly": false,
                     *           "layout": null,
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "metadata": {
                     *             "team": "blue",
                     *             "tags": [
                     *               "weekly"
                     *             ]
                     *           },
                     *           "maxDurationSeconds": 1,
                     *           "status": "recording",
                     *           "progress": 1,
                     *           "queuePosition": null,
                     *           "lastError": null,
                     *           "startedAt": "2026-11-20T10:00:00.000Z",
                     *           "endedAt": null,
                     *           "completedAt": null,
                     *           "durationMs": null,
                     *           "gaps": [
                     *             {
                     *               "startMs": 1,
                     *               "durationMs": 1,
                     *               "reason": "media_server_lost"
                     *             }
                     *           ],
                     *           "files": [
                     *             {
                     *               "id": "recf_01m7xhkw0cfvqteeeq2c3fv3q9",
                     *               "kind": "composite",
                     *               "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *               "trackId": "camera",
                     *               "source": null,
                     *               "contentType": "…",
                     *               "bytes": 1,
                     *               "sha256": "…",
                     *               "startMs": 1,
                     *               "durationMs": 1,
                     *               "width": null,
                     *               "height": null
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["RecordingPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    startRecording: {
        parameters: {
            query?: never;
            header?: {
                /** @description Kept for 24 hours. A request with the same key and body gets the first response again. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description Room in the key's environment.
                 * @example room_01m7xhkw0cfvqteeeq2c3fv3qk
                 */
                roomId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description `composite`: one file of everything, 1280×720. `tracks`: a file for each track, and another one after each reconnection.
                     * @enum {string}
                     */
                    mode: "composite" | "tracks";
                    /**
                     * @description Whether pictures are left out.
                     * @default false
                     */
                    audioOnly?: boolean;
                    /**
                     * @description Of a composite: everyone in equal size (the default), or the speaker large.
                     * @enum {string}
                     */
                    layout?: "grid" | "speaker";
                    /**
                     * @description The recording stops by itself after this time.
                     * @default 14400
                     */
                    maxDurationSeconds?: number;
                    /**
                     * @description Application-defined. At most 16 KiB of JSON, measured as a read returns it, with numbers written in full.
                     * @default {}
                     */
                    metadata?: {
                        [key: string]: unknown;
                    };
                    /** @description Records only this participant of the room. */
                    participantId?: string;
                };
            };
        };
        responses: {
            /** @description The recording. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "idempotency-replayed": components["headers"]["IdempotencyReplayed"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rec_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "mode": "composite",
                     *       "audioOnly": false,
                     *       "layout": null,
                     *       "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "maxDurationSeconds": 1,
                     *       "status": "recording",
                     *       "progress": 1,
                     *       "queuePosition": null,
                     *       "lastError": null,
                     *       "startedAt": "2026-11-20T10:00:00.000Z",
                     *       "endedAt": null,
                     *       "completedAt": null,
                     *       "durationMs": null,
                     *       "gaps": [
                     *         {
                     *           "startMs": 1,
                     *           "durationMs": 1,
                     *           "reason": "media_server_lost"
                     *         }
                     *       ],
                     *       "files": [
                     *         {
                     *           "id": "recf_01m7xhkw0cfvqteeeq2c3fv3q9",
                     *           "kind": "composite",
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "trackId": "camera",
                     *           "source": null,
                     *           "contentType": "…",
                     *           "bytes": 1,
                     *           "sha256": "…",
                     *           "startMs": 1,
                     *           "durationMs": 1,
                     *           "width": null,
                     *           "height": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Recording"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFoundOrParticipantNotFound"];
            409: components["responses"]["IdempotencyConflictOrRoomEndedOrRoomEncryptedOrRecordingActive"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrRecordingUnavailable"];
        };
    };
    listRecordings: {
        parameters: {
            query?: {
                status?: "recording" | "processing" | "completed" | "failed";
                /** @description Returns only recordings of this room. */
                roomId?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of recordings. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "rec_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *           "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "mode": "composite",
                     *           "audioOnly": false,
                     *           "layout": null,
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "metadata": {
                     *             "team": "blue",
                     *             "tags": [
                     *               "weekly"
                     *             ]
                     *           },
                     *           "maxDurationSeconds": 1,
                     *           "status": "recording",
                     *           "progress": 1,
                     *           "queuePosition": null,
                     *           "lastError": null,
                     *           "startedAt": "2026-11-20T10:00:00.000Z",
                     *           "endedAt": null,
                     *           "completedAt": null,
                     *           "durationMs": null,
                     *           "gaps": [
                     *             {
                     *               "startMs": 1,
                     *               "durationMs": 1,
                     *               "reason": "media_server_lost"
                     *             }
                     *           ],
                     *           "files": [
                     *             {
                     *               "id": "recf_01m7xhkw0cfvqteeeq2c3fv3q9",
                     *               "kind": "composite",
                     *               "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *               "trackId": "camera",
                     *               "source": null,
                     *               "contentType": "…",
                     *               "bytes": 1,
                     *               "sha256": "…",
                     *               "startMs": 1,
                     *               "durationMs": 1,
                     *               "width": null,
                     *               "height": null
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["RecordingPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readRecording: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Recording in the key's environment.
                 * @example rec_01m7xhkw0cfvqteeeq2c3fv3q8
                 */
                recordingId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The recording. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rec_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "mode": "composite",
                     *       "audioOnly": false,
                     *       "layout": null,
                     *       "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "maxDurationSeconds": 1,
                     *       "status": "recording",
                     *       "progress": 1,
                     *       "queuePosition": null,
                     *       "lastError": null,
                     *       "startedAt": "2026-11-20T10:00:00.000Z",
                     *       "endedAt": null,
                     *       "completedAt": null,
                     *       "durationMs": null,
                     *       "gaps": [
                     *         {
                     *           "startMs": 1,
                     *           "durationMs": 1,
                     *           "reason": "media_server_lost"
                     *         }
                     *       ],
                     *       "files": [
                     *         {
                     *           "id": "recf_01m7xhkw0cfvqteeeq2c3fv3q9",
                     *           "kind": "composite",
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "trackId": "camera",
                     *           "source": null,
                     *           "contentType": "…",
                     *           "bytes": 1,
                     *           "sha256": "…",
                     *           "startMs": 1,
                     *           "durationMs": 1,
                     *           "width": null,
                     *           "height": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Recording"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RecordingNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteRecording: {
        parameters: {
            query?: never;
            header?: {
                /** @description `wait=N` waits up to N seconds (at most 10) for completion. `respond-async` does not wait (RFC 7240). */
                Prefer?: string;
            };
            path: {
                /**
                 * @description Recording in the key's environment.
                 * @example rec_01m7xhkw0cfvqteeeq2c3fv3q8
                 */
                recordingId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The clean-up is pending: poll the runtime operation. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "preference-applied": components["headers"]["PreferenceApplied"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "op_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "kind": "room.end",
                     *       "status": "pending",
                     *       "attempts": 1,
                     *       "lastError": null,
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["RuntimeOperation"];
                };
            };
            /** @description The clean-up is complete. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "preference-applied": components["headers"]["PreferenceApplied"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RecordingNotFound"];
            409: components["responses"]["RecordingActive"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    stopRecording: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Recording in the key's environment.
                 * @example rec_01m7xhkw0cfvqteeeq2c3fv3q8
                 */
                recordingId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The recording. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rec_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "mode": "composite",
                     *       "audioOnly": false,
                     *       "layout": null,
                     *       "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *       "metadata": {
                     *         "team": "blue",
                     *         "tags": [
                     *           "weekly"
                     *         ]
                     *       },
                     *       "maxDurationSeconds": 1,
                     *       "status": "recording",
                     *       "progress": 1,
                     *       "queuePosition": null,
                     *       "lastError": null,
                     *       "startedAt": "2026-11-20T10:00:00.000Z",
                     *       "endedAt": null,
                     *       "completedAt": null,
                     *       "durationMs": null,
                     *       "gaps": [
                     *         {
                     *           "startMs": 1,
                     *           "durationMs": 1,
                     *           "reason": "media_server_lost"
                     *         }
                     *       ],
                     *       "files": [
                     *         {
                     *           "id": "recf_01m7xhkw0cfvqteeeq2c3fv3q9",
                     *           "kind": "composite",
                     *           "participantId": "part_01m7xhkw0cfvqteeeq2c3fv3q2",
                     *           "trackId": "camera",
                     *           "source": null,
                     *           "contentType": "…",
                     *           "bytes": 1,
                     *           "sha256": "…",
                     *           "startMs": 1,
                     *           "durationMs": 1,
                     *           "width": null,
                     *           "height": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Recording"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RecordingNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createRecordingLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Recording in the key's environment.
                 * @example rec_01m7xhkw0cfvqteeeq2c3fv3q8
                 */
                recordingId: string;
                /**
                 * @description File of the recording.
                 * @example recf_01m7xhkw0cfvqteeeq2c3fv3q9
                 */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description How long the link works.
                     * @default 3600
                     */
                    expiresInSeconds?: number;
                };
            };
        };
        responses: {
            /** @description The link. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "url": "https://example.com/hooks/calls",
                     *       "expiresAt": "2026-11-20T10:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["RecordingLink"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RecordingNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readOverview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The figures at this moment. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "at": "2026-11-20T10:00:00.000Z",
                     *       "calls": {
                     *         "activeRooms": {
                     *           "count": 1,
                     *           "capped": false
                     *         },
                     *         "participants": {
                     *           "count": 1,
                     *           "capped": false
                     *         },
                     *         "joins": {
                     *           "count": 1,
                     *           "capped": false,
                     *           "since": "2026-11-20T10:00:00.000Z",
                     *           "buckets": [
                     *             {
                     *               "from": "2026-11-20T10:00:00.000Z",
                     *               "count": 1
                     *             }
                     *           ]
                     *         }
                     *       },
                     *       "webhooks": {
                     *         "deliveries": {
                     *           "since": "2026-11-20T10:00:00.000Z",
                     *           "pending": 1,
                     *           "delivering": 1,
                     *           "succeeded": 1,
                     *           "failed": 1,
                     *           "capped": false,
                     *           "buckets": [
                     *             {
                     *               "from": "2026-11-20T10:00:00.000Z",
                     *               "pending": 1,
                     *               "delivering": 1,
                     *               "succeeded": 1,
                     *               "failed": 1
                     *             }
                     *           ]
                     *         },
                     *         "oldestDueAt": null,
                     *         "endpoints": {
                     *           "enabled": 1,
                     *           "disabled": 1
                     *         },
                     *         "failingEndpoints": [
                     *           {
                     *             "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *             "url": "https://example.com/hooks/calls",
                     *             "enabled": false,
                     *             "failingSince": "2026-11-20T10:00:00.000Z",
                     *             "lastFailedAt": null
                     *           }
                     *         ],
                     *         "failureRates": [
                     *           {
                     *             "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *             "tried": 1,
                     *             "failed": 1
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Overview"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["CrossSiteRequestOrInsufficientScope"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readUsage: {
        parameters: {
            query: {
                /**
                 * @description First day. A UTC day, `YYYY-MM-DD`.
                 * @example 2026-11-01
                 */
                from: string;
                /**
                 * @description Last day, at most 91 days after the first one. A UTC day, `YYYY-MM-DD`.
                 * @example 2026-11-30
                 */
                to: string;
                /** @description Length of an interval. */
                interval?: "day";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One entry for each day. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2026-11-20",
                     *       "to": "2026-11-20",
                     *       "interval": "day",
                     *       "days": [
                     *         {
                     *           "day": "2026-11-20",
                     *           "rooms": 1,
                     *           "participantSeconds": 1,
                     *           "participantMinutes": 1,
                     *           "peakParticipants": 1,
                     *           "relayShare": null,
                     *           "deliveries": 1,
                     *           "recordedMinutes": 1,
                     *           "convertedMinutes": 1,
                     *           "recordedBytes": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Usage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    issueTurnCredentials: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Room of the session. Requires sessionId. */
                    roomId?: string;
                    /** @description Active participant session. Requires roomId. */
                    sessionId?: string;
                };
            };
        };
        responses: {
            /** @description The credentials. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-11-20T10:00:00.000Z",
                     *       "username": "1795172400:sess_01m7xhkw0cfvqteeeq2c3fv3q3",
                     *       "ttlSeconds": 1,
                     *       "iceServers": [
                     *         {
                     *           "urls": [
                     *             "stun:turn.example.com:3478"
                     *           ]
                     *         },
                     *         {
                     *           "urls": [
                     *             "turn:turn.example.com:3478?transport=udp",
                     *             "turn:turn.example.com:3478?transport=tcp"
                     *           ],
                     *           "username": "1795172400:sess_01m7xhkw0cfvqteeeq2c3fv3q3",
                     *           "credential": "u9vRHxUe1QwV0Z1m3b3cYFJpZqk=",
                     *           "credentialType": "password"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["TurnCredentials"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["SessionNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readSignatureContract: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signing and retry policy. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "v1",
                     *       "algorithm": "HMAC-SHA256",
                     *       "signatureHeader": "x-service-signature",
                     *       "deliveryIdHeader": "x-service-delivery-id",
                     *       "replayCountHeader": "x-service-replay-count",
                     *       "secretVersionHeader": "x-service-signing-key-version",
                     *       "signedContent": "The ASCII bytes of \"timestamp.deliveryId.replayCount.\" followed by the exact raw request body bytes.",
                     *       "signatureFormat": "t=<Unix seconds>,v1=<lowercase hexadecimal HMAC>",
                     *       "secretEncoding": "The complete signing secret, including its whsec_ prefix, is used as UTF-8 bytes for the HMAC key.",
                     *       "toleranceSeconds": 300,
                     *       "deduplication": "A valid signature does not prevent duplicate processing. Store the event id atomically with the result of the business processing; retries and replays keep the same event id and delivery id.",
                     *       "replay": "An explicit replay increments the signed replay count and resets the retry budget. It creates no new business event.",
                     *       "attemptsPerRun": 8,
                     *       "maximumExplicitReplays": 100,
                     *       "concurrencyPerWorker": 4,
                     *       "leaseSeconds": 120,
                     *       "backoffSeconds": [
                     *         5,
                     *         30,
                     *         120,
                     *         600,
                     *         1800,
                     *         3600,
                     *         21600
                     *       ],
                     *       "backoffJitter": "Each retry delay gets up to 20 percent additional random jitter.",
                     *       "retryPolicy": "DNS and network failures, HTTP 408, 425, 429 and 5xx are retried. Other HTTP failures and unsafe destinations are terminal. Automatic retries use the original delivery URL.",
                     *       "deliveryDeadlineSeconds": 10,
                     *       "dnsDeadlineSeconds": 5,
                     *       "maximumRunAgeDays": 7,
                     *       "terminalRetentionDays": 30,
                     *       "retention": "Deliveries and attempt logs are kept for 30 days after the most recent terminal outcome. Events are kept while any delivery references them.",
                     *       "replayInput": "The caller supplies expectedReplayCount, taken from the current delivery record. Pending or delivering records cannot be replayed.",
                     *       "replayDestination": "A replay uses the endpoint's current URL and signing secret.",
                     *       "verification": "Reject malformed headers and timestamps, and a timestamp more than 300 seconds from your clock. Verify timestamp, delivery id, replay count and signature against the raw bytes before parsing JSON, and compare signatures in constant time."
                     *     }
                     */
                    "application/json": components["schemas"]["SignatureContract"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of endpoints. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *           "url": "https://example.com/hooks/calls",
                     *           "events": [
                     *             "*"
                     *           ],
                     *           "description": "Billing",
                     *           "enabled": true,
                     *           "disabledReason": null,
                     *           "signingKeyVersion": 1,
                     *           "nextSigningKeyVersion": null,
                     *           "nextActivatesAt": null,
                     *           "ordering": "none",
                     *           "maxPerSecond": 50,
                     *           "maxConcurrent": null,
                     *           "standardWebhooks": false,
                     *           "retryRejected": false,
                     *           "headers": {
                     *             "authorization": "***"
                     *           },
                     *           "filter": {
                     *             "room.metadata.team": [
                     *               "blue"
                     *             ],
                     *             "room.name": [
                     *               {
                     *                 "prefix": "Dai"
                     *               }
                     *             ]
                     *           },
                     *           "failingSince": null,
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "updatedAt": "2026-11-20T10:00:00.000Z"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookEndpointPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createWebhook: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: {
                /** @description Kept for 24 hours. A request with the same key and body gets the first response again. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description Destination of deliveries: `https`, without user name or fragment, and with a public address only. At most 2048 characters. Stored in normalised form (`https://Example.com` becomes `https://example.com/`). A URL that a parser would have to repair is rejected.
                     */
                    url: string;
                    /**
                     * @description Event types that the endpoint receives. `*` means all types, including types of later versions.
                     * @default [
                     *       "*"
                     *     ]
                     */
                    events?: ("*" | "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test")[];
                    /** @description Free text for people. Trimmed, 1-500 characters. */
                    description?: string;
                    /**
                     * @description Whether the endpoint starts enabled.
                     * @default true
                     */
                    enabled?: boolean;
                    /**
                     * @description `room`: the events of a room are sent one at a time, in their order. The next one waits until the one before it has succeeded or failed for good. `none`: nothing waits.
                     * @default none
                     * @enum {string}
                     */
                    ordering?: "none" | "room";
                    /** @default null */
                    maxPerSecond?: number | null;
                    /** @default null */
                    maxConcurrent?: number | null;
                    /**
                     * @description Whether deliveries also carry the headers of the Standard Webhooks specification: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
                     * @default false
                     */
                    standardWebhooks?: boolean;
                    /**
                     * @description Whether deliveries that the receiver rejects, with a status that is final otherwise, are retried like after 503. 410 stays final.
                     * @default false
                     */
                    retryRejected?: boolean;
                    /**
                     * @description Further headers of each attempt, such as `authorization`: at most 16. Values are stored encrypted. Headers of the service, of the connection and of the body are refused.
                     * @default {}
                     */
                    headers?: {
                        [key: string]: string;
                    };
                    /**
                     * @description Only events whose `data` matches make deliveries: each path, such as `room.metadata.team`, has to have one of its values, or begin with `{ "prefix": … }`. An array matches with one of its elements. At most 8 paths of 8 values. Null: all events of the types in `events`.
                     * @default null
                     */
                    filter?: {
                        [key: string]: (string | number | boolean | null | {
                            prefix: string;
                        })[];
                    } | null;
                };
            };
        };
        responses: {
            /** @description The endpoint, with its signing secret. Store the secret: reads do not return it. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "idempotency-replayed": components["headers"]["IdempotencyReplayed"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "url": "https://example.com/hooks/calls",
                     *       "events": [
                     *         "*"
                     *       ],
                     *       "description": "Billing",
                     *       "enabled": true,
                     *       "disabledReason": null,
                     *       "signingKeyVersion": 1,
                     *       "nextSigningKeyVersion": null,
                     *       "nextActivatesAt": null,
                     *       "ordering": "none",
                     *       "maxPerSecond": 50,
                     *       "maxConcurrent": null,
                     *       "standardWebhooks": false,
                     *       "retryRejected": false,
                     *       "headers": {
                     *         "authorization": "***"
                     *       },
                     *       "filter": {
                     *         "room.metadata.team": [
                     *           "blue"
                     *         ],
                     *         "room.name": [
                     *           {
                     *             "prefix": "Dai"
                     *           }
                     *         ]
                     *       },
                     *       "failingSince": null,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "updatedAt": "2026-11-20T10:00:00.000Z",
                     *       "signingSecret": "whsec_01m7xhkw0cfvqteeeq2c3fv3q8"
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookEndpointWithSecret"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            409: components["responses"]["IdempotencyConflictOrWebhookLimitReached"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readWebhook: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "url": "https://example.com/hooks/calls",
                     *       "events": [
                     *         "*"
                     *       ],
                     *       "description": "Billing",
                     *       "enabled": true,
                     *       "disabledReason": null,
                     *       "signingKeyVersion": 1,
                     *       "nextSigningKeyVersion": null,
                     *       "nextActivatesAt": null,
                     *       "ordering": "none",
                     *       "maxPerSecond": 50,
                     *       "maxConcurrent": null,
                     *       "standardWebhooks": false,
                     *       "retryRejected": false,
                     *       "headers": {
                     *         "authorization": "***"
                     *       },
                     *       "filter": {
                     *         "room.metadata.team": [
                     *           "blue"
                     *         ],
                     *         "room.name": [
                     *           {
                     *             "prefix": "Dai"
                     *           }
                     *         ]
                     *       },
                     *       "failingSince": null,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "updatedAt": "2026-11-20T10:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint is removed. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateWebhook: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description Destination of deliveries: `https`, without user name or fragment, and with a public address only. At most 2048 characters. Stored in normalised form (`https://Example.com` becomes `https://example.com/`). A URL that a parser would have to repair is rejected.
                     */
                    url?: string;
                    /** @description Event types that the endpoint receives. `*` means all types, including types of later versions. */
                    events?: ("*" | "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test")[];
                    description?: string | null;
                    /** @description `true` also clears `disabledReason` and sends the deliveries that were held back. */
                    enabled?: boolean;
                    /**
                     * @description `room`: the events of a room are sent one at a time, in their order. The next one waits until the one before it has succeeded or failed for good. `none`: nothing waits.
                     * @enum {string}
                     */
                    ordering?: "none" | "room";
                    maxPerSecond?: number | null;
                    maxConcurrent?: number | null;
                    /** @description Whether deliveries also carry the headers of the Standard Webhooks specification: `webhook-id`, `webhook-timestamp` and `webhook-signature`. */
                    standardWebhooks?: boolean;
                    /** @description Whether deliveries that the receiver rejects, with a status that is final otherwise, are retried like after 503. 410 stays final. */
                    retryRejected?: boolean;
                    /** @description Replaces all further headers of each attempt. */
                    headers?: {
                        [key: string]: string;
                    };
                    /** @description Only events whose `data` matches make deliveries: each path, such as `room.metadata.team`, has to have one of its values, or begin with `{ "prefix": … }`. An array matches with one of its elements. At most 8 paths of 8 values. Null: all events of the types in `events`. */
                    filter?: {
                        [key: string]: (string | number | boolean | null | {
                            prefix: string;
                        })[];
                    } | null;
                };
            };
        };
        responses: {
            /** @description The endpoint. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "url": "https://example.com/hooks/calls",
                     *       "events": [
                     *         "*"
                     *       ],
                     *       "description": "Billing",
                     *       "enabled": true,
                     *       "disabledReason": null,
                     *       "signingKeyVersion": 1,
                     *       "nextSigningKeyVersion": null,
                     *       "nextActivatesAt": null,
                     *       "ordering": "none",
                     *       "maxPerSecond": 50,
                     *       "maxConcurrent": null,
                     *       "standardWebhooks": false,
                     *       "retryRejected": false,
                     *       "headers": {
                     *         "authorization": "***"
                     *       },
                     *       "filter": {
                     *         "room.metadata.team": [
                     *           "blue"
                     *         ],
                     *         "room.name": [
                     *           {
                     *             "prefix": "Dai"
                     *           }
                     *         ]
                     *       },
                     *       "failingSince": null,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "updatedAt": "2026-11-20T10:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    tryWebhookFilter: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Event in the key's environment, `evt_…`. */
                    eventId: string;
                    /** @description Default: the filter of the endpoint. */
                    filter?: {
                        [key: string]: (string | number | boolean | null | {
                            prefix: string;
                        })[];
                    } | null;
                };
            };
        };
        responses: {
            /** @description Whether the event would be delivered. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "eventType": "room.created",
                     *       "subscribed": false,
                     *       "matches": false,
                     *       "paths": [
                     *         {
                     *           "path": "room.metadata.team",
                     *           "value": "blue",
                     *           "matches": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["TriedWebhookFilter"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFoundOrEventNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description Seconds until the new secret signs new runs, so that the receiver can learn it before.
                     * @default 0
                     */
                    activateInSeconds?: number;
                };
            };
        };
        responses: {
            /** @description The endpoint, with its new secret. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "url": "https://example.com/hooks/calls",
                     *       "events": [
                     *         "*"
                     *       ],
                     *       "description": "Billing",
                     *       "enabled": true,
                     *       "disabledReason": null,
                     *       "signingKeyVersion": 1,
                     *       "nextSigningKeyVersion": null,
                     *       "nextActivatesAt": null,
                     *       "ordering": "none",
                     *       "maxPerSecond": 50,
                     *       "maxConcurrent": null,
                     *       "standardWebhooks": false,
                     *       "retryRejected": false,
                     *       "headers": {
                     *         "authorization": "***"
                     *       },
                     *       "filter": {
                     *         "room.metadata.team": [
                     *           "blue"
                     *         ],
                     *         "room.name": [
                     *           {
                     *             "prefix": "Dai"
                     *           }
                     *         ]
                     *       },
                     *       "failingSince": null,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "updatedAt": "2026-11-20T10:00:00.000Z",
                     *       "signingSecret": "whsec_01m7xhkw0cfvqteeeq2c3fv3q8"
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookEndpointWithSecret"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            409: components["responses"]["SecretRotationWaits"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancelWebhookSecretRotation: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rotation is cancelled. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            409: components["responses"]["NoSecretRotation"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    activateWebhookSecret: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint. Its next secret signs new runs. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "url": "https://example.com/hooks/calls",
                     *       "events": [
                     *         "*"
                     *       ],
                     *       "description": "Billing",
                     *       "enabled": true,
                     *       "disabledReason": null,
                     *       "signingKeyVersion": 1,
                     *       "nextSigningKeyVersion": null,
                     *       "nextActivatesAt": null,
                     *       "ordering": "none",
                     *       "maxPerSecond": 50,
                     *       "maxConcurrent": null,
                     *       "standardWebhooks": false,
                     *       "retryRejected": false,
                     *       "headers": {
                     *         "authorization": "***"
                     *       },
                     *       "filter": {
                     *         "room.metadata.team": [
                     *           "blue"
                     *         ],
                     *         "room.name": [
                     *           {
                     *             "prefix": "Dai"
                     *           }
                     *         ]
                     *       },
                     *       "failingSince": null,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "updatedAt": "2026-11-20T10:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            409: components["responses"]["NoSecretRotation"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readWebhookStats: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
                /** @description Begin of the first interval; by default a day before `to`. Attempts are kept for 30 days. */
                from?: string;
                /** @description End of the time, at most 1440 intervals after `from`; by default now. */
                to?: string;
                /** @description Length of an interval. */
                interval?: "minute" | "hour" | "day";
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The figures. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2026-11-20T10:00:00.000Z",
                     *       "to": "2026-11-20T10:00:00.000Z",
                     *       "interval": "minute",
                     *       "total": {
                     *         "attempts": 1,
                     *         "outcomes": {
                     *           "success": 1,
                     *           "dns": 1,
                     *           "connect": 1,
                     *           "tls": 1,
                     *           "timeout": 1,
                     *           "response": 1,
                     *           "blocked": 1
                     *         },
                     *         "p50Ms": null,
                     *         "p95Ms": null
                     *       },
                     *       "intervals": [
                     *         {
                     *           "start": "2026-11-20T10:00:00.000Z",
                     *           "attempts": 1,
                     *           "outcomes": {
                     *             "success": 1,
                     *             "dns": 1,
                     *             "connect": 1,
                     *             "tls": 1,
                     *             "timeout": 1,
                     *             "response": 1,
                     *             "blocked": 1
                     *           },
                     *           "p50Ms": null,
                     *           "p95Ms": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookStats"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    testWebhook: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. Read it again to see its outcome. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *       "eventId": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *       "eventType": "room.created",
                     *       "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "url": "https://example.com/hooks/calls",
                     *       "status": "pending",
                     *       "failureReason": null,
                     *       "replayCount": 1,
                     *       "attempts": 1,
                     *       "lastStatusCode": null,
                     *       "lastErrorCode": null,
                     *       "nextAttemptAt": null,
                     *       "blockedBy": null,
                     *       "signingKeyVersion": 1,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            409: components["responses"]["WebhookDisabled"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
                /** @description Returns only deliveries of the events of this room. */
                roomId?: string;
                status?: "pending" | "delivering" | "succeeded" | "failed";
                eventType?: "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test";
                /** @description Returns only failed deliveries with this reason. */
                failureReason?: "attempts_exhausted" | "rejected" | "unsafe_destination" | "run_expired" | "endpoint_deleted";
                /** @description Returns only deliveries that were created at this time or later. */
                since?: string;
                /** @description Returns only deliveries that were created up to this time. */
                until?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of deliveries. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *           "eventId": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *           "eventType": "room.created",
                     *           "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *           "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "url": "https://example.com/hooks/calls",
                     *           "status": "pending",
                     *           "failureReason": null,
                     *           "replayCount": 1,
                     *           "attempts": 1,
                     *           "lastStatusCode": null,
                     *           "lastErrorCode": null,
                     *           "nextAttemptAt": null,
                     *           "blockedBy": null,
                     *           "signingKeyVersion": 1,
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "completedAt": null
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookDeliveryPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listAllDeliveries: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
                /** @description Returns only the deliveries of this endpoint. */
                endpointId?: string;
                /** @description Returns only deliveries of the events of this room. */
                roomId?: string;
                status?: "pending" | "delivering" | "succeeded" | "failed";
                eventType?: "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test";
                /** @description Returns only failed deliveries with this reason. */
                failureReason?: "attempts_exhausted" | "rejected" | "unsafe_destination" | "run_expired" | "endpoint_deleted";
                /** @description Returns only deliveries that were created at this time or later. */
                since?: string;
                /** @description Returns only deliveries that were created up to this time. */
                until?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of deliveries. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *           "eventId": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *           "eventType": "room.created",
                     *           "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *           "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "url": "https://example.com/hooks/calls",
                     *           "status": "pending",
                     *           "failureReason": null,
                     *           "replayCount": 1,
                     *           "attempts": 1,
                     *           "lastStatusCode": null,
                     *           "lastErrorCode": null,
                     *           "nextAttemptAt": null,
                     *           "blockedBy": null,
                     *           "signingKeyVersion": 1,
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "completedAt": null
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookDeliveryPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readDelivery: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
                /**
                 * @description Delivery of this endpoint.
                 * @example dlv_01m7xhkw0cfvqteeeq2c3fv3q6
                 */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery, with its event and its last attempt. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *       "eventId": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *       "eventType": "room.created",
                     *       "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "url": "https://example.com/hooks/calls",
                     *       "status": "pending",
                     *       "failureReason": null,
                     *       "replayCount": 1,
                     *       "attempts": 1,
                     *       "lastStatusCode": null,
                     *       "lastErrorCode": null,
                     *       "nextAttemptAt": null,
                     *       "blockedBy": null,
                     *       "signingKeyVersion": 1,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "completedAt": null,
                     *       "event": {
                     *         "id": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *         "type": "room.created",
                     *         "apiVersion": "v1",
                     *         "createdAt": "2026-11-20T10:00:00.000Z",
                     *         "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *         "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *         "sequence": null,
                     *         "data": {
                     *           "room": {
                     *             "id": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *             "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *             "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *             "name": "Daily",
                     *             "metadata": {
                     *               "team": "blue",
                     *               "tags": [
                     *                 "weekly"
                     *               ]
                     *             },
                     *             "status": "created",
                     *             "maxParticipants": 20,
                     *             "emptyTimeoutSeconds": 900,
                     *             "record": {
                     *               "mode": "composite"
                     *             },
                     *             "encryption": "none",
                     *             "waitingRoom": false,
                     *             "createdAt": "2026-11-20T10:00:00.000Z",
                     *             "startedAt": null,
                     *             "endedAt": null,
                     *             "recordingSince": null,
                     *             "participantCount": 1
                     *           }
                     *         }
                     *       },
                     *       "body": "…",
                     *       "lastAttempt": {
                     *         "id": "att_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *         "deliveryId": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *         "replayCount": 1,
                     *         "attempt": 1,
                     *         "url": "https://example.com/hooks/calls",
                     *         "signingKeyVersion": 1,
                     *         "startedAt": "2026-11-20T10:00:00.000Z",
                     *         "durationMs": 1,
                     *         "outcome": "response",
                     *         "errorCode": null,
                     *         "statusCode": 503,
                     *         "address": "93.184.216.34",
                     *         "timings": {
                     *           "dnsMs": null,
                     *           "connectMs": null,
                     *           "tlsMs": null,
                     *           "firstByteMs": null
                     *         },
                     *         "responseBody": "maintenance",
                     *         "responseTruncated": false,
                     *         "responseHeaders": {},
                     *         "requestHeaders": {},
                     *         "earlierAddresses": [
                     *           {
                     *             "address": "93.184.216.34",
                     *             "errorCode": null,
                     *             "durationMs": 1
                     *           }
                     *         ],
                     *         "phases": [
                     *           {
                     *             "phase": "dns",
                     *             "startMs": 1,
                     *             "durationMs": 1,
                     *             "failed": false
                     *           }
                     *         ],
                     *         "diagnosis": {
                     *           "summary": "HTTP 503: a proxy in front of the receiver cannot reach it, or it is overloaded.",
                     *           "advice": "Check that the receiver runs and is healthy. Callplane retries."
                     *         }
                     *       },
                     *       "diagnosis": {
                     *         "summary": "HTTP 503: a proxy in front of the receiver cannot reach it, or it is overloaded.",
                     *         "advice": "Check that the receiver runs and is healthy. Callplane retries."
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookDeliveryDetail"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFoundOrDeliveryNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listAttempts: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
                /**
                 * @description Delivery of this endpoint.
                 * @example dlv_01m7xhkw0cfvqteeeq2c3fv3q6
                 */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of attempts. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "att_01m7xhkw0cfvqteeeq2c3fv3q8",
                     *           "deliveryId": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *           "replayCount": 1,
                     *           "attempt": 1,
                     *           "url": "https://example.com/hooks/calls",
                     *           "signingKeyVersion": 1,
                     *           "startedAt": "2026-11-20T10:00:00.000Z",
                     *           "durationMs": 1,
                     *           "outcome": "response",
                     *           "errorCode": null,
                     *           "statusCode": 503,
                     *           "address": "93.184.216.34",
                     *           "timings": {
                     *             "dnsMs": null,
                     *             "connectMs": null,
                     *             "tlsMs": null,
                     *             "firstByteMs": null
                     *           },
                     *           "responseBody": "maintenance",
                     *           "responseTruncated": false,
                     *           "responseHeaders": {},
                     *           "requestHeaders": {},
                     *           "earlierAddresses": [
                     *             {
                     *               "address": "93.184.216.34",
                     *               "errorCode": null,
                     *               "durationMs": 1
                     *             }
                     *           ],
                     *           "phases": [
                     *             {
                     *               "phase": "dns",
                     *               "startMs": 1,
                     *               "durationMs": 1,
                     *               "failed": false
                     *             }
                     *           ],
                     *           "diagnosis": {
                     *             "summary": "HTTP 503: a proxy in front of the receiver cannot reach it, or it is overloaded.",
                     *             "advice": "Check that the receiver runs and is healthy. Callplane retries."
                     *           }
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookAttemptPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFoundOrDeliveryNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    replayDelivery: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
                /**
                 * @description Delivery of this endpoint.
                 * @example dlv_01m7xhkw0cfvqteeeq2c3fv3q6
                 */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The `replayCount` that you read. If two clients replay at the same time, the server rejects one of them. */
                    expectedReplayCount: number;
                };
            };
        };
        responses: {
            /** @description The delivery, pending again. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *       "eventId": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *       "eventType": "room.created",
                     *       "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "url": "https://example.com/hooks/calls",
                     *       "status": "pending",
                     *       "failureReason": null,
                     *       "replayCount": 1,
                     *       "attempts": 1,
                     *       "lastStatusCode": null,
                     *       "lastErrorCode": null,
                     *       "nextAttemptAt": null,
                     *       "blockedBy": null,
                     *       "signingKeyVersion": 1,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFoundOrDeliveryNotFound"];
            409: components["responses"]["ReplayCountMismatchOrDeliveryNotTerminalOrEventErasedOrReplayLimitReachedOrWebhookDisabled"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    retryDelivery: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
                /**
                 * @description Delivery of this endpoint.
                 * @example dlv_01m7xhkw0cfvqteeeq2c3fv3q6
                 */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery, due now. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "dlv_01m7xhkw0cfvqteeeq2c3fv3q6",
                     *       "eventId": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *       "eventType": "room.created",
                     *       "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "roomId": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *       "url": "https://example.com/hooks/calls",
                     *       "status": "pending",
                     *       "failureReason": null,
                     *       "replayCount": 1,
                     *       "attempts": 1,
                     *       "lastStatusCode": null,
                     *       "lastErrorCode": null,
                     *       "nextAttemptAt": null,
                     *       "blockedBy": null,
                     *       "signingKeyVersion": 1,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFoundOrDeliveryNotFound"];
            409: components["responses"]["DeliveryNotPendingOrDeliveryInFlightOrWebhookDisabled"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listRecoveries: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Opaque. Send the same filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of recoveries. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "rcv_01m7xhkw0cfvqteeeq2c3fv3q7",
                     *           "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *           "since": "2026-11-20T10:00:00.000Z",
                     *           "until": "2026-11-20T12:00:00.000Z",
                     *           "dryRun": false,
                     *           "includePending": false,
                     *           "status": "pending",
                     *           "matched": 1,
                     *           "replayed": 1,
                     *           "woken": 1,
                     *           "skipped": 1,
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "completedAt": null
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookRecoveryPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createRecovery: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: date-time
                     * @description Start of the window: deliveries created from this time on. ISO 8601 with a time zone.
                     */
                    since: string;
                    /**
                     * Format: date-time
                     * @description End of the window. By default, and at the latest, the current time.
                     */
                    until?: string;
                    /**
                     * @description Counts the matching deliveries and changes nothing.
                     * @default false
                     */
                    dryRun?: boolean;
                    /**
                     * @description Brings pending deliveries of the window forward, too: same run, same replay count. With false, only failed deliveries are replayed.
                     * @default true
                     */
                    includePending?: boolean;
                };
            };
        };
        responses: {
            /** @description The recovery. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rcv_01m7xhkw0cfvqteeeq2c3fv3q7",
                     *       "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "since": "2026-11-20T10:00:00.000Z",
                     *       "until": "2026-11-20T12:00:00.000Z",
                     *       "dryRun": false,
                     *       "includePending": false,
                     *       "status": "pending",
                     *       "matched": 1,
                     *       "replayed": 1,
                     *       "woken": 1,
                     *       "skipped": 1,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookRecovery"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readRecovery: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
                /**
                 * @description Recovery of this endpoint.
                 * @example rcv_01m7xhkw0cfvqteeeq2c3fv3q7
                 */
                recoveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The recovery. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "rcv_01m7xhkw0cfvqteeeq2c3fv3q7",
                     *       "endpointId": "whep_01m7xhkw0cfvqteeeq2c3fv3q4",
                     *       "since": "2026-11-20T10:00:00.000Z",
                     *       "until": "2026-11-20T12:00:00.000Z",
                     *       "dryRun": false,
                     *       "includePending": false,
                     *       "status": "pending",
                     *       "matched": 1,
                     *       "replayed": 1,
                     *       "woken": 1,
                     *       "skipped": 1,
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "completedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookRecovery"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFoundOrRecoveryNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancelRecovery: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Endpoint identifier, returned when the endpoint was created.
                 * @example whep_01m7xhkw0cfvqteeeq2c3fv3q4
                 */
                endpointId: string;
                /**
                 * @description Recovery of this endpoint.
                 * @example rcv_01m7xhkw0cfvqteeeq2c3fv3q7
                 */
                recoveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The recovery changes no more deliveries. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["WebhookNotFoundOrRecoveryNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listEventTypes: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All event types. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "type": "room.created",
                     *           "description": "Billing",
                     *           "schema": {},
                     *           "example": {}
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["EventTypes"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
                /** @description Returns only the events of this room, ordered by their sequence. */
                roomId?: string;
                type?: "room.created" | "room.started" | "room.updated" | "room.ended" | "participant.joined" | "participant.waiting" | "participant.admitted" | "participant.left" | "participant.updated" | "track.published" | "track.unpublished" | "track.muted" | "recording.started" | "recording.stopped" | "recording.completed" | "recording.failed" | "operation.failed" | "webhook.disabled" | "webhook.endpoint.failing" | "webhook.endpoint.recovered" | "webhook.test";
                /** @description `nextCursor` of an earlier page, or the id of an event. The list starts after it. `latest` stands for the newest event: the answer then always has a `nextCursor`. */
                after?: string;
                /** @description The list starts with the first event that was created at this time or later. No effect with `after`. */
                since?: string;
                /** @description Maximum number of events. */
                limit?: number;
                /** @description If there are no new events, the answer waits up to this many seconds for one. At most 20 requests of an environment may wait at one instance; further ones get 429. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of events after the position. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *           "type": "room.created",
                     *           "apiVersion": "v1",
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *           "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *           "sequence": null,
                     *           "data": {
                     *             "room": {
                     *               "id": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *               "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *               "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *               "name": "Daily",
                     *               "metadata": {
                     *                 "team": "blue",
                     *                 "tags": [
                     *                   "weekly"
                     *                 ]
                     *               },
                     *               "status": "created",
                     *               "maxParticipants": 20,
                     *               "emptyTimeoutSeconds": 900,
                     *               "record": {
                     *                 "mode": "composite"
                     *               },
                     *               "encryption": "none",
                     *               "waitingRoom": false,
                     *               "createdAt": "2026-11-20T10:00:00.000Z",
                     *               "startedAt": null,
                     *               "endedAt": null,
                     *               "recordingSince": null,
                     *               "participantCount": 1
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["EventPage"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["RoomNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readEvent: {
        parameters: {
            query?: {
                /** @description Must match the key's project. */
                projectId?: string;
                /** @description Must match the key's environment. */
                environmentId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Event in the key's environment.
                 * @example evt_01m7xhkw0cfvqteeeq2c3fv3q5
                 */
                eventId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The event. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "evt_01m7xhkw0cfvqteeeq2c3fv3q5",
                     *       "type": "room.created",
                     *       "apiVersion": "v1",
                     *       "createdAt": "2026-11-20T10:00:00.000Z",
                     *       "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *       "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *       "sequence": null,
                     *       "data": {
                     *         "room": {
                     *           "id": "room_01m7xhkw0cfvqteeeq2c3fv3qk",
                     *           "projectId": "proj_01m7xhkw0cfvqteeeq2c3fv3q0",
                     *           "environmentId": "env_01m7xhkw0cfvqteeeq2c3fv3q1",
                     *           "name": "Daily",
                     *           "metadata": {
                     *             "team": "blue",
                     *             "tags": [
                     *               "weekly"
                     *             ]
                     *           },
                     *           "status": "created",
                     *           "maxParticipants": 20,
                     *           "emptyTimeoutSeconds": 900,
                     *           "record": {
                     *             "mode": "composite"
                     *           },
                     *           "encryption": "none",
                     *           "waitingRoom": false,
                     *           "createdAt": "2026-11-20T10:00:00.000Z",
                     *           "startedAt": null,
                     *           "endedAt": null,
                     *           "recordingSince": null,
                     *           "participantCount": 1
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Event"];
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["InsufficientScopeOrCrossSiteRequest"];
            404: components["responses"]["EventNotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    openStream: {
        parameters: {
            query?: {
                /** @description Comma-separated: `rooms`, `participants`, `operations`. By default all that the caller may read. */
                kinds?: string;
                /** @description Restricts the changes to this room. */
                roomId?: string;
                /** @description The `id` of the last message that the client has got. The header `Last-Event-ID` wins over it. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A stream of changes. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    ratelimit: components["headers"]["RateLimit"];
                    "ratelimit-policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example id: 4712.evt_01m7xhkw0cfvqteeeq2c3fv3q5
                     *     event: changes
                     *     data: {"changes":[{"kind":"rooms","type":"room.created"}]}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["ValidationFailedOrMalformedJson"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["CrossSiteRequestOrInsufficientScope"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readJwks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The public keys. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["RequestId"];
                    "cache-control": components["headers"]["JwksCacheControl"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "kty": "EC",
                     *           "crv": "P-256",
                     *           "x": "…",
                     *           "y": "…",
                     *           "kid": "…",
                     *           "alg": "ES256",
                     *           "use": "sig"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PublicKeySet"];
                };
            };
            500: components["responses"]["InternalWithoutRateLimit"];
            503: components["responses"]["UnavailableWithoutRateLimit"];
        };
    };
}
