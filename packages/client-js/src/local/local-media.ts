import { abortedError, assertNotAborted, assertPermitted, CallplaneError, invalidArgument } from '../errors.js';
import type { Publisher } from '../peers/publisher.js';
import type { Platform } from '../platform.js';
import { PROTOCOL_LIMITS, type Track, type TrackSource } from '../protocol.generated.js';
import { captureScreen, openDevices, type DeviceOptions, type ScreenOptions } from './create-tracks.js';
import { DeviceChanges } from './device-changes.js';
import type { DeviceKind } from './devices.js';
import { LocalTrack } from './local-track.js';
import { assertSending, fittingEncodings, resetEncodings, sendingOf, withDtx, type SendingOptions } from './sending.js';
import { SentLayers } from './sent-layers.js';

const SOURCES = { audioinput: 'microphone', videoinput: 'camera', audiooutput: undefined } as const;

export interface TrackOptions extends SendingOptions {
  source: TrackSource;
  /** Default: the source's name, with a number appended if it is taken. */
  trackId?: string;
  muted?: boolean;
  signal?: AbortSignal;
}

export interface LocalMediaContext {
  platform: Platform;
  publisher: Publisher;
  permissions: () => readonly string[];
  emit: (name: 'localTrackPublished' | 'localTrackUpdated' | 'localTrackUnpublished', track: LocalTrack) => void;
}

/** Opens, publishes, mutes and closes this participant's devices and screens. */
export class LocalMedia {
  readonly layers: SentLayers;
  readonly #context: LocalMediaContext;
  readonly #reserved = new Map<string, TrackSource>();
  readonly #devices: DeviceChanges;

  constructor(context: LocalMediaContext) {
    this.#context = context;
    this.layers = new SentLayers(context.publisher);
    this.#devices = new DeviceChanges({
      ...context,
      onUpdated: (track) => context.emit('localTrackUpdated', track),
      onMedia: (track) => this.#fit(track),
    });
  }

  async publishDevices(options: DeviceOptions): Promise<LocalTrack[]> {
    const { audio = false, video = false, signal } = options;
    assertSending(options);
    const microphone = audio === false ? [] : [{ source: 'microphone' as const }];
    const camera = video === false ? [] : [{ source: 'camera' as const }];
    // Checked before the browser asks the user for the device.
    return this.#reserve([...microphone, ...camera], async (trackIds) => {
      const tracks = await openDevices(this.#context.platform, options, this.#devices.chosen);
      return this.#publish(tracks, trackIds, { signal });
    });
  }

  async publishScreen({ signal, codec, encodings, ...options }: ScreenOptions): Promise<LocalTrack[]> {
    const sending = { codec, encodings };
    assertSending(sending);
    const isWithSound = options.audio !== false && this.#free >= 2;
    const sources = [{ source: 'screen' as const }, ...(isWithSound ? [{ source: 'screen_audio' as const }] : [])];
    return this.#reserve(sources, async (trackIds) => {
      const wanted = isWithSound ? options : { ...options, audio: false };
      const captured = await captureScreen(this.#context.platform, wanted, signal);
      const tracks = captured.map((one) => new LocalTrack({ ...one, trackId: one.source, isOwn: true, sending }));
      return this.#publish(tracks, trackIds, { signal });
    });
  }

  async publishTrack(mediaStreamTrack: MediaStreamTrack, options: TrackOptions): Promise<LocalTrack[]> {
    const { source, trackId, muted = false, signal, ...sending } = options;
    assertSending(sending);
    return this.#reserve([{ source, trackId }], (trackIds) => {
      const track = new LocalTrack({ trackId: source, source, mediaStreamTrack, muted, sending });
      return this.#publish([track], trackIds, { signal });
    });
  }

  publishTracks(tracks: readonly LocalTrack[], { signal }: { signal?: AbortSignal }): Promise<LocalTrack[]> {
    if (tracks.length === 0) return Promise.resolve([]);
    // After a failure they stay open: the user still sees the preview, and may try again.
    return this.#reserve(tracks, (trackIds) => this.#publish([...tracks], trackIds, { signal, isPreview: true }));
  }

  async unpublish(trackId: string | undefined): Promise<void> {
    await this.#unpublish((track) => trackId === undefined || track.trackId === trackId);
  }

  async unpublishScreen(): Promise<void> {
    await this.#unpublish(({ source }) => source.startsWith('screen'));
  }

  async replaceTrack(trackId: string, media: MediaStreamTrack): Promise<void> {
    const track = this.#track(trackId);
    if (media.kind !== track.kind) throw invalidArgument('track', `must be of the kind ${track.kind}`);
    await this.#devices.replace(track, media);
  }

  async switchDevice(kind: DeviceKind, deviceId: string): Promise<void> {
    const source = SOURCES[kind];
    if (source === undefined) throw invalidArgument('kind', 'must be audioinput, videoinput or audiooutput');
    await this.#devices.switchTo(source, deviceId);
  }

  setMuted(trackId: string, muted: boolean): Promise<void> {
    return this.#devices.setMuted(this.#track(trackId), muted);
  }

  /** Takes the gateway's view of this participant's tracks: the server may have muted some. */
  align(tracks: readonly Track[]): void {
    const { publisher } = this.#context;
    for (const { trackId, muted } of tracks) {
      const track = publisher.tracks.get(trackId);
      if (track !== undefined) this.#devices.align(track, muted);
    }
  }

  async permissionsChanged(): Promise<void> {
    const permissions = this.#context.permissions();
    await this.#unpublish(({ source }) => !permissions.includes(PERMISSION_OF[source])).catch(() => undefined);
  }

  forget(track: LocalTrack): void {
    track.stop();
    this.#context.emit('localTrackUnpublished', track);
  }

  close(): void {
    this.layers.close();
    for (const track of this.#context.publisher.tracks.values()) track.stop();
  }

  async #publish(
    tracks: LocalTrack[],
    trackIds: ReadonlyMap<TrackSource, string>,
    { isPreview = false, signal }: { isPreview?: boolean; signal?: AbortSignal | undefined },
  ): Promise<LocalTrack[]> {
    const { publisher, emit } = this.#context;
    for (const track of tracks) {
      this.#prepare(track);
      track.published(trackIds.get(track.source) ?? track.source, () => {
        if (publisher.tracks.get(track.trackId) === track) void this.unpublish(track.trackId).catch(() => undefined);
      });
    }
    try {
      assertNotAborted(signal);
      await publisher.publish(tracks);
      if (signal?.aborted === true) {
        await publisher.unpublish(tracks).catch(() => undefined);
        throw abortedError(signal);
      }
    } catch (error) {
      if (!isPreview) for (const track of tracks) track.stop();
      throw error;
    }
    this.layers.measure();
    for (const track of tracks) emit('localTrackPublished', track);
    return tracks;
  }

  async #unpublish(isMeant: (track: LocalTrack) => boolean): Promise<void> {
    const { publisher } = this.#context;
    const tracks = [...publisher.tracks.values()].filter(isMeant);
    for (const track of tracks) this.forget(track);
    if (tracks.length > 0) await publisher.unpublish(tracks);
  }

  /** Chooses how the track is encoded. Its size is known by now. */
  #prepare(track: LocalTrack): void {
    const { source, mediaStreamTrack, sending } = track;
    // Outside of browsers there is no such class.
    const { RTCRtpSender: Sender } = globalThis as Partial<typeof globalThis>;
    const capabilities = Sender?.getCapabilities('video')?.codecs;
    const { encodings, codecs, section } = sendingOf(source, mediaStreamTrack, sending, capabilities);
    track.encodings = encodings;
    track.section = section;
    track.onSection = async (transceiver, isReused) => {
      if (codecs !== undefined) transceiver.setCodecPreferences(codecs);
      if (isReused) await resetEncodings(transceiver.sender, encodings);
      this.layers.begin(track.trackId);
    };
    track.tuneAnswer = sending.dtx === true && source === 'microphone' ? withDtx : undefined;
  }

  /** Other media may have another size: its layers are chosen anew, in the section that is there. */
  #fit(track: LocalTrack): void {
    const { source, mediaStreamTrack, sending, trackId } = track;
    const present = this.#context.publisher.senderOf(trackId)?.getParameters().encodings ?? [];
    const encodings = fittingEncodings(source, mediaStreamTrack, sending, present);
    if (encodings !== undefined) this.layers.fit(track, encodings);
    // Another connection may have a section for the new size.
    this.#prepare(track);
  }

  get #free(): number {
    return PROTOCOL_LIMITS.tracksMax - this.#taken().size;
  }

  /**
   * Checks new tracks before their devices are opened, and reserves their ids while the task runs. It gets an id for each
   * source: the application's own choice, or a free one.
   * @throws CallplaneError `permission_denied`, `already_published` or `too_many_tracks`; the task does not run then.
   */
  async #reserve<T>(
    wanted: readonly { source: TrackSource; trackId?: string | undefined }[],
    task: (trackIds: ReadonlyMap<TrackSource, string>) => Promise<T>,
  ): Promise<T> {
    for (const { source } of wanted) assertPermitted(this.#context.permissions(), PERMISSION_OF[source]);
    if (wanted.length > this.#free)
      throw new CallplaneError(
        'too_many_tracks',
        `A participant publishes at most ${PROTOCOL_LIMITS.tracksMax} tracks. Unpublish one first.`,
      );
    const trackIds = new Map<TrackSource, string>();
    const taken = this.#taken();
    for (const { source, trackId } of wanted) {
      const id = trackId ?? freeTrackId(source, taken);
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(id))
        throw invalidArgument('trackId', 'must have 1 to 64 letters, digits, "-" or "_"');
      if (taken.has(id))
        throw new CallplaneError(
          'already_published',
          `The track "${id}" is already published. Use replaceTrack() or switchDevice(), or unpublish it first.`,
        );
      taken.set(id, source);
      trackIds.set(source, id);
    }
    for (const [source, id] of trackIds) this.#reserved.set(id, source);
    try {
      return await task(trackIds);
    } finally {
      for (const id of trackIds.values()) this.#reserved.delete(id);
    }
  }

  #taken(): Map<string, TrackSource> {
    const published = [...this.#context.publisher.tracks.values()].map(
      ({ trackId, source }) => [trackId, source] as const,
    );
    return new Map([...published, ...this.#reserved]);
  }

  #track(trackId: string): LocalTrack {
    const track = this.#context.publisher.tracks.get(trackId);
    if (track === undefined) throw new CallplaneError('not_found', `The track "${trackId}" is not published.`);
    return track;
  }
}

const PERMISSION_OF = {
  microphone: 'audio:publish',
  camera: 'video:publish',
  screen: 'screen:publish',
  screen_audio: 'screen:publish',
} as const satisfies Record<TrackSource, string>;

/** The name of the source; for further screens with a number appended. */
function freeTrackId(source: TrackSource, taken: ReadonlyMap<string, TrackSource>): string {
  if (!source.startsWith('screen') && [...taken.values()].includes(source))
    throw new CallplaneError(
      'already_published',
      `The ${source} is already published. Use switchDevice() or replaceTrack(), or publish it under a trackId of its own.`,
    );
  let trackId: string = source;
  for (let count = 2; taken.has(trackId); count++) trackId = `${source}-${count}`;
  return trackId;
}
