// Written by packages/dev/src/generate from the schemas of the events. Do not edit; run "npm run generate".

export interface components {
    schemas: {
        /** @description The `type` determines the content of `data`. Later versions may add types: ignore types that you do not know. */
        Event: components["schemas"]["RoomCreatedEvent"] | components["schemas"]["RoomStartedEvent"] | components["schemas"]["RoomUpdatedEvent"] | components["schemas"]["RoomEndedEvent"] | components["schemas"]["ParticipantJoinedEvent"] | components["schemas"]["ParticipantWaitingEvent"] | components["schemas"]["ParticipantAdmittedEvent"] | components["schemas"]["ParticipantLeftEvent"] | components["schemas"]["ParticipantUpdatedEvent"] | components["schemas"]["TrackPublishedEvent"] | components["schemas"]["TrackUnpublishedEvent"] | components["schemas"]["TrackMutedEvent"] | components["schemas"]["RecordingStartedEvent"] | components["schemas"]["RecordingStoppedEvent"] | components["schemas"]["RecordingCompletedEvent"] | components["schemas"]["RecordingFailedEvent"] | components["schemas"]["OperationFailedEvent"] | components["schemas"]["WebhookDisabledEvent"] | components["schemas"]["WebhookEndpointFailingEvent"] | components["schemas"]["WebhookEndpointRecoveredEvent"] | components["schemas"]["WebhookTestEvent"];
        OperationFailedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        ParticipantAdmittedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        ParticipantJoinedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        ParticipantUpdatedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        RecordingStartedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        RoomStartedEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        WebhookDisabledEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        WebhookEndpointRecoveredEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
        WebhookTestEvent: {
            /** @description Event identifier, `evt_…`. Duplicates have the same identifier. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript (enum property replaced by openapi-typescript)
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
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
