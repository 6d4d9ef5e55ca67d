import type { CallplaneError } from '../errors.js';
import { kept } from '../kept.js';
import { Attachments } from '../playback/attachments.js';
import type { TrackKind, TrackSource } from '../protocol.generated.js';
import { Serial } from '../wait.js';
import type { SendingOptions } from './sending.js';

/** Makes other media of a device's: a blurred background, another voice. */
export interface TrackProcessor {
  /**
   * Called with the media of the device, and again with the media of each further one: after an unmute of a camera and after
   * another choice of device. The earlier result is not used any more then.
   * @returns a track of the same kind
   */
  process(track: MediaStreamTrack): Promise<MediaStreamTrack> | MediaStreamTrack;
  /** The track ends, has another processor, or is sent unprocessed from now on. */
  stop(): void;
}

/** The changes of a published track, in its call. */
interface Host {
  context: {
    publisher: { senderOf: (trackId: string) => RTCRtpSender | undefined };
    onProblem: (error: CallplaneError) => void;
  };
  put: (track: LocalTrack, media: MediaStreamTrack, isOpened: boolean) => Promise<void>;
}

/** A processor at work. */
interface Processing {
  processor: TrackProcessor;
  process: (media: MediaStreamTrack) => Promise<MediaStreamTrack>;
  stop: () => void;
}

export type LocalTrackOptions = Pick<LocalTrack, 'trackId' | 'source' | 'mediaStreamTrack'> &
  Partial<Pick<LocalTrack, 'muted' | 'sending' | 'constraints' | 'isOwn' | 'releaseOnMute'>>;

/** A published track of this participant, as of one moment: a change makes another object. */
export type PublishedTrack = Readonly<
  Pick<
    LocalTrack,
    | 'trackId'
    | 'kind'
    | 'source'
    | 'muted'
    | 'mediaStreamTrack'
    | 'deviceId'
    | 'isReleased'
    | 'attach'
    | 'detach'
    | 'setProcessor'
  >
>;

/** A track of this participant's devices or screens, or of media that the application made. Its properties change. */
export class LocalTrack {
  readonly kind: TrackKind;
  readonly source: TrackSource;
  /** How the track is encoded when it is published. */
  readonly sending: SendingOptions;
  /** Simulcast layers; undefined leaves them to the browser. */
  encodings: RTCRtpEncodingParameters[] | undefined;
  /** Names the media sections that can carry the track. */
  section: string;
  /** Sets up the media section that sends the track from now on. */
  onSection: ((transceiver: RTCRtpTransceiver, isReused: boolean) => Promise<void>) | undefined;
  /** Changes the gateway's answer, before the browser gets it. */
  tuneAnswer: ((sdp: string, mid: string) => string) | undefined;
  /** Whether the SDK opened the device or screen, and therefore closes it. */
  isOwn: boolean;
  muted: boolean;
  /** The application's last `mute()` or `unmute()`, which may still be in progress. */
  wantsMuted: boolean;
  /** How to open the device again; undefined for a screen and for media of the application. */
  constraints: MediaTrackConstraints | undefined;
  /** Whether a mute closes the device, and an unmute opens it again. */
  readonly releaseOnMute: boolean;
  /** Whether a mute has closed the device. */
  isReleased = false;
  readonly changes = new Serial();
  /** The media of the device, which a processor gets. */
  captured: MediaStreamTrack;
  processing: Processing | undefined;
  /** Changes the media of the published track; undefined before it is published. */
  host: Host | undefined;
  readonly #attachments: Attachments;
  #trackId: string;
  #mediaStreamTrack: MediaStreamTrack;
  #snapshot: PublishedTrack | undefined;
  #onEnded: () => void = () => undefined;

  constructor(options: LocalTrackOptions) {
    const { trackId, source, mediaStreamTrack, muted = false, sending = {} } = options;
    this.kind = mediaStreamTrack.kind as TrackKind;
    this.source = source;
    this.sending = sending;
    this.section = this.kind;
    this.isOwn = options.isOwn ?? false;
    this.muted = this.wantsMuted = muted;
    this.constraints = options.constraints;
    this.releaseOnMute = options.releaseOnMute ?? false;
    this.#trackId = trackId;
    this.#attachments = new Attachments(this.kind, {
      onMedia: (element) => {
        // Participants must not hear themselves.
        element.muted = true;
        void element.play().catch(() => undefined);
      },
    });
    this.#mediaStreamTrack = this.captured = mediaStreamTrack;
    this.setMedia(mediaStreamTrack);
  }

  get trackId(): string {
    return this.#trackId;
  }

  /** The media that is sent. Another device, an unmute of a camera and `replaceTrack()` put a new one in its place. */
  get mediaStreamTrack(): MediaStreamTrack {
    return this.#mediaStreamTrack;
  }

  /** The device, as in `listDevices()`; undefined for a screen. */
  get deviceId(): string | undefined {
    return this.captured.getSettings().deviceId;
  }

  /**
   * Shows the track in the element, or in a new one. The element follows when the device changes.
   * @returns the element, for the page to insert.
   */
  readonly attach = (element?: HTMLMediaElement): HTMLMediaElement => this.#attachments.attach(element);

  /** @returns the elements that showed the track: all, or the given one. */
  readonly detach = (element?: HTMLMediaElement): HTMLMediaElement[] => this.#attachments.detach(element);

  /**
   * Sends and shows media of the processor, until it is undefined; across mutes, unmutes and other devices. If the
   * processor fails, takes more than 10 s to begin, or makes fewer than 10 pictures a second for 3 s, the unprocessed
   * media is sent, and the event `problem` has `processor_failed`.
   * @throws CallplaneError `processor_failed` if it fails at once
   */
  readonly setProcessor = (processor: TrackProcessor | undefined): Promise<void> =>
    this.changes.run(() => import('./processing.js').then((module) => module.setProcessor(this, processor)));

  /** For the SDK: the same object until something changes. */
  get snapshot(): PublishedTrack {
    const { trackId, kind, source, muted, mediaStreamTrack, deviceId, isReleased, attach, detach, setProcessor } = this;
    const now = { trackId, kind, source, muted, mediaStreamTrack, deviceId, isReleased, attach, detach, setProcessor };
    return (this.#snapshot = kept(this.#snapshot, now));
  }

  /** Closes the device, if the SDK opened it. For tracks of `createLocalTracks()` that are not published. */
  stop(): void {
    this.processing?.stop();
    if (this.isOwn) this.captured.stop();
    this.#attachments.setMedia(undefined);
  }

  /** For the SDK: the track goes by this id in the call, and reports the end of its media. */
  published(trackId: string, host: Host, onEnded: () => void): void {
    this.#trackId = trackId;
    this.host = host;
    this.#onEnded = onEnded;
  }

  /**
   * For the SDK.
   * @param captured the media of the device that it was made of
   */
  setMedia(media: MediaStreamTrack, captured = media): void {
    this.#mediaStreamTrack = media;
    this.captured = captured;
    if (this.muted) media.enabled = false;
    // The device was unplugged, or the user ended the screen share in the browser's own bar.
    captured.addEventListener('ended', () => {
      if (captured === this.captured) this.#onEnded();
    });
    this.#attachments.setMedia(media);
  }

  /** For the SDK: closes the device until the track is unmuted. */
  release(): void {
    this.isReleased = true;
    this.captured.stop();
    this.#attachments.setMedia(undefined);
  }
}
