/**
 * The history of a run of `npm run torture`: the observations of clients, receivers and the nemesis, as files of JSON
 * lines in one folder. The checker reads nothing else. One process writes all of them, so that all times have one
 * clock.
 *
 * Rules for readers:
 *
 * - `…Ms` are milliseconds since the begin of the run, by a monotonic clock that no fault changes. `wall` is the same
 *   instant as ISO 8601 in UTC. The clocks of the service may be wrong while the nemesis jumps them.
 * - Lines are in the order in which they were written. `n` counts the lines of a file from 0 without gaps.
 * - A last line without a line feed was cut off: ignore it.
 * - Secrets (API keys, participant tokens, signing and resume secrets, TURN credentials) appear as `REDACTED`.
 *   Everything else is as the client sent or got it.
 * - A request without a `status` has an unknown outcome: it may have had its effect, also later than `endMs`.
 */
export const HISTORY_FILES = {
  run: 'run.jsonl',
  requests: 'requests.jsonl',
  frames: 'frames.jsonl',
  deliveries: 'deliveries.jsonl',
  media: 'media.jsonl',
  nemesis: 'nemesis.jsonl',
  marks: 'marks.jsonl',
} as const;

/** The type of the lines of each file. */
export interface HistoryLines {
  run: RunLine;
  requests: RequestLine;
  frames: FrameLine;
  deliveries: DeliveryLine;
  media: MediaLine;
  nemesis: NemesisLine;
  marks: MarkLine;
}

export const REDACTED = '[secret]';

/** An object as JSON holds it. */
export type JsonObject = Record<string, unknown>;

interface Line {
  n: number;
  /** Of `startMs` or `atMs`. */
  wall: string;
}

export interface RunLine extends Line {
  atMs: number;
  seed: number;
  minutes: number;
  /** The address of the load balancer, or of the deployment. */
  baseUrl: string;
  /** False for a run against a deployment. */
  hasNemesis: boolean;
  tenants: Tenant[];
  /** Settings that a bound of a guarantee depends on. Null: the contract's. */
  settings: { leaseMs: number | null };
}

interface Tenant {
  /** `a`, `b` … as in `tenant` of the other lines. */
  name: string;
  projectId: string;
  environmentId: string;
}

/** Order of the phases: load, then load and faults, then quiet, then final reads. */
export type Phase = 'load' | 'final';

/**
 * One HTTP request, sent once: a repetition by the client is a line of its own.
 *
 * A client of tenant `a` also asks for resources of other tenants: whose a resource is says the answer that created it.
 * In the phase `final`, each tenant reads everything that it knows of: rooms, operations, participants, sessions, events
 * by room, endpoints, deliveries and their attempts. Lists are read to their last page.
 */
export interface RequestLine extends Line {
  /** `r1`, `r2` … in the order of `startMs`. */
  id: string;
  tenant: string;
  /** The sequential caller that sent it: it sends one request at a time. */
  client: string;
  phase: Phase;
  method: string;
  /** With its query. */
  path: string;
  idempotencyKey: string | null;
  prefer: string | null;
  body: JsonObject | null;
  startMs: number;
  endMs: number;
  /** Null if no answer came: the outcome is unknown. */
  status: number | null;
  /** `timeout`, or the code of the network's error such as `ECONNRESET`; null with a `status`. */
  error: string | null;
  answer: unknown;
  requestId: string | null;
  retryAfter: string | null;
  idempotencyReplayed: boolean;
}

/** Something that happened on the WebSocket of one client. */
export interface FrameLine extends Line {
  atMs: number;
  tenant: string;
  roomId: string;
  participantId: string;
  /** One use of the SDK, which may have several connections: `call1`, `call2` … */
  call: string;
  /** One WebSocket: `call1.1`, `call1.2` … */
  connection: string;
  /**
   * - `opened`: the upgrade succeeded.
   * - `sent`, `received`: `frame` is a message.
   * - `closed`: `code` and `reason` of the close frame; 1006 without one.
   * - `ended`: the SDK has given up the session or left it; `reason` comes from the SDK. The last line of a call.
   */
  what: 'opened' | 'sent' | 'received' | 'closed' | 'ended';
  frame: JsonObject | null;
  code: number | null;
  reason: string | null;
}

/** One POST that a receiver got. */
export interface DeliveryLine extends Line {
  /** When its head had arrived. */
  startMs: number;
  /** When its body had arrived; null if it was cut off. */
  receivedMs: number | null;
  /** When the receiver handed its answer to the network; null without an answer. */
  answeredMs: number | null;
  tenant: string;
  /** The URL of the endpoint. */
  url: string;
  /** The names are lower case. Without the headers of the connection. */
  headers: Record<string, string>;
  body: string;
  bodySha256: string;
  /** Of the signature, by the receiver itself with `node:crypto`; the reason if it is wrong. */
  verified: true | string;
  /**
   * The status, or the receiver's other reaction: `hang` leaves the request without an answer, `reset`: the connection
   * ended before the answer, by the receiver or by the sender.
   */
  answer: number | 'hang' | 'reset';
}

/** The packets that one call had received at one time. Its client ignores the order to stop, as a hostile one does. */
export interface MediaLine extends Line {
  atMs: number;
  tenant: string;
  roomId: string;
  participantId: string;
  call: string;
  /** Packets of audio and video since the begin of the call, over all of its peer connections. */
  packetsReceived: number;
}

export type NemesisAction =
  /** SIGKILL, and a start after the fault's duration. */
  | 'kill'
  /** SIGSTOP and SIGCONT. */
  | 'freeze'
  /** SIGTERM, and a start. */
  | 'restart'
  /** The primary of PostgreSQL is killed or frozen and the standby becomes the primary. */
  | 'promote'
  /** The replica of Redis becomes the master, and the master its replica. */
  | 'demote'
  /** Connections to the target stay open and carry nothing. */
  | 'cut'
  /** The store of recordings fails. */
  | 'lose'
  /** The disk of the target has no space left. */
  | 'fill'
  /** The clock of the target jumps. */
  | 'clock'
  /** Redis loses all of its keys. */
  | 'flush'
  /** The users of Redis lose a right, and get it back. */
  | 'refuse';

export interface NemesisLine extends Line {
  atMs: number;
  /** `f1`, `f2` … : begin and end of a fault have the same. */
  fault: string;
  what: 'begin' | 'end';
  action: NemesisAction;
  /** `api 1`, `gateway 2`, `postgres`, `standby`, `redis 1`, `sentinel 3`, `nginx` … */
  target: string;
  detail: string;
}

export type Mark =
  | 'load began'
  | 'nemesis began'
  /** Every process runs again, and every connection carries data. */
  | 'nemesis ended'
  | 'load ended'
  /** The revocation of an API key was confirmed. `detail` has the `client` that still uses it. */
  | 'key revoked'
  /** No operation and no delivery is open. `detail` has `reached: false` if that did not happen in time. */
  | 'settled'
  | 'final reads began'
  | 'final reads ended'
  /** The invariants of `rtc doctor --deep`: `detail` has `broken`, a list of names with rows. */
  | 'invariants'
  /**
   * Forwards between media servers, after the end of all rooms: `detail` has `opened`, the number that was seen, `left`,
   * a list of their rows, feeds and rooms that are left, and the `ports` that stay bound.
   */
  | 'forwards'
  /** An app ended or logged an error that no fault explains: `detail` has `app` and `message`. */
  | 'app failed'
  /** The last line of a complete run. */
  | 'finished';

export interface MarkLine extends Line {
  atMs: number;
  mark: Mark;
  detail: JsonObject;
}
