import type { Encryption } from '../encryption/encryption.js';
import type { EncryptionError } from '../encryption/options.js';
import { assertPermitted, asCallplaneError, CallplaneError, hasCode, invalidArgument } from '../errors.js';
import type { CallEvents } from '../events.js';
import type { CreditMessage, PartMessage, StreamMessage } from '../protocol.generated.js';
import type { Participant } from '../remote/participant.js';
import type { Presence } from '../remote/presence.js';
import type { Roster } from '../remote/roster.js';
import type { CloseInfo } from '../signaling/close-info.js';
import type { Session } from '../signaling/session.js';
import { backoffMs, pause, retry } from '../wait.js';
import { Incoming, type StreamHandler } from './incoming.js';
import { fromBase64, openPurpose, partPurpose, readInfo, toBase64 } from './offers-and-parts.js';
import { Outgoing } from './outgoing.js';
import {
  recipientGone,
  STREAM_BYTES_MAX,
  tooLarge,
  type StreamOptions,
  type StreamResult,
  type StreamSource,
} from './stream-options.js';
import { Turns } from './turns.js';

/** The parts of the call that streams use. */
export interface StreamsCall {
  readonly session: Session;
  readonly roster: Roster;
  readonly presence: Presence;
  readonly encryption: Encryption | undefined;
  readonly streamHandlers: ReadonlyMap<string, StreamHandler>;
  readonly permissions: readonly string[];
}

const RECIPIENTS_MAX = 100;
/** Streams that this participant sends at a time, and that wait for their turn. */
const SENT_MAX = 4;
const WAITING_MAX = 100;
/** Parts of all streams that the gateway has not answered. */
const PARTS_AT_ONCE = 8;
/** Streams that it receives of one sender, and of all. */
const RECEIVED_OF_ONE_MAX = 8;
const RECEIVED_MAX = 32;
/** Streams whose end it can repeat. */
const FINISHED_MAX = 64;
const UNKNOWN_EVERY_MS = 1_000;
const OPEN_TRIES = 8;

/** Streams to and from other participants (docs/decisions/0022-streams.md). */
export class Streams {
  readonly #outgoing = new Map<string, Outgoing>();
  /** By sender and stream. */
  readonly #incoming = new Map<string, Incoming>();
  readonly #finished = new Map<string, object>();
  readonly #turns = new Turns(SENT_MAX, WAITING_MAX);
  readonly #prefix: string;
  #count = 0;
  #unknownAtMs = -Infinity;

  constructor(
    private readonly call: StreamsCall,
    private readonly platform: { random: () => number; now: () => number },
    private readonly assertMessage: (data: unknown, to?: readonly string[]) => void,
    private readonly emit: <Name extends keyof CallEvents>(name: Name, event: CallEvents[Name]) => void,
  ) {
    this.#prefix = Math.floor(platform.random() * 2 ** 52).toString(36);
  }

  async send(method: string, source: StreamSource, options: StreamOptions = {}): Promise<StreamResult> {
    const { presence, roster, permissions, session } = this.call;
    if (!/^[\w.:/-]{1,64}$/.test(method)) throw invalidArgument('method', 'must have 1 to 64 of A-Z a-z 0-9 _ . : / -');
    const to = options.to ?? [...roster.participants.keys()];
    if (options.to !== undefined || to.length > RECIPIENTS_MAX) this.assertMessage(null, to);
    if (to.includes(presence.own?.participantId ?? ''))
      throw invalidArgument('to', 'must have other participants only');
    const isStream = source instanceof ReadableStream;
    const blob = isStream || source instanceof Blob ? source : new Blob([source]);
    const { name = (blob as Partial<File>).name, attributes } = options;
    const contentType = options.contentType ?? ((blob as Partial<Blob>).type || undefined);
    const size = blob instanceof Blob ? blob.size : options.size;
    if (size !== undefined && !(size >= 0 && size <= STREAM_BYTES_MAX)) throw tooLarge(size);
    const info = { name, contentType, size, attributes };
    this.assertMessage(info);
    assertPermitted(permissions, 'messages:send');
    session.assertOpen();
    await this.#turns.take(options.signal);
    this.#count += 1;
    const streamId = `${this.#prefix}-${this.#count}`;
    const chunks = (blob instanceof Blob ? blob.stream() : blob) as ReadableStream<Uint8Array | string>;
    try {
      session.assertOpen();
      const sized = size === undefined ? options : { ...options, size };
      const outgoing = new Outgoing(to, chunks.getReader(), sized, this.#contextOf(streamId, method, info));
      this.#outgoing.set(streamId, outgoing);
      return await outgoing.run();
    } finally {
      this.#outgoing.delete(streamId);
      this.#turns.release();
    }
  }

  receive(message: StreamMessage | PartMessage | CreditMessage): void {
    if (message.type === 'credit') this.#outgoing.get(message.streamId)?.receive(message);
    else if (message.type === 'part') this.#part(message);
    else void this.#offered(message);
  }

  /** Follows the events of the call. */
  onEvent(name: string, event: unknown): void {
    if (name === 'participantLeft') {
      const { participantId } = event as Participant;
      for (const one of this.#outgoing.values()) one.lose(participantId, recipientGone(), true);
      for (const one of this.#incoming.values())
        if (one.stream.from === participantId)
          one.end(new CallplaneError('sender_gone', 'The sender of the stream has left the room.'));
    } else if (name === 'closed') {
      const { reason, message } = event as CloseInfo;
      const error = new CallplaneError(reason === 'left' ? 'closed' : reason, message);
      for (const one of this.#outgoing.values()) one.fail(error);
      for (const one of this.#incoming.values()) one.end(error);
      this.#turns.giveAll();
    }
  }

  #contextOf(streamId: string, method: string, info: object): ConstructorParameters<typeof Outgoing>[3] {
    const { session } = this.call;
    return {
      ...this.platform,
      partsAtOnce: () => Math.max(1, Math.floor(PARTS_AT_ONCE / this.#outgoing.size)),
      open: async (to) => {
        const { encryption } = this.call;
        const payload =
          encryption === undefined ? info : await encryption.seal(info, to, openPurpose(streamId, method));
        this.assertMessage(payload);
        await retry(async (count) => {
          try {
            await session.request({ type: 'stream', to, streamId, method, payload });
          } catch (error) {
            if (!hasCode(error, 'rate_limited', 'unavailable', 'connection_lost') || count >= OPEN_TRIES) throw error;
            return () => pause(backoffMs(count, this.platform.random())).over;
          }
          return undefined;
        });
      },
      part: async (part, bytes) => {
        const { encryption } = this.call;
        let data = bytes;
        if (encryption !== undefined && (bytes.length > 0 || part.last === true))
          data = await encryption.sealBytes(new Uint8Array(bytes), partPurpose({ streamId, ...part }));
        await session.request({ type: 'part', streamId, ...part, data: toBase64(data) });
      },
      abort: (to, offset) => session.post({ type: 'part', to, streamId, offset, data: '', aborted: true }),
    };
  }

  async #offered({ from, method, payload, streamId }: StreamMessage): Promise<void> {
    const { encryption, roster, streamHandlers } = this.call;
    const refuse = (failure: NonNullable<CreditMessage['failure']>) =>
      void this.#credit(from, streamId, { received: 0, limit: 0, failure }).catch(() => undefined);
    const handler = streamHandlers.get(method);
    const key = keyOf(from, streamId);
    // Its sender has missed the answer, and asks again.
    if (this.#incoming.has(key) || this.#finished.has(key)) {
      this.#part({ type: 'part', from, streamId, offset: 0, data: '' });
      return;
    }
    if (handler === undefined) {
      refuse('no_handler');
      return;
    }
    const ofSender = [...this.#incoming.values()].filter(({ stream }) => stream.from === from);
    if (ofSender.length >= RECEIVED_OF_ONE_MAX || this.#incoming.size >= RECEIVED_MAX) {
      refuse('too_many_streams');
      return;
    }
    let opened = payload;
    try {
      if (encryption !== undefined)
        opened = await this.#openOffer(encryption, from, payload, openPurpose(streamId, method));
    } catch {
      refuse('undecryptable');
      return;
    }
    const info = { method, from, participant: roster.participants.get(from), ...readInfo(opened) };
    if (this.#incoming.has(key)) return;
    const incoming = new Incoming(info, {
      now: this.platform.now,
      credit: (credit) => this.#credit(from, streamId, credit),
      open: async (data, part) => {
        const bytes = fromBase64(data);
        if (encryption === undefined) return bytes;
        try {
          return await encryption.openBytes(from, bytes, partPurpose(part), payload);
        } catch (error) {
          const { reason } = error as { reason?: EncryptionError['reason'] };
          if (reason !== undefined && reason !== 'replayed') this.#undecryptable(from, reason);
          throw error;
        }
      },
      onOver: (last) => {
        this.#incoming.delete(key);
        this.#finished.set(key, last);
        const [oldest] = this.#finished.keys();
        if (oldest !== undefined && this.#finished.size > FINISHED_MAX) this.#finished.delete(oldest);
      },
    });
    this.#incoming.set(key, incoming);
    void incoming.handle(handler, (error) => this.emit('problem', error));
  }

  #openOffer(encryption: Encryption, from: string, data: unknown, purpose: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      encryption.open(
        from,
        data,
        (opened, reason) => {
          if (reason === undefined) resolve(opened);
          else {
            this.#undecryptable(from, reason);
            reject(asCallplaneError(reason));
          }
        },
        purpose,
      );
    });
  }

  #undecryptable(participantId: string, reason: EncryptionError['reason']): void {
    this.emit('encryptionError', {
      participantId,
      participant: this.call.roster.participants.get(participantId),
      reason,
    });
  }

  #part(part: PartMessage): void {
    const { from, streamId, aborted } = part;
    const key = keyOf(from, streamId);
    const incoming = this.#incoming.get(key);
    if (incoming !== undefined) {
      incoming.receive(part);
      return;
    }
    if (aborted === true) return;
    const nowMs = this.platform.now();
    const known = this.#finished.get(key);
    // A sender that invents streams gets few answers.
    if (nowMs - this.#unknownAtMs < UNKNOWN_EVERY_MS) return;
    this.#unknownAtMs = nowMs;
    const last = known ?? { received: 0, limit: 0, failure: 'stream_unknown' };
    this.#credit(from, streamId, last as CreditMessage).catch(() => undefined);
  }

  async #credit(to: string, streamId: string, credit: Pick<CreditMessage, 'received' | 'limit' | 'done' | 'failure'>) {
    await this.call.session.request({ type: 'credit', to, streamId, ...credit });
  }
}

function keyOf(from: string, streamId: string): string {
  return `${from} ${streamId}`;
}
