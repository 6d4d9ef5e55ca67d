import type { Kinds } from '@callplane/operations';
import type { Deps } from '../deps.js';
import { recordingDelete } from './recording-delete.js';
import { recordingProcess } from './recording-process.js';

/** A deletion waits for disks only. */
const DELETIONS = 2;

/** The kinds that this app works on. */
export const kindsOf = (concurrency: number): Kinds<Deps> => ({
  'recording.process': recordingProcess({ concurrency }),
  'recording.delete': recordingDelete({ concurrency: DELETIONS }),
});
