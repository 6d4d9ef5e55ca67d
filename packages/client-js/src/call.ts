import type { RequestHandler, RequestOptions } from './data/asks.js';
import type { StreamHandler } from './data/incoming.js';
import type { StreamOptions, StreamResult, StreamSource } from './data/stream-options.js';
import { Emitter } from './emitter.js';
import { Engine } from './engine.js';
import { abortable, abortedError, assertNotAborted, assertPermitted, CallplaneError } from './errors.js';
import type { CallEvents } from './events.js';
import { assertMessage, assertMetadata, assertPage, assertShown, assertTracks } from './limits.js';
import type { DeviceOptions, ScreenOptions } from './local/create-tracks.js';
import type { DeviceKind } from './local/devices.js';
import type { PublishResult, TrackOptions } from './local/local-media.js';
import type { LocalTrack } from './local/local-track.js';
import type { ParticipantMetadata, Room } from './metadata.js';
import { settingsOf, type ConnectOptions, type Settings } from './options.js';
import { platformOf, type Platform } from './platform.js';
import type { PeerTarget, RemoteParticipant, TrackReference } from './protocol.generated.js';
import type { Participant } from './remote/participant.js';
import type { RosterPage } from './remote/presence.js';
import { INITIAL_SNAPSHOT, type CallSnapshot } from './snapshot.js';
import type { Subscription } from './subscriptions.js';

/** Each field of the present snapshot is a property of the call, too. A joined call has these. */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- the loop below defines every property
export interface Call extends CallSnapshot {
  readonly sessionId: string;
  readonly room: Room;
  readonly participant: RemoteParticipant;
}

/** A joined call, created by `connect()`. */
export class Call extends Emitter<CallEvents> {
  readonly #engine: Engine;

  /** Use `connect()`. */
  constructor(platform: Platform, settings: Settings) {
    super();
    this.#engine = new Engine(platform, settings, (name, event) => this.emit(name, event));
  }

  /** @returns the same object until something changes. Needs no `this`. */
  readonly getSnapshot = (): CallSnapshot => this.#engine.snapshots.get();

  /**
   * Calls the listener after changes: once for all changes of the same microtask. Needs no `this`.
   * @returns a function that ends the subscription
   */
  readonly subscribe = (listener: () => void): (() => void) => this.#engine.snapshots.subscribe(listener);

  /**
   * Opens and publishes the microphone and the camera. If one of the two cannot be opened, the other one is published.
   * Rejects if none can be opened.
   */
  publish(devices: DeviceOptions): Promise<PublishResult>;
  /** Publishes tracks of `createLocalTracks()`. */
  publish(tracks: readonly LocalTrack[], options?: { signal?: AbortSignal }): Promise<PublishResult>;
  /** Publishes a track that you made. */
  publish(track: MediaStreamTrack, options: TrackOptions): Promise<PublishResult>;
  async publish(
    what: DeviceOptions | readonly LocalTrack[] | MediaStreamTrack,
    options?: Partial<TrackOptions>,
  ): Promise<PublishResult> {
    const localMedia = await this.#engine.localMedia();
    if (Array.isArray(what)) return localMedia.publishTracks(what as LocalTrack[], options ?? {});
    if (options?.source === undefined) return localMedia.publishDevices(what as DeviceOptions);
    return localMedia.publishTrack(what as MediaStreamTrack, options as TrackOptions);
  }

  /** Asks the user for a screen, window or tab and publishes it, with its sound if the browser provides it. */
  async shareScreen(options: ScreenOptions = {}): Promise<LocalTrack[]> {
    return (await this.#engine.localMedia()).publishScreen(options);
  }

  /** Ends the share of a screen, with its sound. Cancels one that the user still chooses. */
  stopScreenShare(): Promise<void> {
    return this.#engine.changePublished((media) => media.unpublishScreen());
  }

  /**
   * Unpublishes one track, or all, and closes the devices that the SDK opened. A publication in progress is cancelled: its
   * promise rejects with `aborted`.
   */
  unpublish(trackId?: string): Promise<void> {
    return this.#engine.changePublished((media) => media.unpublish(trackId));
  }

  /**
   * Uses another microphone, camera or loudspeaker, also for what is published or played later. Published tracks go on
   * under their ids, and the others notice nothing but the new picture or sound.
   */
  async switchDevice(kind: DeviceKind, deviceId: string): Promise<void> {
    if (kind === 'audiooutput') return this.#engine.setOutput(deviceId);
    return this.#engine.changeMedia((media) => media.switchDevice(kind, deviceId));
  }

  /** Sends other media on a published track. The SDK closes the device that it opened for it; yours stay open. */
  replaceTrack(trackId: string, track: MediaStreamTrack): Promise<void> {
    return this.#engine.changeMedia((media) => media.replaceTrack(trackId, track));
  }

  /**
   * Sends silence or black, and notifies the others. Closes a camera, unless it was published without `releaseOnMute`. A
   * track that is still being published starts muted.
   */
  mute(trackId: string): Promise<void> {
    return this.#engine.changeMedia((media) => media.setMuted(trackId, true));
  }

  unmute(trackId: string): Promise<void> {
    return this.#engine.changeMedia((media) => media.setMuted(trackId, false));
  }

  /** Plays what the browser has blocked. Call it in a click handler, after `audioPlaybackBlocked`. */
  startAudio(): Promise<void> {
    return this.#engine.playback.startAudio();
  }

  /** Receives tracks, or other layers of them; for calls without `autoSubscribe`. */
  async subscribeTracks(...tracks: Subscription[]): Promise<void> {
    assertTracks(tracks.length);
    return this.#engine.subscriptions.subscribe(tracks);
  }

  async unsubscribeTracks(...tracks: TrackReference[]): Promise<void> {
    assertTracks(tracks.length);
    return this.#engine.subscriptions.unsubscribe(tracks);
  }

  /** Sends JSON to all other participants, or to those in `to`. Needs `messages:send`. */
  async send(data: unknown, { to, signal }: { to?: string[]; signal?: AbortSignal } = {}): Promise<void> {
    assertMessage(data, to);
    assertPermitted(this.permissions, 'messages:send');
    const { session, encryption } = this.#engine;
    const sent = encryption === undefined ? data : await encryption.seal(data, to);
    assertMessage(sent, to);
    await abortable(session.request({ type: 'message', data: sent, ...(to === undefined ? {} : { to }) }), signal);
  }

  /**
   * Handles the requests of a method (1 to 64 of `A-Z a-z 0-9 _ . : / -`), in place of an earlier handler. Needs `messages:send` to answer participants.
   * @returns a function that removes the handler
   */
  handle<Payload = unknown, Answer = unknown>(method: string, handler: RequestHandler<Payload, Answer>): () => void {
    return register(this.#engine.handlers, method, handler as RequestHandler);
  }

  /**
   * Asks another participant, whose page handles the method. Needs `messages:send`.
   * @throws CallplaneError of the other side: `no_handler`, `handler_failed` (with the message of its error),
   *   `response_too_large`, `recipient_gone` or `recipient_timeout`; of this side: `payload_too_large`, `rate_limited` and others
   */
  async request<Answer = unknown>(
    participant: string | Pick<Participant, 'participantId'>,
    method: string,
    payload?: unknown,
    options?: RequestOptions,
  ): Promise<Answer> {
    return (await this.#engine.asks()).request(participant, method, payload, options) as Promise<Answer>;
  }

  /**
   * Sends bytes, at most 16 MiB, to all other participants or to those in `to`, whose pages handle the method with
   * `handleStream()`. Needs `messages:send`.
   * @returns who has received all of it, and why others have not
   * @throws CallplaneError if nobody receives it: `no_handler`, `handler_failed`, `stream_cancelled`, `stream_unread`,
   *   `recipient_gone`, `recipient_timeout`, `aborted`, `permission_denied`, `payload_too_large` and others
   */
  async sendStream(method: string, source: StreamSource, options?: StreamOptions): Promise<StreamResult> {
    return (await this.#engine.streams()).send(method, source, options);
  }

  /**
   * Handles the streams of a method, in place of an earlier handler.
   * @returns a function that removes the handler
   */
  handleStream(method: string, handler: StreamHandler): () => void {
    return register(this.#engine.streamHandlers, method, handler);
  }

  /** Replaces your own metadata. Needs `metadata:update`. */
  async updateMetadata(metadata: ParticipantMetadata): Promise<void> {
    assertMetadata(metadata);
    assertPermitted(this.permissions, 'metadata:update');
    await this.#engine.session.request({ type: 'metadata', metadata });
    this.#engine.presence.ownMetadata(metadata);
    this.#engine.snapshots.changed();
  }

  /** Reads a page of the participants who are not viewers. `limit` is at most 100. */
  async listParticipants(page: { cursor?: string; limit?: number; signal?: AbortSignal } = {}): Promise<RosterPage> {
    assertPage(page);
    return abortable(this.#engine.presence.list(page), page.signal);
  }

  /**
   * In a paged room: chooses whose changes are reported, in place of the previous choice: at most 200 participants, and
   * the first 100 who publish unless `publishers` is false. `participants` then has those.
   */
  async show(participantIds: readonly string[], { publishers = true }: { publishers?: boolean } = {}): Promise<void> {
    assertShown(new Set(participantIds).size);
    return this.#engine.presence.show(participantIds, publishers);
  }

  /** WebRTC statistics of the sending and the receiving connection. */
  async getStats(): Promise<Record<PeerTarget, RTCStatsReport | undefined>> {
    const { publisher, subscriber } = this.#engine.connections;
    return {
      publisher: await publisher?.getStats(),
      subscriber: await subscriber?.getStats(),
    };
  }

  /** Leaves the call; the others are notified at once. */
  leave(): Promise<void> {
    return this.#engine.session.leave();
  }

  /** For `connect()`. */
  join(): Promise<void> {
    return this.#engine.join();
  }
}

function register<T>(handlers: Map<string, T>, method: string, handler: T): () => void {
  handlers.set(method, handler);
  return () => {
    if (handlers.get(method) === handler) handlers.delete(method);
  };
}

for (const name of Object.keys(INITIAL_SNAPSHOT) as (keyof CallSnapshot)[]) {
  Object.defineProperty(Call.prototype, name, {
    get(this: Call) {
      return this.getSnapshot()[name];
    },
  });
}

/**
 * Joins a call. Resolves once the participant is in the room, or in its lobby (`state` is `waiting`; `admitted` follows).
 * @throws CallplaneError whose code is the gateway's reason (`invalid_token`, `capacity`, …), `unreachable` or `aborted`.
 */
export async function connect(options: ConnectOptions): Promise<Call> {
  const { signal } = options;
  const platform = platformOf(options.platform);
  const settings = settingsOf(options);
  assertNotAborted(signal);
  const call = new Call(platform, settings);
  const giveUp = () => void call.leave();
  signal?.addEventListener('abort', giveUp);
  try {
    await call.join();
    assertNotAborted(signal);
  } catch (error) {
    void call.leave();
    if (signal?.aborted === true) throw abortedError(signal);
    if (error instanceof CallplaneError) throw error;
    throw new CallplaneError('invalid_argument', `Cannot connect to ${settings.url}.`, { cause: error });
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
  return call;
}
