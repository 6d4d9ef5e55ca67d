import { setTimeout as delay } from 'node:timers/promises';
import type { HistoryWriter } from './history-writer.js';
import { withoutSecrets } from './history-writer.js';
import type { JsonObject, Phase } from './history.js';

const GIVE_UP_MS = 30_000;
/** How long a caller repeats a request that got no final answer, in milliseconds. */
const INSIST_MS = 60_000;
const AGAIN_MS = 250;
/** The rate limit of a deployment: how often and how long a caller waits. */
const TOO_MANY = 429;
const WAITS_MAX = 30;
const WAIT_MAX_SECONDS = 10;

/** Who sends a request. */
export interface Sender {
  tenant: string;
  key: string;
  client: string;
}

export interface Sent {
  body?: JsonObject;
  idempotencyKey?: string;
  prefer?: string;
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

  async #callOnce(
    from: Sender,
    method: string,
    path: string,
    { body, idempotencyKey, prefer }: Sent = {},
  ): Promise<Answer & { retryAfter: string | null }> {
    this.#count += 1;
    const id = `r${this.#count}`;
    const { history, phase } = this;
    const startMs = history.nowMs;
    const result = await this.#send(from.key, method, path, { body, idempotencyKey, prefer });
    const status = 'response' in result ? result.response.status : null;
    this.statuses.set(String(status ?? 'none'), (this.statuses.get(String(status ?? 'none')) ?? 0) + 1);
    const header = (name: string): string | null => ('response' in result ? result.response.headers.get(name) : null);
    const answer = 'response' in result ? result.answer : null;
    history.write('requests', {
      id,
      tenant: from.tenant,
      client: from.client,
      phase,
      method,
      path,
      idempotencyKey: idempotencyKey ?? null,
      prefer: prefer ?? null,
      body: body ?? null,
      startMs,
      endMs: history.nowMs,
      status,
      error: 'error' in result ? result.error : null,
      answer: withoutSecrets(answer),
      requestId: header('x-request-id'),
      retryAfter: header('retry-after'),
      idempotencyReplayed: header('idempotency-replayed') === 'true',
    });
    const read = typeof answer === 'object' && answer !== null ? answer : {};
    return { status, body: read, retryAfter: header('retry-after') };
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

  async #send(
    key: string,
    method: string,
    path: string,
    { body, idempotencyKey, prefer }: { [Name in keyof Sent]: Sent[Name] | undefined },
  ): Promise<{ response: Response; answer: unknown } | { error: string }> {
    try {
      const response = await fetch(`${this.baseUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(prefer === undefined ? {} : { prefer }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(GIVE_UP_MS),
      });
      const text = await response.text();
      return { response, answer: parsed(text) };
    } catch (error) {
      const { name, cause } = error as { name: string; cause?: { code?: string; message?: string } };
      return { error: name === 'TimeoutError' ? 'timeout' : (cause?.code ?? cause?.message ?? name) };
    }
  }
}

function parsed(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(0, 1000);
  }
}
