import { capturePrefix, recordingPrefix } from '@callplane/core';
import { areCapturesNeeded, assertLease, cancelProcessing, deleteCaptures, deleteRecording } from '@callplane/db';
import type { Kind, Slots, Step } from '@callplane/operations';
import type { Deps } from '../deps.js';

const STEPS: readonly Step<Deps>[] = [
  {
    // A recorder that makes files of the recording ends between two files.
    name: 'cancel the processing',
    async run({ database, clock }, claim) {
      await database.transaction(async (tx) => {
        await assertLease(tx, claim);
        if (!(await cancelProcessing(tx, claim.subjectId, clock.now()))) {
          throw new Error(`a recorder still works on ${claim.subjectId}`);
        }
      });
    },
  },
  {
    name: 'delete the files',
    async run({ database, store }, claim) {
      await store.removeAll(recordingPrefix(claim.subjectId));
      if (await areCapturesNeeded(database.sql, claim.roomId, claim.subjectId)) return;
      await store.removeAll(capturePrefix(claim.roomId));
      await database.transaction(async (tx) => {
        await assertLease(tx, claim);
        await deleteCaptures(tx, claim.roomId);
      });
    },
  },
];

/** Deletes the files of a recording, then its row. */
export const recordingDelete = (slots: Slots): Kind<Deps> => ({
  steps: STEPS,
  async complete(tx, { subjectId }) {
    await deleteRecording(tx, subjectId);
    return [];
  },
  slots,
  isLong: true,
});
