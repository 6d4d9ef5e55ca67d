import { setTimeout as delay } from 'node:timers/promises';
import { EVENT_WAIT_SECONDS_MAX } from '@callplane/core';
import { CommandError, UsageError } from '../failure.js';

/** How much longer than the service waits the client waits for its answer, in milliseconds. */
const ANSWER_LATER_MS = 15_000;
const PAGE_LIMIT = 100;
/** Pause after the first failed request, in milliseconds. It doubles up to the maximum. */
const PAUSE_MS = 500;
const PAUSE_MS_MAX = 10_000;
/** The longest `Retry-After` that is followed, in seconds. */
const RETRY_AFTER_SECONDS_MAX = 60;

/** An event in the form that the API returns. */
export interface ServiceEvent {
  id: string;
  type: string;
}

/** Where reading begins: after the newest event, or with the first one created since a time. */
export type Start = 'latest' | Date;

interface EventPage {
  data: ServiceEvent[];
  nextCursor: string | null;
}

export interface KeyFacts {
  environmentId: string;
  scopes: unknown[];
}

/** Longer ones are no ids of Callplane. */
const ID_CHARS_MAX = 128;

/** Whether the answer is one of Callplane. Another service may run at the address. */
function isFacts(answer: unknown): answer is KeyFacts {
  const { environmentId, scopes } = Object(answer) as Partial<KeyFacts>;
  return isId(environmentId) && Array.isArray(scopes);
}

function isPage(answer: unknown): answer is EventPage {
  const { data, nextCursor } = Object(answer) as Partial<EventPage>;
  const isEvent = (event: unknown): boolean => {
    const { id, type } = Object(event) as Partial<ServiceEvent>;
    return isId(id) && isId(type);
  };
  return (nextCursor === null || typeof nextCursor === 'string') && Array.isArray(data) && data.every(isEvent);
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && value.length <= ID_CHARS_MAX;
}

export interface EventSourceOptions {
  /** Base URL without a slash at its end. */
  url: string;
  key: string;
  /** Event types to read; empty for all. */
  types: readonly string[];
  signal: AbortSignal;
  /** The service did not answer, or answered with a failure that may pass. Reading goes on. */
  onInterrupted(reason: string): void;
  onResumed(): void;
}

/** A failure that may pass: the service is being restarted, or has no capacity. */
class Interrupted extends Error {
  constructor(
    message: string,
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}

/** Reads the events of a service with an API key, over all restarts of the service. */
export class EventSource {
  readonly #options: EventSourceOptions;
  #after: string | null = null;

  constructor(options: EventSourceOptions) {
    this.#options = options;
  }

  /** @throws CommandError or UsageError when the service or its key cannot be used. */
  async open(start: Start): Promise<KeyFacts> {
    const { url } = this.#options;
    try {
      const facts = await this.#get('/v1/', 0, isFacts);
      if (!facts.scopes.includes('webhooks:read')) {
        throw new UsageError('The API key lacks the scope webhooks:read. Create one with "rtc keys create".');
      }
      if (start === 'latest') {
        this.#after = (await this.#get(this.#path({ after: 'latest' }), 0, isPage)).nextCursor;
      }
      return facts;
    } catch (error) {
      if (error instanceof Interrupted) throw new CommandError(`${url} cannot be used: ${error.message}.`);
      throw error;
    }
  }

  /** Yields events until the signal is aborted. */
  async *events(start: Start): AsyncGenerator<ServiceEvent> {
    const { types } = this.#options;
    while (!this.#isOver()) {
      const askedAtMs = performance.now();
      const page = await this.#next(start);
      for (const event of page?.data ?? []) {
        if (this.#isOver()) return;
        if (types.length === 0 || types.includes(event.type)) yield event;
      }
      if (page !== null) this.#after = page.nextCursor ?? this.#after;
      // An instance that drains answers at once. The next request must not follow at once, too.
      if (page?.data.length === 0 && performance.now() - askedAtMs < PAUSE_MS) await this.#pause(PAUSE_MS);
    }
  }

  /** The next page, after as many attempts as it takes; null when the signal is aborted. */
  async #next(start: Start): Promise<EventPage | null> {
    const { onInterrupted, onResumed } = this.#options;
    for (let failures = 0; ; failures += 1) {
      try {
        const page = await this.#get(this.#path(this.#position(start)), EVENT_WAIT_SECONDS_MAX * 1000, isPage);
        if (failures > 0) onResumed();
        return page;
      } catch (error) {
        if (this.#isOver()) return null;
        if (!(error instanceof Interrupted)) throw error;
        if (failures === 0) onInterrupted(error.message);
        const pauseMs = error.retryAfterMs ?? Math.min(PAUSE_MS * 2 ** failures, PAUSE_MS_MAX);
        await this.#pause(pauseMs);
        if (this.#isOver()) return null;
      }
    }
  }

  /** A method, because the compiler expects a field to stay as it was before an `await`. */
  #isOver(): boolean {
    return this.#options.signal.aborted;
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#options.signal }).catch(() => undefined);
  }

  #position(start: Start): Record<string, string> {
    const wait = String(EVENT_WAIT_SECONDS_MAX);
    if (this.#after !== null) return { wait, after: this.#after };
    return start === 'latest' ? { wait } : { wait, since: start.toISOString() };
  }

  #path(position: Record<string, string>): string {
    const { types } = this.#options;
    const query = new URLSearchParams({ limit: String(PAGE_LIMIT), ...position });
    // The API filters by one type only. A cursor belongs to its filter, so every request has it.
    const [type] = types;
    if (types.length === 1 && type !== undefined) query.set('type', type);
    return `/v1/events?${query.toString()}`;
  }

  async #get<T>(path: string, waitMs: number, isValid: (answer: unknown) => answer is T): Promise<T> {
    const { url, key, signal } = this.#options;
    let response: Response;
    let body: unknown;
    try {
      response = await fetch(`${url}${path}`, {
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.any([signal, AbortSignal.timeout(waitMs + ANSWER_LATER_MS)]),
      });
      body = await response.json();
    } catch (error) {
      throw new Interrupted(reasonOf(error));
    }
    if (!response.ok) throw failureOf(url, response, body);
    if (!isValid(body))
      throw new CommandError(`${url} answered ${response.status} without the data of a Callplane API.`);
    return body;
  }
}

/** The error for an answer that is not a success. */
function failureOf(url: string, { status, headers }: Response, body: unknown): Error {
  const { error } = Object(body) as { error?: { code?: unknown; message?: unknown } | null };
  const said = `${status} ${cut(error?.code ?? 'without an error code')}`;
  if (status === 401) return new UsageError(`${url} refuses the API key (${said}). Give a valid one with --key.`);
  if (status === 429 || status >= 500) {
    const seconds = Number(headers.get('retry-after') ?? Number.NaN);
    return new Interrupted(said, seconds > 0 ? Math.min(seconds, RETRY_AFTER_SECONDS_MAX) * 1000 : null);
  }
  return new CommandError(`${url} refuses the request: ${said}: ${cut(error?.message ?? 'is this a Callplane API?')}`);
}

function cut(said: unknown): string {
  return String(said).slice(0, 200);
}

function reasonOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown } }).cause?.code;
  if (typeof cause === 'string') return cause;
  if ((error as Error).name === 'TimeoutError') return 'no answer in time';
  return error instanceof SyntaxError ? 'the answer is not JSON' : 'the connection failed';
}
