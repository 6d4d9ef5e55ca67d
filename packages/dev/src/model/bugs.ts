/** A bug that is seeded into a specification, to prove that an invariant can fail. */
export interface SeededBug {
  name: string;
  file: 'leases.qnt' | 'sessions.qnt';
  module: string;
  /** A text of the specification, which occurs once, and its replacement. */
  edit: readonly [from: string, to: string];
  /** The invariant that the bug breaks. */
  breaks: string;
}

const NOTHING = '';

const LEASE_BUGS: readonly SeededBug[] = [
  {
    name: 'A worker settles without its token',
    file: 'leases.qnt',
    module: 'deliveries',
    edit: ['row.token == claim.token and (KIND', '(KIND'],
    breaks: 'oneWriter',
  },
  {
    name: 'A claim takes a row whose attempts are used up',
    file: 'leases.qnt',
    module: 'operations',
    edit: [', not(row.isExhausted()),\n      not(state.isBlocked', ',\n      not(state.isBlocked'],
    breaks: 'attemptsBounded',
  },
  {
    name: 'The last attempt of a run is settled as a retry',
    file: 'leases.qnt',
    module: 'operations',
    edit: ['if (isHeld and claim.attempt < ATTEMPTS_MAX) going("retry"', 'if (isHeld) going("retry"'],
    breaks: 'nothingForgotten',
  },
  {
    name: 'A successful attempt leaves the row open',
    file: 'leases.qnt',
    module: 'operations',
    edit: ['status: "succeeded", log', 'status: "open", log'],
    breaks: 'noAttemptAfterSuccess',
  },
  {
    name: 'A repeated request starts a run and counts none',
    file: 'leases.qnt',
    module: 'operations',
    edit: [
      'going("rerun",\n          { ...row, status: "open", runNo: row.runNo + 1,',
      'going("rerun",\n          { ...row, status: "open",',
    ],
    breaks: 'replaysCounted',
  },
  {
    name: 'A sweep takes an unknown outcome for a success',
    file: 'leases.qnt',
    module: 'deliveries',
    edit: ['(row.isExhausted()) "failed" else "open"', '(row.isExhausted()) "succeeded" else "open"'],
    breaks: 'successProven',
  },
  {
    name: 'A claim ignores the delay of a retry',
    file: 'leases.qnt',
    module: 'operations',
    edit: ['row.isHinted, row.wait == "due", row.isUnleased()', 'row.isHinted, row.isUnleased()'],
    breaks: 'neverEarly',
  },
  {
    name: 'A claim ignores the deliveries before it in the line',
    file: 'leases.qnt',
    module: 'lines',
    edit: ['not(state.isBlocked(id)), not(state.isRoomInFlight(id)),', NOTHING],
    breaks: 'inOrder',
  },
  {
    name: 'No scan finds rows whose wake-up was lost',
    file: 'leases.qnt',
    module: 'operations',
    edit: ['if (row.isOpen() and row.wait == "due" and row.isUnleased()', 'if (false and row.isUnleased()'],
    breaks: 'progress',
  },
  {
    name: 'No sweep settles operations whose last worker died',
    file: 'leases.qnt',
    module: 'operations',
    edit: ['row.isExpired and row.isExhausted())', 'false)'],
    breaks: 'progress',
  },
];

const SESSION_BUGS: readonly SeededBug[] = [
  {
    name: 'A join counts the places wrongly',
    file: 'sessions.qnt',
    module: 'rooms',
    edit: ['.size() < PLACES', '.size() <= PLACES'],
    breaks: 'capacity',
  },
  {
    name: "A join leaves the participant's earlier session",
    file: 'sessions.qnt',
    module: 'smallRooms',
    edit: ['val before = without.endedAll(state.liveOf(one.who))', 'val before = without'],
    breaks: 'oneLiveSession',
  },
  {
    name: 'The end of a session is not reported',
    file: 'sessions.qnt',
    module: 'smallRooms',
    edit: ['.withEvent("left", id, state.sequence + 1)', NOTHING],
    breaks: 'reportedOnce',
  },
  {
    name: 'A join without locks ignores changes since its read',
    file: 'sessions.qnt',
    module: 'smallRooms',
    edit: ['one.isRead and one.isAccepted and not(one.isStale)', 'one.isRead and one.isAccepted'],
    breaks: 'noLateJoin',
  },
  {
    name: 'A removal completes before it has ended the session',
    file: 'sessions.qnt',
    module: 'smallRooms',
    edit: ['if (person.removal == "ended")', 'if (person.removal == "accepted")'],
    breaks: 'removedGone',
  },
  {
    name: 'The end of a room does not wait for its sessions',
    file: 'sessions.qnt',
    module: 'smallRooms',
    edit: ['state.room == "ending" and state.live().size() == 0', 'state.room == "ending"'],
    breaks: 'endedEmpty',
  },
  {
    name: 'Two events get one number',
    file: 'sessions.qnt',
    module: 'smallRooms',
    edit: ['withEvent("left", id, state.sequence + 1)', 'withEvent("left", id, state.sequence)'],
    breaks: 'numbered',
  },
  {
    name: 'A resumption keeps the number of the connection',
    file: 'sessions.qnt',
    module: 'resumptions',
    edit: ['{ ...session, connection: session.connection + 1, isConnected', '{ ...session, isConnected'],
    breaks: 'oneHolder',
  },
  {
    name: 'A sweep ends a session that was resumed meanwhile',
    file: 'sessions.qnt',
    module: 'resumptions',
    edit: ['val isSame = session.isLive and session.connection == one.connection', 'val isSame = session.isLive'],
    breaks: 'resumedStays',
  },
];

const SESSION_PROGRESS_BUGS: readonly SeededBug[] = [
  {
    name: 'No clean-up completes a removal',
    file: 'sessions.qnt',
    module: 'resumptions',
    edit: ['if (person.removal == "ended")', 'if (false)'],
    breaks: 'progress',
  },
];

export const SEEDED_BUGS: readonly SeededBug[] = [...LEASE_BUGS, ...SESSION_BUGS, ...SESSION_PROGRESS_BUGS];
