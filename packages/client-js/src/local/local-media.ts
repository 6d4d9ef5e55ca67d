import { assertNotAborted, CallplaneError, invalidArgument } from '../errors.js';
import type { Publisher } from '../peers/publisher.js';
import type { Platform } from '../platform.js';
import type { Track, TrackSource } from '../protocol.generated.js';
import { Attempts } from './attempts.js';
import {
  captureScreen,
  openDevices,
  type TrackFailure,
  type DeviceOptions,
  type ScreenOptions,
} from './create-tracks.js';
import { DeviceChanges } from './device-changes.js';
import { assertDevice, type DeviceKind } from './devices.js';
import { LocalTrack } from './local-track.js';
import { cancelledError, PERMISSION_OF, Publications, type Publication } from './publications.js';
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

/** The result of a publication. */
export interface PublishResult {
  published: LocalTrack[];
  failed: TrackFailure[];
}

export interface LocalMediaContext {
  platform: Platform;
  publisher: Publisher;
  permissions: () => readonly string[];
  /** @throws CallplaneError once the call is over */
  assertOpen: () => void;
  onProblem: (error: CallplaneError) => void;
  /** The snapshot of the call may have changed. */
  onChange: () => void;
  emit: (
    name: 'localTrackPublished' | 'localTrackUpdated' | 'localTrackUnpublished' | 'deviceFallback',
    track: LocalTrack,
  ) => void;
}

/** Opens, publishes, mutes and closes this participant's devices and screens. */
export class LocalMedia {
  readonly layers: SentLayers;
  readonly attempts: Attempts;
  readonly #publications: Publications;
  readonly #devices: DeviceChanges;

  constructor(private readonly context: LocalMediaContext) {
    this.layers = new SentLayers(context.publisher);
    this.attempts = new Attempts(context.onChange);
    this.#devices = new DeviceChanges({ ...context, onMedia: (track) => this.#fit(track) });
    this.#publications = new Publications({ ...context, published: () => context.publisher.tracks.values() });
  }

  async publishDevices(options: DeviceOptions): Promise<PublishResult> {
    const { audio = false, video = false } = options;
    assertSending(options);
    const microphone = audio === false ? [] : [{ source: 'microphone' as const }];
    const camera = video === false ? [] : [{ source: 'camera' as const }];
    // Checked before the browser asks the user for the device.
    return this.#run([...microphone, ...camera], options.signal, async (publication) => {
      const { signal } = publication;
      const opened = await openDevices(this.context.platform, { ...options, signal }, this.#devices.chosen);
      const published = await this.#publish(publication, opened);
      for (const track of published.published) this.#devices.check(track);
      return published;
    });
  }

  async publishScreen({ signal, codec, encodings, ...options }: ScreenOptions): Promise<LocalTrack[]> {
    const sending = { codec, encodings };
    assertSending(sending);
    const isWithSound = options.audio !== false && this.#publications.free >= 2;
    const sources = [{ source: 'screen' as const }, ...(isWithSound ? [{ source: 'screen_audio' as const }] : [])];
    const { published } = await this.#run(sources, signal, async (publication) => {
      const wanted = isWithSound ? options : { ...options, audio: false };
      const captured = await captureScreen(this.context.platform, wanted, publication.signal);
      const tracks = captured.map((one) => new LocalTrack({ ...one, trackId: one.source, isOwn: true, sending }));
      return this.#publish(publication, { tracks });
    });
    return published;
  }

  async publishTrack(mediaStreamTrack: MediaStreamTrack, options: TrackOptions): Promise<PublishResult> {
    const { source, trackId, muted = false, signal, ...sending } = options;
    assertSending(sending);
    return this.#run([{ source, trackId }], signal, async (publication) => {
      const track = new LocalTrack({ trackId: source, source, mediaStreamTrack, muted, sending });
      return this.#publish(publication, { tracks: [track] });
    });
  }

  async publishTracks(tracks: readonly LocalTrack[], { signal }: { signal?: AbortSignal }): Promise<PublishResult> {
    if (tracks.length === 0) return { published: [], failed: [] };
    return this.#run(tracks, signal, (publication) =>
      this.#publish(publication, { tracks: [...tracks], isPreview: true }),
    );
  }

  async unpublish(trackId: string | undefined): Promise<void> {
    await this.#unpublish((name) => trackId === undefined || name.trackId === trackId);
  }

  async unpublishScreen(): Promise<void> {
    await this.#unpublish(({ source }) => source.startsWith('screen'));
  }

  async replaceTrack(trackId: string, media: MediaStreamTrack): Promise<void> {
    await this.#publications.published(trackId);
    const track = this.#track(trackId);
    if (media.kind !== track.kind) throw invalidArgument('track', `must be of the kind ${track.kind}`);
    await this.#devices.replace(track, media);
  }

  async switchDevice(kind: DeviceKind, deviceId: string): Promise<void> {
    const source = SOURCES[kind];
    if (source === undefined) throw invalidArgument('kind', 'must be audioinput, videoinput or audiooutput');
    await this.attempts.run([source], async () => {
      await assertDevice(this.context.platform, kind, deviceId);
      await this.#publications.published(source).catch(() => undefined);
      await this.#devices.switchTo(source, deviceId);
    });
  }

  async setMuted(trackId: string, muted: boolean): Promise<void> {
    const source = this.context.publisher.tracks.get(trackId)?.source;
    await this.attempts.run(source === undefined ? [] : [source], async () => {
      await this.#publications.mute(trackId, muted);
      await this.#devices.setMuted(this.#track(trackId), muted);
    });
  }

  /** Takes the gateway's view of this participant's tracks: the server may have muted some. */
  align(tracks: readonly Track[]): void {
    const { publisher } = this.context;
    for (const { trackId, muted } of tracks) {
      const track = publisher.tracks.get(trackId);
      if (track !== undefined) this.#devices.align(track, muted);
    }
  }

  async permissionsChanged(): Promise<void> {
    const permissions = this.context.permissions();
    await this.#unpublish(({ source }) => !permissions.includes(PERMISSION_OF[source])).catch(() => undefined);
  }

  forget(track: LocalTrack): void {
    track.stop();
    this.context.emit('localTrackUnpublished', track);
  }

  /** @param error why the call is over */
  close(error: CallplaneError): void {
    this.layers.close();
    this.#publications.close(error);
    for (const track of this.context.publisher.tracks.values()) track.stop();
  }

  #run(
    wanted: readonly { source: TrackSource; trackId?: string | undefined }[],
    signal: AbortSignal | undefined,
    task: (publication: Publication) => Promise<PublishResult>,
  ): Promise<PublishResult> {
    const sources = wanted.map(({ source }) => source);
    return this.attempts.run(sources, async () => {
      const result = await this.#publications.run(wanted, signal, task);
      this.attempts.fail(result.failed);
      return result;
    });
  }

  async #publish(
    publication: Publication,
    { tracks, failed = [], isPreview = false }: { tracks: LocalTrack[]; failed?: TrackFailure[]; isPreview?: boolean },
  ): Promise<PublishResult> {
    const { publisher, emit } = this.context;
    for (const track of tracks) {
      this.#prepare(track);
      const trackId = publication.trackIds.get(track.source) ?? track.source;
      track.published(trackId, this.#devices, () => void this.#ended(track).catch(() => undefined));
      publication.opened(track);
    }
    const wanted = () => {
      assertNotAborted(publication.signal);
      const all = tracks.filter((track) => publication.isWanted(track));
      if (all.length === 0) throw cancelledError();
      return all;
    };
    let published: LocalTrack[];
    try {
      await publisher.publish(wanted());
      await this.#drop(publication, tracks);
      published = wanted();
    } catch (error) {
      // A preview stays open: the user still sees it, and may try again.
      if (!isPreview) for (const track of tracks) track.stop();
      throw error;
    }
    this.layers.measure();
    const { code, message } = cancelledError();
    const dropped = tracks.filter((track) => !published.includes(track));
    publication.release();
    for (const track of published) emit('localTrackPublished', track);
    return { published, failed: [...failed, ...dropped.map(({ source }) => ({ source, code, message }))] };
  }

  /** Unpublishes the tracks that are no longer wanted. */
  async #drop(publication: Publication, tracks: LocalTrack[]): Promise<void> {
    const { publisher } = this.context;
    for (;;) {
      const dropped = tracks.filter(
        (track) => !publication.isWanted(track) && publisher.tracks.get(track.trackId) === track,
      );
      if (dropped.length === 0) return;
      await publisher.unpublish(dropped).catch(() => undefined);
    }
  }

  /** The device was unplugged, or the browser ended the share of a screen. */
  async #ended(track: LocalTrack): Promise<void> {
    const { trackId } = track;
    const present = this.context.publisher.tracks.get(trackId) ?? this.#publications.trackOf(trackId);
    if (present === track) await this.unpublish(trackId);
  }

  async #unpublish(isMeant: (track: Pick<LocalTrack, 'trackId' | 'source'>) => boolean): Promise<void> {
    const { publisher } = this.context;
    const tracks = [...publisher.tracks.values()].filter((track) => isMeant(track) && !this.#publications.has(track));
    const cancelling = this.#publications.cancel(isMeant);
    for (const track of tracks) this.forget(track);
    if (tracks.length > 0) await publisher.unpublish(tracks);
    await cancelling;
  }

  /** Chooses how the track is encoded. Its size is known by now. */
  #prepare(track: LocalTrack): void {
    const { source, mediaStreamTrack } = track;
    const sending = this.#optionsOf(track);
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
    const { source, mediaStreamTrack, trackId } = track;
    const present = this.context.publisher.senderOf(trackId)?.getParameters().encodings ?? [];
    const encodings = fittingEncodings(source, mediaStreamTrack, this.#optionsOf(track), present);
    if (encodings !== undefined) this.layers.fit(track, encodings);
    // Another connection may have a section for the new size.
    this.#prepare(track);
    this.context.onChange();
  }

  #optionsOf({ sending }: LocalTrack) {
    return { ...sending, isEncrypted: this.context.publisher.isEncrypted };
  }

  #track(trackId: string): LocalTrack {
    const track = this.context.publisher.tracks.get(trackId);
    if (track === undefined) throw new CallplaneError('not_found', `The track "${trackId}" is not published.`);
    return track;
  }
}
