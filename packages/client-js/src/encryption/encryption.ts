import { CallplaneError, invalidArgument } from '../errors.js';
import { openWorker } from '../open-worker.js';
import type { TrackKind, TrackReference, TrackSource } from '../protocol.generated.js';
import type { Participant } from '../remote/participant.js';
import { Serial } from '../wait.js';
import { KEY_IDS, type Refusal } from './frame-keys.js';
import type { CarriedTrack } from './frames.js';
import type { TransformOptions, WorkerKey, WorkerMessage, WorkerRequest } from './messages.js';
import type { CallEncryption, EncryptionError, EncryptionKey, EncryptionOptions } from './options.js';
import { bytesOf, type Bytes } from './sframe.js';

const KEY_BYTES_MIN = 16;
/** How long the others have to learn of a new key before this participant sends with it. */
const ROTATION_MS = 1_000;
const PROVIDER_PAUSE_MS = 1_000;

/** A track, and the receiver that plays it. */
export interface Received extends TrackReference {
  receiver: RTCRtpReceiver;
}

/** The key of a sender is bound to all of it. */
type Identity = Pick<Participant, 'participantId' | 'sessionId' | 'name'>;

export interface EncryptionContext {
  own: () => Identity | undefined;
  participants: () => ReadonlyMap<string, Participant>;
  onKey: () => void;
  onTrack: (track: TrackReference, error: EncryptionError['reason'] | undefined) => void;
  refreshVideo: () => void;
}

/** The page's side of the encryption. The worker has the keys, and sees every frame and every message. */
export class Encryption {
  /** Another object after each change of the key. */
  state: CallEncryption;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  readonly #ids = new WeakMap<RTCRtpSender | RTCRtpReceiver, number>();
  #received: Received[] = [];
  /** The tracks that the worker knows, as JSON, by the id of the transform. */
  readonly #carried = new Map<number, string>();
  readonly #tracks = new Map<number, { track: TrackReference; kind: TrackKind }>();
  readonly #sealing = new Serial();
  readonly #opening = new Serial();
  #own = '';
  #failure: CallplaneError | undefined;
  #requests = 0;
  #transforms = 0;
  #providing = false;

  private constructor(
    private readonly options: EncryptionOptions,
    private readonly context: EncryptionContext,
  ) {
    const rotate: CallEncryption['rotate'] = (key, more) => this.#rotate(key, more);
    this.state = { keyId: 0, fingerprint: '', rotate, ratchet: () => this.#ratchet() };
    const worker = (this.#worker = (options.worker ?? openWorker)());
    worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => this.#receive(data);
    worker.onerror = () => this.#fail(new CallplaneError('unsupported', 'The worker that encrypts cannot be loaded.'));
  }

  /**
   * Opens the worker with the first key.
   * @throws CallplaneError `unsupported`, `invalid_argument`, or the error of the key provider
   */
  static async open(options: EncryptionOptions, context: EncryptionContext): Promise<Encryption> {
    if (typeof RTCRtpScriptTransform === 'undefined')
      throw new CallplaneError('unsupported', 'This browser cannot encrypt media: it has no RTCRtpScriptTransform.');
    const { keyProvider, cipher = 'AES-GCM-256' } = options;
    const { key, keyId = 0 } = keyProvider === undefined ? options : await keyProvider(undefined);
    if (key === undefined) throw invalidArgument('encryption', 'must have a key or a keyProvider');
    const raw = rawKey(key);
    const encryption = new Encryption(options, context);
    try {
      await encryption.#ask({ type: 'start', cipher });
      await encryption.#ask({ type: 'key', keyId: checkedId(keyId), raw, use: true });
    } catch (error) {
      encryption.close();
      throw error;
    }
    return encryption;
  }

  /** Encrypts everything that the sender sends, as this track. */
  send(sender: RTCRtpSender, track: { kind: TrackKind; source: TrackSource; trackId: string }): void {
    const id = this.#idOf(sender);
    this.#carry(id, carriedOf(track, ''));
    sender.transform ??= this.#transform({ id, side: 'send' });
  }

  /** Lets the receiver play nothing that is not decrypted. */
  protect(receiver: RTCRtpReceiver): void {
    const id = this.#idOf(receiver);
    receiver.transform ??= this.#transform({ id, side: 'receive' });
  }

  /** The tracks of all receivers from now on. */
  receive(received: Received[]): void {
    this.#received = received;
    this.align();
  }

  /** Tells the worker of participants and tracks that have changed. */
  align(): void {
    const own = senderOf(this.context.own());
    if (own !== this.#own) this.#ask({ type: 'sender', sender: own }).catch(() => undefined);
    this.#own = own;
    const before = new Set(this.#tracks.keys());
    for (const { receiver, participantId, trackId } of this.#received) {
      const id = this.#idOf(receiver);
      const participant = this.context.participants().get(participantId);
      const shown = participant?.tracks.get(trackId);
      if (shown?.kind !== receiver.track.kind) continue;
      before.delete(id);
      const track = { participantId, trackId };
      this.#tracks.set(id, { track, kind: shown.kind });
      // Frames decide anew whether the track can be decrypted.
      if (this.#carry(id, carriedOf(shown, senderOf(participant)))) this.context.onTrack(track, undefined);
    }
    for (const id of before) {
      this.#tracks.delete(id);
      this.#carry(id, undefined);
    }
  }

  /**
   * @param to nobody else opens it; undefined: everybody may
   * @param purpose sealed for one purpose, data cannot be opened for another one
   */
  seal(data: unknown, to?: readonly string[], purpose = ''): Promise<Sealed> {
    const request = { metadata: bytesOf(`message${purpose}`), plain: bytesOf(JSON.stringify({ data, to })) };
    // One at a time, so that messages keep their order.
    return this.#sealing.run(async () => {
      const { sessionId = '', name = '' } = this.context.own() ?? {};
      return { encrypted: toBase64(await this.#ask<Bytes>({ type: 'seal', ...request })), sessionId, name };
    });
  }

  /** Seals bytes of a stream, whose offer names its recipients. */
  sealBytes(plain: Bytes, purpose: string): Promise<Bytes> {
    return this.#sealing.run(() => this.#ask<Bytes>({ type: 'seal', metadata: bytesOf(`message${purpose}`), plain }));
  }

  /**
   * @param offer the sealed offer of the stream
   * @throws an error whose `reason` says why the bytes cannot be opened
   */
  openBytes(from: string, sealed: Bytes, purpose: string, offer: unknown): Promise<Bytes> {
    const sender = this.#senderOf(from, offer);
    return this.#ask<Bytes>({ type: 'open', sender, metadata: bytesOf(`message${purpose}`), sealed });
  }

  /** Hands the data of a message over, in the order of the calls, or undefined with the reason why it cannot. */
  open(
    from: string,
    message: unknown,
    onOpened: (data: unknown, refused?: EncryptionError['reason']) => void,
    purpose = '',
  ): void {
    const { encrypted } = (message ?? {}) as Partial<Sealed>;
    const request = {
      sender: this.#senderOf(from, message),
      metadata: bytesOf(`message${purpose}`),
      sealed: fromBase64(typeof encrypted === 'string' ? encrypted : ''),
    };
    void this.#opening.run(async () => {
      try {
        const plain = await this.#ask<Bytes>({ type: 'open', ...request });
        const { data, to } = JSON.parse(new TextDecoder().decode(plain)) as { data: unknown; to?: string[] };
        if (to?.includes(this.context.own()?.participantId ?? '') === false) onOpened(undefined, 'wrong_recipient');
        else onOpened(data);
      } catch (error) {
        if (error instanceof RefusedByWorker) onOpened(undefined, error.reason);
      }
    });
  }

  #senderOf(from: string, message: unknown): string {
    const { sessionId, name } = (message ?? {}) as Partial<Sealed>;
    // In a large room, not everybody is shown. A wrong session or name has a wrong key.
    const identity = { participantId: from, sessionId: String(sessionId), name: String(name) };
    return senderOf(this.context.participants().get(from) ?? identity);
  }

  close(): void {
    this.#worker.terminate();
    this.#fail(new CallplaneError('closed', 'The call is over.'));
  }

  async #rotate(key: EncryptionKey, { keyId, delayMs = ROTATION_MS }: { keyId?: number; delayMs?: number } = {}) {
    const id = checkedId(keyId ?? (this.state.keyId + 1) % KEY_IDS);
    await this.#ask({ type: 'key', keyId: id, raw: rawKey(key), use: delayMs === 0 });
    if (delayMs === 0) return;
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    await this.#ask({ type: 'use', keyId: id });
  }

  async #ratchet(): Promise<{ key: string; keyId: number }> {
    const { raw, keyId } = await this.#ask<WorkerKey>({ type: 'ratchet' });
    return { key: toBase64(raw), keyId };
  }

  #ask<T extends Bytes | WorkerKey | undefined>(request: WorkerRequest): Promise<T> {
    this.#requests += 1;
    const number = this.#requests;
    return new Promise<T>((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure);
        return;
      }
      this.#waiting.set(number, { resolve, reject });
      this.#worker.postMessage({ number, ...request });
    });
  }

  #receive(message: WorkerMessage): void {
    switch (message.type) {
      case 'answer': {
        const waiting = this.#waiting.get(message.number);
        this.#waiting.delete(message.number);
        if (message.refused === undefined) waiting?.resolve(message.value as never);
        else waiting?.reject(new RefusedByWorker(message.refused));
        break;
      }
      case 'key':
        this.state = { ...this.state, keyId: message.keyId, fingerprint: message.fingerprint };
        this.context.onKey();
        break;
      case 'state': {
        const found = this.#tracks.get(message.id);
        if (found === undefined) return;
        this.context.onTrack(found.track, message.reason);
        // The browser would ask for a picture that stands alone only seconds later.
        if (message.reason === undefined && found.kind === 'video') this.context.refreshVideo();
        break;
      }
      case 'unknownKey':
        void this.#provide(message.keyId);
    }
  }

  async #provide(keyId: number): Promise<void> {
    if (this.options.keyProvider === undefined || this.#providing) return;
    this.#providing = true;
    try {
      const provided = await this.options.keyProvider(keyId);
      await this.#ask({ type: 'key', keyId: checkedId(provided.keyId ?? 0), raw: rawKey(provided.key), use: false });
    } catch {
      // The frames stay undecryptable, which is reported.
    }
    setTimeout(() => (this.#providing = false), PROVIDER_PAUSE_MS);
  }

  /** @returns whether that is new */
  #carry(id: number, carried: CarriedTrack | undefined): boolean {
    const text = JSON.stringify(carried ?? null);
    if (this.#carried.get(id) === text) return false;
    this.#carried.set(id, text);
    this.#ask({ type: 'carry', id, carried }).catch(() => undefined);
    return true;
  }

  #idOf(end: RTCRtpSender | RTCRtpReceiver): number {
    const known = this.#ids.get(end);
    if (known !== undefined) return known;
    this.#transforms += 1;
    this.#ids.set(end, this.#transforms);
    return this.#transforms;
  }

  #transform(options: TransformOptions): RTCRtpScriptTransform {
    return new RTCRtpScriptTransform(this.#worker, options);
  }

  #fail(error: CallplaneError): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** A message as the server sees it. */
interface Sealed {
  encrypted: string;
  sessionId: string;
  name: string;
}

/** Under another name, session or participant id, nobody can be shown: the key differs. */
function senderOf(identity: Identity | undefined): string {
  return JSON.stringify([identity?.participantId, identity?.sessionId, identity?.name]);
}

function carriedOf(track: { kind: TrackKind; source: TrackSource; trackId: string }, sender: string): CarriedTrack {
  const { kind, source, trackId } = track;
  return { kind, label: JSON.stringify([kind, source, trackId]), sender };
}

class RefusedByWorker extends CallplaneError {
  constructor(readonly reason: Refusal) {
    super('internal', `The worker that encrypts has refused: ${reason}.`);
  }
}

function checkedId(keyId: number): number {
  if (Number.isInteger(keyId) && keyId >= 0 && keyId < KEY_IDS) return keyId;
  throw invalidArgument('keyId', `must be an integer from 0 to ${KEY_IDS - 1}`);
}

function rawKey(key: EncryptionKey): Bytes {
  const raw = typeof key === 'string' ? fromBase64(key) : new Uint8Array(key);
  if (raw.length >= KEY_BYTES_MIN) return raw;
  throw invalidArgument('key', `must have at least ${KEY_BYTES_MIN} random bytes, as base64url or as a Uint8Array`);
}

function toBase64(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @returns no bytes if the text is not base64url */
function fromBase64(text: string): Bytes {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
