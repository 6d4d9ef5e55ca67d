import { Prisma } from '../generated/client.js';
import { inTurns } from '../operations/operation.sql.js';

/** The columns of a `RecordingState` but its place in the queue; the table must have the name or alias `recordings`. */
export const STORED_COLUMNS = Prisma.sql`recordings.id, recordings.environment_id AS "environmentId",
  recordings.room_id AS "roomId", recordings.participant_id AS "participantId", recordings.mode,
  recordings.audio_only AS "audioOnly", recordings.layout, recordings.metadata, recordings.max_duration_seconds AS "maxDurationSeconds",
  recordings.status, recordings.progress, recordings.last_error AS "lastError", recordings.started_at AS "startedAt",
  recordings.ended_at AS "endedAt", recordings.completed_at AS "completedAt", recordings.gaps, recordings.files`;

/** The columns of a `RecordingState`, for statements that join {@link WAITING}. */
export const RECORDING_COLUMNS = Prisma.sql`${STORED_COLUMNS}, waiting.position::int AS "queuePosition"`;

/** The recordings that wait for a recorder, in the order in which recorders take them. */
export const WAITING = Prisma.sql`LEFT JOIN (${inTurns('recording.process')}) waiting
  ON waiting.subject_id = recordings.id`;

/** Whether a recording is wanted at this moment; the tables have the names `recordings` and `rooms`. */
export const isWanted = Prisma.sql`recordings.status = 'recording'
  AND recordings.started_at + recordings.max_duration_seconds * interval '1 second' > now()`;
