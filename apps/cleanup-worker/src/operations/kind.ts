import { CONCURRENCY_PER_WORKER } from '@callplane/core';
import type { Kind, Slots, Step } from '@callplane/operations';
import type { Deps } from '../deps.js';

export type CleanUpKind = Kind<Deps>;
export type CleanUpStep = Step<
  Pick<Deps, 'database' | 'clock' | 'producer' | 'logger' | 'media' | 'relays' | 'graceMs'>
>;

/** The contract defines the concurrency of clean-ups per worker process, so all of them share these slots. */
export const CLEAN_UP_SLOTS: Slots = { concurrency: CONCURRENCY_PER_WORKER };
