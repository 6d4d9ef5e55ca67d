import type { TrackReference } from '../protocol.generated.js';
import type { RemoteTrack } from '../remote/participant.js';
import type { Roster } from '../remote/roster.js';
import type { Subscriptions } from '../subscriptions.js';
import type { Downlink, ReceivedVideo } from './downlink.js';
import { ReceivePlan, type Display, type Limit } from './receive-plan.js';
import type { TrackQuality, TrackQualityChange } from './track-quality.js';

export interface AdaptationContext {
  isEnabled: boolean;
  now: () => number;
  roster: Pick<Roster, 'participants'>;
  subscriptions: Pick<Subscriptions, 'adapt' | 'layerOf'>;
  connection: () => RTCPeerConnection | undefined;
  onChange: (change: TrackQualityChange) => void;
}

/** Receives as much of each track as the page displays and the network carries. */
export class Adaptation {
  readonly #context: AdaptationContext;
  readonly #plan: ReceivePlan;
  readonly #qualities = new WeakMap<RemoteTrack, TrackQuality>();
  #downlink: Downlink | undefined;
  #isClosed = false;

  constructor(context: AdaptationContext) {
    this.#context = context;
    this.#plan = new ReceivePlan((tracks) => context.subscriptions.adapt(tracks));
  }

  /** Call this when the page displays the track differently; undefined: it is no longer attached. */
  display(track: TrackReference, display: Display | undefined): void {
    if (this.#context.isEnabled) this.#plan.display(track, display);
  }

  /** The media server has noticed losses on the way to the client. */
  slowLink(): void {
    this.#downlink?.slowLink();
  }

  /** The track is no longer listed, but still published: nothing can show it. */
  hide(track: TrackReference): void {
    const display = this.#plan.displayOf(track);
    if (display !== undefined) this.#plan.display(track, { ...display, isHidden: true });
  }

  published({ participant: { participantId }, trackId }: RemoteTrack): void {
    this.#plan.published({ participantId, trackId });
  }

  forget(track: TrackReference): void {
    this.#plan.forget(track);
  }

  /** Loads the code that watches the network: a call can begin without it. */
  async start(): Promise<void> {
    if (!this.#context.isEnabled) return;
    const { Downlink } = await import('./downlink.js');
    if (this.#isClosed) return;
    const { now, connection } = this.#context;
    this.#downlink = new Downlink({
      now,
      connection,
      videos: () => this.#videos(),
      limit: (track, limit, quality) => this.#limit(track, limit, quality),
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#downlink?.close();
    this.#plan.close();
  }

  #videos(): ReceivedVideo[] {
    const { roster, subscriptions } = this.#context;
    return [...roster.participants.values()].flatMap(({ participantId, tracks, isSpeaking }) =>
      [...tracks.values()].flatMap(({ trackId, kind, source, muted, mediaStreamTrack }) => {
        if (kind !== 'video' || mediaStreamTrack === undefined) return [];
        const track = { participantId, trackId };
        const chosen = { display: this.#plan.displayOf(track), layer: subscriptions.layerOf(track) };
        return [{ track, trackIdentifier: mediaStreamTrack.id, source, isMuted: muted, isSpeaking, ...chosen }];
      }),
    );
  }

  #limit(reference: TrackReference, limit: Limit | undefined, quality: TrackQuality): void {
    this.#plan.limit(reference, limit);
    const track = this.#context.roster.participants.get(reference.participantId)?.tracks.get(reference.trackId);
    if (track === undefined || quality === (this.#qualities.get(track) ?? 'full')) return;
    this.#qualities.set(track, quality);
    this.#context.onChange({ track, quality });
  }
}
