/** The invariants of each specification. docs/guarantees.md names the guarantees that they back. */
export const MODEL_INVARIANTS = {
  'leases.qnt': [
    'oneWriter',
    'attemptsBounded',
    'nothingForgotten',
    'noAttemptAfterSuccess',
    'replaysCounted',
    'successProven',
    'neverEarly',
    'inOrder',
  ],
  'sessions.qnt': [
    'oneLiveSession',
    'capacity',
    'reportedOnce',
    'noLateJoin',
    'removedGone',
    'endedEmpty',
    'numbered',
    'oneHolder',
    'resumedStays',
  ],
} as const;

export type SpecFile = keyof typeof MODEL_INVARIANTS;
