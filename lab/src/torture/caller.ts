import { setTimeout as delay } from 'node:timers/promises';
import { ApiClient, type Sent } from '../client.js';
import type { HistoryWriter } from './history-writer.js';
import { withoutSecrets } from './history-writer.js';
import type { Phase } from './history.js';

/** How long a caller repeats a request that got no final answer, in milliseconds. */
const INSIST_MS = 60_000;
const AGAIN_MS = 250;
/** The rate limit of a deployment: how often and how long a caller waits. */
const TOO_MANY = 429;
const WAITS_MAX = 30;
const WAIT_MAX_SECONDS = 10;

export interface Sender {
  tenant: string;
  key: string;
  client: string;
}

/** The fields of answers that the harness itself uses. */
export interface AnswerBody {
  id?: string;
  participantId?: string;
  token?: string;
  status?: string;
  signingKeyVersion?: number;
  signingSecret?: string;
  data?: { id: string; replayCount: number }[];
  nextCursor?: string | null;
  error?: { code: string };
}

export interface Answer {
  /** Null if no answer came. */
  status: number | null;
  /** Empty without a JSON body. */
  body: AnswerBody;
}

/** The sender of all requests of a run, which writes each of them down. */
export class Caller {
  phase: Phase = 'load';
  /** Answers by status; `none` without an answer. */
  readonly statuses = new Map<string, number>();
  #count = 0;

  constructor(
    readonly baseUrl: string,
    readonly history: HistoryWriter,
  ) {}

  /** Sends a request, and again when the service has asked to wait. Never throws. */
  async call(from: Sender, method: string, path: string, sent?: Sent): Promise<Answer> {
    for (let waits = 0; ; waits += 1) {
      const { retryAfter, ...answer } = await this.#callOnce(from, method, path, sent);
      if (answer.status !== TOO_MANY || waits === WAITS_MAX) return answer;
      await delay(Math.min(Number(retryAfter ?? 1), WAIT_MAX_SECONDS) * 1000);
    }
  }

  /** Repeats a request as a careful caller does: until its outcome is known. Null if that takes too long. */
  async insist(from: Sender, method: string, path: string, sent?: Sent): Promise<Answer | null> {
    const untilMs = performance.now() + INSIST_MS;
    while (performance.now() < untilMs) {
      const answer = await this.call(from, method, path, sent);
      const isInProgress = answer.body.error?.code === 'IDEMPOTENCY_CONFLICT';
      if (answer.status !== null && answer.status < 500 && !isInProgress) return answer;
      await delay(AGAIN_MS);
    }
    return null;
  }

  async #callOnce(
    { tenant, client, key }: Sender,
    method: string,
    path: string,
    sent: Sent = {},
  ): Promise<Answer & { retryAfter: string | null }> {
    this.#count += 1;
    const id = `r${this.#count}`;
    const { history, phase } = this;
    const startMs = history.nowMs;
    const { status, error, answer, header } = await new ApiClient(this.baseUrl, key).send(method, path, sent);
    this.statuses.set(String(status ?? 'none'), (this.statuses.get(String(status ?? 'none')) ?? 0) + 1);
    const retryAfter = header('retry-after');
    history.write('requests', {
      id,
      tenant,
      client,
      phase,
      method,
      path,
      idempotencyKey: sent.idempotencyKey ?? null,
      prefer: sent.prefer ?? null,
      body: (sent.body as Record<string, unknown> | undefined) ?? null,
      startMs,
      endMs: history.nowMs,
      status,
      error,
      answer: withoutSecrets(answer),
      requestId: header('x-request-id'),
      retryAfter,
      idempotencyReplayed: header('idempotency-replayed') === 'true',
    });
    return { status, body: typeof answer === 'object' && answer !== null ? answer : {}, retryAfter };
  }
}
