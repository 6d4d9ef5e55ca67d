import type { Encryption } from '../encryption/encryption.js';
import type { EncryptionError } from '../encryption/options.js';
import { abortable, asCallplaneError, assertPermitted, CallplaneError, hasCode, invalidArgument } from '../errors.js';
import type { CallEvents } from '../events.js';
import type { AskMessage, AskRequest, ReplyMessage, ReplyRequest } from '../protocol.generated.js';
import type { Participant } from '../remote/participant.js';
import type { Presence } from '../remote/presence.js';
import type { Roster } from '../remote/roster.js';
import type { CloseInfo } from '../signaling/close-info.js';
import type { Session } from '../signaling/session.js';
import { backoffMs, pause, retry } from '../wait.js';

/** Who has sent a request. */
export interface RequestInfo {
  method: string;
  /** Participant id; `server` if your backend has sent the request over the REST API. */
  from: (string & NonNullable<unknown>) | 'server';
  isFromServer: boolean;
  /** Undefined if the sender is the server, or is not shown. */
  participant: Participant | undefined;
}

/** Returns the answer, a JSON value, or a promise of it. The message of an error that it throws reaches the sender. */
export type RequestHandler<Payload = unknown, Answer = unknown> = (
  payload: Payload,
  info: RequestInfo,
) => Answer | Promise<Answer>;

export interface RequestOptions {
  /** How long to wait for the answer, in milliseconds, at most 600000; default 15000. */
  timeoutMs?: number;
  /** Gives the request up. The handler may have run. */
  signal?: AbortSignal;
}

/** The parts of the call that requests use. */
export interface AsksCall {
  readonly session: Session;
  readonly roster: Roster;
  readonly presence: Presence;
  readonly encryption: Encryption | undefined;
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  readonly permissions: readonly string[];
}

interface Waiting {
  participantId: string;
  resolve: (payload: unknown) => void;
  reject: (error: CallplaneError) => void;
}

const TIMEOUT_MS = 15_000;
const TIMEOUT_MS_MAX = 600_000;
/** How often a reply is tried again, over about 20 s. */
const REPLY_TRIES = 8;
const ERROR_CHARS_MAX = 400;

/** Requests to other participants, and requests of others. On the wire they are called asks. */
export class Asks {
  /** By ask and participant. */
  readonly #waiting = new Map<string, Waiting>();
  /** A reply to an earlier page of the same participant must answer no ask of this one. */
  readonly #prefix: string;
  #count = 0;

  constructor(
    private readonly call: AsksCall,
    private readonly random: () => number,
    /** Not imported: a bundler makes a chunk of each module that chunks share. */
    private readonly assertMessage: (data: unknown) => void,
    private readonly emit: <Name extends keyof CallEvents>(name: Name, event: CallEvents[Name]) => void,
  ) {
    this.#prefix = Math.floor(random() * 2 ** 52).toString(36);
  }

  async request(
    participant: string | Pick<Participant, 'participantId'>,
    method: string,
    payload: unknown = null,
    { timeoutMs = TIMEOUT_MS, signal }: RequestOptions = {},
  ): Promise<unknown> {
    // Names with `$` are the SDK's own.
    if (!/^[\w.:/-]{1,64}$/.test(method)) throw invalidArgument('method', 'must have 1 to 64 of A-Z a-z 0-9 _ . : / -');
    const to = typeof participant === 'string' ? participant : participant.participantId;
    if (to === this.call.presence.own?.participantId) throw invalidArgument('participant', 'must be another one');
    assertPermitted(this.call.permissions, 'messages:send');
    this.call.session.assertOpen();
    return abortable(this.ask([to], method, payload, timeoutMs)[0] as Promise<unknown>, signal);
  }

  /**
   * @returns a promise for each recipient, of its answer
   * @throws CallplaneError `invalid_argument` or `payload_too_large`
   */
  ask(to: readonly string[], method: string, payload: unknown, timeoutMs: number): Promise<unknown>[] {
    if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX))
      throw invalidArgument('timeoutMs', `must be from 1 to ${TIMEOUT_MS_MAX}`);
    this.assertMessage(payload);
    this.#count += 1;
    const askId = `${this.#prefix}-${this.#count}`;
    const answers = to.map((participantId) => this.#answer(askId, participantId, method, timeoutMs));
    const message: AskRequest = { type: 'ask', to: [...to], askId, method, payload };
    this.#send(message, `/ask/${askId}/${method}`).catch((error: unknown) => {
      const failure = hasCode(error, 'not_found') ? gone(error) : asCallplaneError(error);
      for (const participantId of to) this.#waiting.get(keyOf(askId, participantId))?.reject(failure);
    });
    return answers;
  }

  receive(message: AskMessage | ReplyMessage): void {
    const task = message.type === 'ask' ? this.#asked(message) : this.#replied(message);
    task.catch((error: unknown) => this.emit('problem', asCallplaneError(error)));
  }

  /** Follows the events of the call. */
  onEvent(name: string, event: unknown): void {
    const waiting = [...this.#waiting.values()];
    if (name === 'participantLeft') {
      const { participantId } = event as Participant;
      for (const one of waiting) if (one.participantId === participantId) one.reject(gone());
    } else if (name === 'closed') {
      const { reason, message } = event as CloseInfo;
      for (const { reject } of waiting) reject(new CallplaneError(reason === 'left' ? 'closed' : reason, message));
    }
  }

  #answer(askId: string, participantId: string, method: string, timeoutMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const key = keyOf(askId, participantId);
      const settle = (end: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(key);
        end();
      };
      const waiting: Waiting = {
        participantId,
        resolve: (payload) => settle(() => resolve(payload)),
        reject: (error) => settle(() => reject(error)),
      };
      this.#waiting.set(key, waiting);
      const timer = setTimeout(() => {
        const isLost = this.call.roster.participants.get(participantId)?.connected === false;
        const why = isLost ? 'Its connection is lost at present.' : 'It is in the room.';
        waiting.reject(
          new CallplaneError(
            'recipient_timeout',
            `The participant did not answer "${method}" within ${timeoutMs} ms. ${why}`,
          ),
        );
      }, timeoutMs);
    });
  }

  async #replied({ from, askId, payload, failure }: ReplyMessage): Promise<void> {
    const waiting = this.#waiting.get(keyOf(askId, from));
    if (waiting === undefined) return;
    try {
      const opened = await this.#open(from, `/reply/${askId}`, payload);
      if (failure === undefined) waiting.resolve(opened);
      else waiting.reject(new CallplaneError(failure, textOf(failure, opened)));
    } catch (error) {
      waiting.reject(asCallplaneError(error));
    }
  }

  async #asked({ from, askId, method, payload }: AskMessage): Promise<void> {
    const { handlers, roster } = this.call;
    const isFromServer = from === 'server';
    const reply = (answer: unknown, failure?: ReplyRequest['failure']) => {
      const message: ReplyRequest = { type: 'reply', to: from, askId, payload: answer };
      return this.#send(failure === undefined ? message : { ...message, failure }, `/reply/${askId}`);
    };
    let opened = payload;
    try {
      if (!isFromServer) opened = await this.#open(from, `/ask/${askId}/${method}`, payload);
    } catch {
      return;
    }
    const handler = handlers.get(method);
    if (handler === undefined) return reply(null, 'no_handler');
    let answer: unknown;
    try {
      answer =
        (await handler(opened, { method, from, isFromServer, participant: roster.participants.get(from) })) ?? null;
    } catch (error) {
      return reply(String(error instanceof Error ? error.message : error).slice(0, ERROR_CHARS_MAX), 'handler_failed');
    }
    try {
      await reply(answer);
    } catch (error) {
      if (hasCode(error, 'payload_too_large')) await reply(null, 'response_too_large');
      else if (hasCode(error, 'invalid_argument')) await reply('The answer is no JSON value.', 'handler_failed');
      else if (!hasCode(error, 'not_found')) throw error;
    }
  }

  /** Rejects with `undecryptable`, which is reported already. */
  #open(from: string, purpose: string, data: unknown): Promise<unknown> {
    const { encryption } = this.call;
    if (encryption === undefined) return Promise.resolve(data);
    return new Promise((resolve, reject) => {
      const onOpened = (opened: unknown, reason?: EncryptionError['reason']) => {
        if (reason === undefined) {
          resolve(opened);
          return;
        }
        const participant = this.call.roster.participants.get(from);
        this.emit('encryptionError', { participantId: from, participant, reason });
        reject(new CallplaneError('undecryptable', `The answer cannot be decrypted: ${reason}.`));
      };
      encryption.open(from, data, onOpened, purpose);
    });
  }

  /** Sends a reply again after passing failures: the other side may wait for it longer than they last. */
  async #send(message: AskRequest | ReplyRequest, purpose: string): Promise<void> {
    const { encryption, session } = this.call;
    this.assertMessage(message.payload);
    let { payload } = message;
    if (encryption !== undefined && message.to !== 'server') {
      payload = await encryption.seal(payload, [message.to].flat(), purpose);
      this.assertMessage(payload);
    }
    await retry(async (count) => {
      try {
        await session.request({ ...message, payload });
      } catch (error) {
        const mayPass = message.type === 'reply' && hasCode(error, 'rate_limited', 'connection_lost', 'unavailable');
        if (!mayPass || count >= REPLY_TRIES) throw error;
        return () => pause(backoffMs(count, this.random())).over;
      }
      return undefined;
    });
  }
}

function keyOf(askId: string, participantId: string): string {
  return `${askId} ${participantId}`;
}

function gone(cause?: unknown): CallplaneError {
  return new CallplaneError('recipient_gone', 'The participant is not in the room, or has left it.', { cause });
}

function textOf(failure: NonNullable<ReplyMessage['failure']>, payload: unknown): string {
  if (failure === 'no_handler') return 'The participant has no handler for this method.';
  if (failure === 'response_too_large') return 'The answer of the participant is too large.';
  return typeof payload === 'string' ? payload : 'The handler of the participant has failed.';
}
