import { firstIdAt, STREAM_WATCH_EVERY_MS, type StreamKind } from '@callplane/core';
import type { EndedAttemptMark, EndpointMark, RecoveryMark } from '@callplane/db';
import type { ListNotice } from './changes.js';
import type { OnReadFailed } from './read-failures.js';

/** Attempts of all environments that one read takes. If there are more, any endpoint may have some. */
const ATTEMPTS_MAX = 2000;
/** How long an attempt may take from its id to its commit, with the difference of the workers' clocks. */
const ATTEMPT_MARGIN_MS = 5000;

export interface WatchReads {
  now(): Date;
  endpoints(environmentIds: readonly string[]): PromiseLike<EndpointMark[]>;
  attempts(
    environmentIds: readonly string[],
    page: { from: string; limit: number },
  ): Promise<{ marks: EndedAttemptMark[]; isComplete: boolean }>;
  recoveries(environmentIds: readonly string[]): PromiseLike<RecoveryMark[]>;
}

/** The kinds that some stream of an environment wants, by environment. */
export type WatchedKinds = ReadonlyMap<string, ReadonlySet<StreamKind>>;

/** Finds out what has changed about webhooks, with three statements for all environments. */
export class WebhookWatch {
  readonly #reads: WatchReads;
  readonly #tell: (environmentId: string, notices: ListNotice[]) => void;
  readonly #watched: () => WatchedKinds;
  readonly #everyMs: number;
  readonly #onReadFailed: OnReadFailed;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #readAt: Date | null = null;
  /** The marks of the last read by environment, then id. */
  #endpoints = new Map<string, Map<string, EndpointMark>>();
  #recoveries = new Map<string, Map<string, RecoveryMark>>();
  /** Attempts of the last read, which the next one finds again. */
  #attempts = new Set<string>();

  constructor(
    reads: WatchReads,
    watched: () => WatchedKinds,
    tell: (environmentId: string, notices: ListNotice[]) => void,
    { everyMs = STREAM_WATCH_EVERY_MS, onReadFailed }: { everyMs?: number | undefined; onReadFailed: OnReadFailed },
  ) {
    this.#reads = reads;
    this.#watched = watched;
    this.#tell = tell;
    this.#everyMs = everyMs;
    this.#onReadFailed = onReadFailed;
  }

  /** Call it when a stream begins. The timer ends when no stream wants anything. */
  schedule(): void {
    if (this.#isClosed || this.#watched().size === 0) return;
    this.#timer ??= setTimeout(() => void this.#tick(), this.#everyMs);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Never rejects. */
  async #tick(): Promise<void> {
    const watched = this.#watched();
    try {
      await this.#read(watched);
    } catch (error) {
      // The next read finds the differences to the last one.
      this.#onReadFailed('webhooks', error);
    }
    this.#timer = undefined;
    if (this.#watched().size === 0) this.#forget();
    this.schedule();
  }

  #forget(): void {
    this.#readAt = null;
    this.#endpoints.clear();
    this.#recoveries.clear();
    this.#attempts.clear();
  }

  async #read(watched: WatchedKinds): Promise<void> {
    const wanting = (...kinds: StreamKind[]) =>
      [...watched].filter(([, wanted]) => kinds.some((kind) => wanted.has(kind))).map(([id]) => id);
    const [ofEndpoints, ofDeliveries, ofRecoveries] = [
      wanting('endpoints', 'deliveries'),
      wanting('deliveries'),
      wanting('recoveries'),
    ];
    const now = this.#reads.now();
    const from = firstIdAt('attempt', new Date((this.#readAt ?? now).getTime() - ATTEMPT_MARGIN_MS));
    const [endpoints, attempts, recoveries] = await Promise.all([
      ofEndpoints.length === 0 ? [] : this.#reads.endpoints(ofEndpoints),
      ofDeliveries.length === 0 ? NOTHING : this.#reads.attempts(ofDeliveries, { from, limit: ATTEMPTS_MAX }),
      ofRecoveries.length === 0 ? [] : this.#reads.recoveries(ofRecoveries),
    ]);
    this.#readAt = now;
    const marks = {
      endpoints: byEnvironment(ofEndpoints, endpoints),
      recoveries: byEnvironment(ofRecoveries, recoveries),
    };
    for (const [environmentId, kinds] of watched) {
      const notices = [
        ...endpointNotices(this.#endpoints.get(environmentId), marks.endpoints.get(environmentId)),
        ...deliveryNotices({
          before: this.#endpoints.get(environmentId),
          now: marks.endpoints.get(environmentId),
          ended: attempts.marks.filter((mark) => this.#isNew(mark, environmentId)),
          isComplete: attempts.isComplete,
        }),
        ...recoveryNotices(this.#recoveries.get(environmentId), marks.recoveries.get(environmentId)),
      ].filter(({ kind }) => kinds.has(kind));
      if (notices.length > 0) this.#tell(environmentId, notices);
    }
    this.#endpoints = marks.endpoints;
    this.#recoveries = marks.recoveries;
    this.#attempts = new Set(attempts.marks.map(({ attemptId }) => attemptId));
  }

  #isNew({ attemptId, environmentId }: EndedAttemptMark, of: string): boolean {
    return environmentId === of && !this.#attempts.has(attemptId);
  }
}

const NOTHING = { marks: [], isComplete: true };

function byEnvironment<Mark extends { environmentId: string; id: string }>(
  environmentIds: readonly string[],
  marks: readonly Mark[],
): Map<string, Map<string, Mark>> {
  const found = new Map(environmentIds.map((id) => [id, new Map<string, Mark>()]));
  for (const mark of marks) found.get(mark.environmentId)?.set(mark.id, mark);
  return found;
}

function endpointNotices(before?: Map<string, EndpointMark>, now?: Map<string, EndpointMark>): ListNotice[] {
  return differ(before, now) ? [{ kind: 'endpoints', type: 'endpoints.changed' }] : [];
}

function recoveryNotices(before?: Map<string, RecoveryMark>, now?: Map<string, RecoveryMark>): ListNotice[] {
  return differ(before, now) ? [{ kind: 'recoveries', type: 'recoveries.changed' }] : [];
}

/**
 * Without earlier marks, changes since the first stream of the environment began are unknown: its client reads
 * once more.
 */
function differ(before?: Map<string, { state: string }>, now?: Map<string, { state: string }>): boolean {
  if (now === undefined) return false;
  if (before === undefined) return true;
  return before.size !== now.size || [...now].some(([id, { state }]) => before.get(id)?.state !== state);
}

function deliveryNotices({
  before,
  now,
  ended,
  isComplete,
}: {
  before: Map<string, EndpointMark> | undefined;
  now: Map<string, EndpointMark> | undefined;
  ended: readonly EndedAttemptMark[];
  isComplete: boolean;
}): ListNotice[] {
  const type = 'deliveries.changed';
  if (now === undefined) return [];
  if (!isComplete || before === undefined) return [{ kind: 'deliveries', type, endpointIds: null }];
  const written = [...now].filter(([id, mark]) => mark.newestDelivery !== (before.get(id)?.newestDelivery ?? null));
  const endpointIds = [...new Set([...written.map(([id]) => id), ...ended.map(({ endpointId }) => endpointId)])].sort();
  return endpointIds.length === 0 ? [] : [{ kind: 'deliveries', type, endpointIds }];
}
