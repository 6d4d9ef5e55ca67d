import { Displays } from '../playback/displays.js';
import type { PeerTarget, QualityLevel, TrackReference } from '../protocol.generated.js';
import type { TrackQuality } from '../remote/participant.js';
import type { Roster } from '../remote/roster.js';
import type { Session } from '../signaling/session.js';
import type { Subscriptions } from '../subscriptions.js';
import { Downlink } from './downlink.js';
import { OwnQuality } from './quality.js';

export interface WatchingContext {
  session: Session;
  isAdaptive: boolean;
  now: () => number;
  roster: Pick<Roster, 'participants'>;
  subscriptions: Subscriptions;
  connections: () => Record<PeerTarget, RTCPeerConnection | undefined>;
  onLevel: (level: QualityLevel) => void;
  onTrackQuality: (track: TrackReference, quality: TrackQuality) => void;
}

/**
 * Watches the network and the page: measures this participant's connections, and receives as much of each track as the page
 * displays and the network carries. This code is loaded later, because a call can begin without it.
 */
export class Watching {
  readonly quality: OwnQuality;
  readonly downlink: Downlink | undefined;
  /** Undefined without adaptation, and where elements cannot be watched. */
  readonly displays: Displays | undefined;

  constructor({ isAdaptive, roster, subscriptions, connections, onLevel, ...context }: WatchingContext) {
    const present = () => Object.values(connections()).filter((one) => one !== undefined);
    this.quality = new OwnQuality(context.session, present, onLevel);
    if (!isAdaptive) return;
    const tracks = () =>
      [...roster.participants.values()].flatMap(({ tracks, isSpeaking }) =>
        [...tracks.values()].map((track) => ({ track, isSpeaking })),
      );
    this.downlink = new Downlink({
      now: context.now,
      connection: () => connections().subscriber,
      videos: () => tracks().filter(({ track }) => track.kind === 'video' && track.mediaStreamTrack !== undefined),
      subscriptions,
      onQuality: context.onTrackQuality,
    });
    if (typeof IntersectionObserver === 'undefined') return;
    this.displays = new Displays((track, display) => subscriptions.display(track, display));
  }

  close(): void {
    this.quality.close();
    this.downlink?.close();
    this.displays?.close();
  }
}
