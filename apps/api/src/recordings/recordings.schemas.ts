import {
  RECORDING_DURATION_SECONDS,
  RECORDING_FILE_KINDS,
  RECORDING_GAP_REASONS,
  RECORDING_LAYOUTS,
  RECORDING_LINK_SECONDS,
  RECORDING_MODES,
  RECORDING_STATUSES,
  TRACK_SOURCES,
} from '@callplane/core';
import { Type } from 'typebox';
import { metadata, metadataObject, namedObject, oneOf, orNull, pathId, timestamp } from '../http/schemas.js';

const RecordingFileSchema = namedObject('RecordingFile', {
  id: Type.String({ description: 'File identifier, `recf_…`.' }),
  kind: oneOf(RECORDING_FILE_KINDS),
  participantId: orNull(
    Type.String({ description: 'The participant of the track. Null of a composite, and if it is not known.' }),
  ),
  trackId: orNull(Type.String()),
  source: orNull(oneOf(TRACK_SOURCES)),
  contentType: Type.String({
    description:
      'A track is `audio/webm` (Opus) or `video/webm` (VP8), a composite also `audio/mp4` (AAC) or `video/mp4` (H.264, AAC).',
  }),
  bytes: Type.Integer(),
  sha256: Type.String(),
  startMs: Type.Integer({ description: 'Begin of the file in the recording, in milliseconds.' }),
  durationMs: Type.Integer(),
  width: orNull(Type.Integer({ description: 'Of the first picture. It may change within the file.' })),
  height: orNull(Type.Integer()),
});

const MODES =
  '`composite`: one file of everything, 1280×720. `tracks`: a file for each track, and another one after each reconnection.';

export const RecordingSchema = namedObject('Recording', {
  id: Type.String({ description: 'Recording identifier, `rec_…`.' }),
  roomId: Type.String(),
  mode: oneOf(RECORDING_MODES, MODES),
  audioOnly: Type.Boolean(),
  layout: orNull(oneOf(RECORDING_LAYOUTS, 'Null unless it is a composite with pictures.')),
  participantId: orNull(Type.String({ description: 'Only this participant is recorded. Null: everyone.' })),
  metadata: metadata(),
  maxDurationSeconds: Type.Integer(),
  status: oneOf(RECORDING_STATUSES, '`recording` → `processing` (stopped) → `completed` or `failed`.'),
  progress: Type.Integer({ description: 'Progress of the processing, 0 to 100.' }),
  queuePosition: orNull(
    Type.Integer({
      description: 'Place among the recordings that wait for a recorder, from 1 on. Null if it does not wait.',
    }),
  ),
  lastError: orNull(
    Type.Object(
      { code: Type.String(), message: Type.String() },
      { description: 'Why the recording has failed.', additionalProperties: false },
    ),
  ),
  startedAt: timestamp('Begin of the recording.'),
  endedAt: orNull(timestamp('End of the recording.')),
  completedAt: orNull(timestamp('When all files were made.')),
  durationMs: orNull(Type.Integer({ description: 'From its begin to its end.' })),
  gaps: Type.Array(
    namedObject('RecordingGap', {
      startMs: Type.Integer(),
      durationMs: Type.Integer(),
      reason: oneOf(RECORDING_GAP_REASONS),
    }),
    { description: 'Media that is in no file.' },
  ),
  files: Type.Array(RecordingFileSchema, { description: 'In the order in which they were made.' }),
});

export const RecordingPath = Type.Object({ recordingId: pathId("Recording in the key's environment.") });
export const RecordingFilePath = Type.Object({
  ...RecordingPath.properties,
  fileId: pathId('File of the recording.'),
});

const recordingOptions = (hasDefaults: boolean) => ({
  mode: oneOf(RECORDING_MODES, MODES),
  audioOnly: Type.Optional(
    Type.Boolean({ ...(hasDefaults && { default: false }), description: 'Whether pictures are left out.' }),
  ),
  layout: Type.Optional(
    oneOf(RECORDING_LAYOUTS, 'Of a composite: everyone in equal size (the default), or the speaker large.'),
  ),
  maxDurationSeconds: Type.Optional(
    Type.Integer({
      minimum: RECORDING_DURATION_SECONDS.min,
      maximum: RECORDING_DURATION_SECONDS.max,
      ...(hasDefaults && { default: RECORDING_DURATION_SECONDS.default }),
      description: 'The recording stops by itself after this time.',
    }),
  ),
  metadata: Type.Optional(metadataObject('Application-defined.', hasDefaults ? undefined : {})),
});

/** The option of a room. Without defaults: types of the SDK would demand each field that has one. */
export const RecordSchema = namedObject('RecordRoom', recordingOptions(false));

export const StartRecordingBody = namedObject('StartRecording', {
  ...recordingOptions(true),
  participantId: Type.Optional(pathId('Records only this participant of the room.')),
});

export const LinkBody = namedObject('CreateRecordingLink', {
  expiresInSeconds: Type.Optional(
    Type.Integer({
      minimum: RECORDING_LINK_SECONDS.min,
      maximum: RECORDING_LINK_SECONDS.max,
      default: RECORDING_LINK_SECONDS.default,
      description: 'How long the link works.',
    }),
  ),
});

export const LinkSchema = namedObject('RecordingLink', {
  url: Type.String({ description: 'Needs no API key. Supports ranges, so players can seek.' }),
  expiresAt: timestamp('Until when the link works.'),
});
