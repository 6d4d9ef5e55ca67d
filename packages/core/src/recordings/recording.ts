import type { TrackSource } from '../participants/participant.js';

/** `composite`: one file of everything. `tracks`: a file for each track. */
export const RECORDING_MODES = ['composite', 'tracks'] as const;
export type RecordingMode = (typeof RECORDING_MODES)[number];

export const RECORDING_LAYOUTS = ['grid', 'speaker'] as const;
export type RecordingLayout = (typeof RECORDING_LAYOUTS)[number];

/** `recording` → `processing` (stopped) → `completed` or `failed`. */
export const RECORDING_STATUSES = ['recording', 'processing', 'completed', 'failed'] as const;
export type RecordingStatus = (typeof RECORDING_STATUSES)[number];

export type RecordingEventType = `recording.${'started' | 'stopped' | 'completed' | 'failed'}`;

export const RECORDING_DURATION_SECONDS = { min: 1, default: 14_400, max: 86_400 } as const;
/** How long the link of a file works, in seconds. */
export const RECORDING_LINK_SECONDS = { min: 1, default: 3600, max: 86_400 } as const;

export const RECORDING_FILE_KINDS = ['composite', 'track'] as const;

export interface RecordingFile {
  id: string;
  kind: (typeof RECORDING_FILE_KINDS)[number];
  participantId: string | null;
  trackId: string | null;
  source: TrackSource | null;
  contentType: string;
  bytes: number;
  sha256: string;
  /** Begin of the file in the recording. */
  startMs: number;
  durationMs: number;
  /** Of the first picture. Null for sound. */
  width: number | null;
  height: number | null;
}

/**
 * A file as stored. Its name in the store is {@link recordingFileKey}. A composite has tracks until it is made: their
 * names begin with {@link recordingPartsPrefix}.
 */
export interface StoredRecordingFile extends RecordingFile {
  /** The capture and the track that it was made from: a later attempt does not make it again. Empty for a composite. */
  madeFrom: string;
}

export const RECORDING_GAP_REASONS = ['media_server_lost', 'codec_unsupported'] as const;

/** Something that was sent meanwhile and is in no file. */
export interface RecordingGap {
  startMs: number;
  durationMs: number;
  reason: (typeof RECORDING_GAP_REASONS)[number];
}

export interface RecordingState {
  id: string;
  environmentId: string;
  roomId: string;
  participantId: string | null;
  mode: RecordingMode;
  audioOnly: boolean;
  /** Null unless it is a composite with pictures. */
  layout: RecordingLayout | null;
  metadata: Record<string, unknown>;
  maxDurationSeconds: number;
  status: RecordingStatus;
  progress: number;
  /** Place among the recordings that wait for a recorder, from 1 on; null if it does not wait. */
  queuePosition: number | null;
  lastError: { code: string; message: string } | null;
  startedAt: Date;
  endedAt: Date | null;
  completedAt: Date | null;
  gaps: RecordingGap[];
  files: StoredRecordingFile[];
}

/** The options of a recording, in a request and in the option of a room. Absent fields have their defaults. */
export interface RecordingInput {
  mode: RecordingMode;
  audioOnly?: boolean;
  layout?: RecordingLayout;
  maxDurationSeconds?: number;
  metadata?: Record<string, unknown>;
}

export type NewRecording = Pick<RecordingState, keyof RecordingInput | 'id' | 'participantId'>;

export function newRecording(
  { mode, audioOnly, layout, maxDurationSeconds, metadata, participantId }: RecordingInput & { participantId?: string },
  id: string,
): NewRecording {
  return {
    id,
    participantId: participantId ?? null,
    mode,
    audioOnly: audioOnly ?? false,
    layout: mode === 'composite' && audioOnly !== true ? (layout ?? 'grid') : null,
    metadata: metadata ?? {},
    maxDurationSeconds: maxDurationSeconds ?? RECORDING_DURATION_SECONDS.default,
  };
}

/** Presents a recording for the API and for events. */
export function presentRecording(recording: RecordingState) {
  const { startedAt, endedAt, completedAt } = recording;
  return {
    id: recording.id,
    roomId: recording.roomId,
    mode: recording.mode,
    audioOnly: recording.audioOnly,
    layout: recording.layout,
    participantId: recording.participantId,
    metadata: recording.metadata,
    maxDurationSeconds: recording.maxDurationSeconds,
    status: recording.status,
    progress: recording.progress,
    queuePosition: recording.queuePosition,
    lastError: recording.lastError,
    startedAt: startedAt.toISOString(),
    endedAt: endedAt === null ? null : endedAt.toISOString(),
    completedAt: completedAt === null ? null : completedAt.toISOString(),
    durationMs: endedAt === null ? null : endedAt.getTime() - startedAt.getTime(),
    gaps: recording.gaps,
    files: recording.files
      .filter(({ kind }) => (kind === 'composite') === (recording.mode === 'composite'))
      .map(({ madeFrom: _, ...file }) => file),
  };
}

/** Names in the store. All files of a recording, and all captures of a room, have a common beginning. */
export const recordingPrefix = (recordingId: string): string => `recordings/${recordingId}/`;
/** Of what a composite is made of. Deleted once it is made. */
export const recordingPartsPrefix = (recordingId: string): string => `${recordingPrefix(recordingId)}parts/`;
const SUFFIXES: Readonly<Record<string, string>> = { 'audio/webm': 'weba', 'audio/mp4': 'm4a', 'video/mp4': 'mp4' };
export const recordingFileName = ({ id, contentType }: Pick<RecordingFile, 'id' | 'contentType'>): string =>
  `${id}.${SUFFIXES[contentType] ?? 'webm'}`;
export const recordingFileKey = (recordingId: string, file: Pick<RecordingFile, 'id' | 'contentType'>): string =>
  recordingPrefix(recordingId) + recordingFileName(file);
export const capturePrefix = (roomId: string): string => `captures/${roomId}/`;
export const captureChunkKey = (capture: { roomId: string; nodeId: string; name: string }, chunk: number): string =>
  `${capturePrefix(capture.roomId)}${capture.nodeId}/${capture.name}/${chunk}`;

/** The beginning of the wait for captures after the end of a recording, until a silent media server counts as lost. */
export const MEDIA_SERVER_LOST_SECONDS = 120;
