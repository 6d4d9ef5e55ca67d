import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { capturePrefix, recordingPartsPrefix, type RecordingGap } from '@callplane/core';
import {
  areCapturesNeeded,
  assertLease,
  deleteCaptures,
  findRecordingOf,
  openMediaServers,
  readCaptures,
  saveRecordingFile,
  saveRecordingGaps,
  seeRecordingEnd,
  settleRecording,
  type ClaimedOperation,
  type RecordingToProcess,
  type StoredCapture,
} from '@callplane/db';
import type { Attempt, Kind, Slots, Step } from '@callplane/operations';
import { makeComposite } from '../composite/make-composite.js';
import type { Deps } from '../deps.js';
import { makeTracks, type Making } from './make-tracks.js';
import { planParts } from './parts.js';

/** How long an attempt waits for media servers that still ship, and the interval between checks, in milliseconds. */
const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 250;
/** The progress once all files are made: a later attempt makes none. And once the tracks of a composite are. */
const FILES_MADE = 99;
const PARTS_MADE = 20;

const STEPS: readonly Step<Deps>[] = [
  {
    name: 'wait for the media servers',
    async run({ database }, claim, { note, signal }) {
      const recording = await findRecordingOf(database.sql, claim);
      if (recording === null || isOver(recording)) return;
      const endSeenAt = await seeRecordingEnd(database.sql, recording.id);
      const until = performance.now() + WAIT_MS;
      for (;;) {
        const open = (await openMediaServers(database.sql, recording.roomId, endSeenAt)).filter(
          ({ isLost }) => !isLost,
        );
        if (open.length === 0) return;
        const nodeIds = open.map(({ nodeId }) => nodeId);
        note({ waitsFor: nodeIds });
        if (performance.now() > until) throw new Error(`${nodeIds.join(', ')} has not shipped everything yet`);
        await delay(LOOK_EVERY_MS, undefined, { signal });
      }
    },
  },
  { name: 'make the tracks', run: (deps, claim, attempt) => inScratch(deps, claim, attempt, makeFiles) },
  {
    name: 'make the composite',
    async run(deps, claim, attempt) {
      await inScratch(deps, claim, attempt, async (making) => {
        if (making.recording.mode !== 'composite') return;
        const { spans } = await readCaptures(deps.database.sql, making.recording);
        await makeComposite(making, spans, { from: PARTS_MADE, to: FILES_MADE });
      });
      await deps.store.removeAll(recordingPartsPrefix(claim.subjectId));
    },
  },
  { name: 'delete the captures', run: (deps, claim) => removeCaptures(deps, claim) },
];

/** Unless all files exist, or none is wanted any more. */
async function inScratch(
  deps: Deps,
  claim: ClaimedOperation,
  attempt: Attempt,
  make: (making: Making) => Promise<void>,
): Promise<void> {
  const recording = await findRecordingOf(deps.database.sql, claim);
  if (recording === null || isOver(recording)) return;
  const scratch = await mkdtemp(join(deps.scratchFolder, `${recording.id}-`));
  try {
    await make({ deps, claim, attempt, recording, scratch });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function isOver({ isDeleted, progress }: RecordingToProcess): boolean {
  return isDeleted || progress >= FILES_MADE;
}

async function makeFiles(making: Making): Promise<void> {
  const { deps, claim, attempt, recording } = making;
  const { captures, spans } = await readCaptures(deps.database.sql, recording);
  const endSeenAt = await seeRecordingEnd(deps.database.sql, recording.id);
  const open = await openMediaServers(deps.database.sql, recording.roomId, endSeenAt);
  const lost = open.map(({ nodeId }) => nodeId);
  const gaps: RecordingGap[] = [];
  const all = recording.mode === 'composite' ? PARTS_MADE : FILES_MADE;
  const made = new Set(recording.files.map(({ madeFrom }) => madeFrom));
  for (const [index, capture] of captures.entries()) {
    attempt.signal.throwIfAborted();
    if (await isDeleted(deps, claim)) return;
    if (!capture.closed && lost.includes(capture.nodeId)) gaps.push(lostGap(recording, capture));
    const parts = planParts(recording, capture, spans);
    const gap = await makeTracks(making, capture, parts, made);
    if (gap !== null) gaps.push(gap);
    await saveRecordingFile(deps.database, claim, null, Math.floor((all * (index + 1)) / (captures.length + 1)));
  }
  await deps.database.transaction(async (tx) => {
    await assertLease(tx, claim);
    await saveRecordingGaps(tx, recording.id, gaps);
  });
  await saveRecordingFile(deps.database, claim, null, all);
  attempt.note({ captures: captures.length, gaps: gaps.length });
}

async function isDeleted(deps: Deps, claim: ClaimedOperation): Promise<boolean> {
  return (await findRecordingOf(deps.database.sql, claim))?.isDeleted !== false;
}

/** The time after the last chunk that the media server has shipped. */
function lostGap({ startedAt, endedAt }: RecordingToProcess, { shippedAt }: StoredCapture): RecordingGap {
  const startMs = Math.max(0, shippedAt.getTime() - startedAt.getTime());
  return { startMs, durationMs: endedAt.getTime() - startedAt.getTime() - startMs, reason: 'media_server_lost' };
}

/** Unless another recording of the room needs them. */
async function removeCaptures(deps: Deps, claim: ClaimedOperation): Promise<void> {
  if (await areCapturesNeeded(deps.database.sql, claim.roomId, claim.subjectId)) return;
  await deps.store.removeAll(capturePrefix(claim.roomId));
  await deps.database.transaction(async (tx) => {
    await assertLease(tx, claim);
    await deleteCaptures(tx, claim.roomId);
  });
}

/** Makes the files of a recording that has ended. */
export const recordingProcess = (slots: Slots): Kind<Deps> => ({
  steps: STEPS,
  complete: (tx, claim, now) => settleRecording(tx, claim, { status: 'completed' }, now),
  fail: (tx, operation, { code, message }, now) =>
    settleRecording(tx, operation, { status: 'failed', error: { code, message } }, now),
  slots,
  isLong: true,
});
