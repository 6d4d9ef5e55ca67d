import { Emitter } from './emitter.js';
import { CallplaneError } from './errors.js';
import type { CallEvents } from './events.js';
import { IceServers } from './ice-servers.js';
import { LocalMedia, type DeviceOptions, type TrackOptions } from './local/local-media.js';
import type { LocalTrack } from './local/local-track.js';
import type { Settings } from './options.js';
import { Publisher } from './peers/publisher.js';
import { Subscriber } from './peers/subscriber.js';
import type { Platform } from './platform.js';
import type {
  PeerTarget,
  RemoteParticipant,
  ServerMessage,
  TrackReference,
  WelcomeMessage,
} from './protocol.generated.js';
import type { Participant } from './remote/participant.js';
import { Roster } from './remote/roster.js';
import { Session, type CloseInfo, type ConnectionState } from './signaling/session.js';
import { Subscriptions, type Subscription } from './subscriptions.js';

/** A call that was joined; made by `connect()`. */
export class Call extends Emitter<CallEvents> {
  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #session: Session;
  readonly #roster: Roster;
  readonly #publisher: Publisher;
  readonly #localMedia: LocalMedia;
  readonly #subscriber: Subscriber;
  readonly #subscriptions: Subscriptions;
  readonly #iceServers: IceServers;
  #welcome: WelcomeMessage | undefined;
  #mediaState: 'up' | 'down' = 'down';
  /** Until `start()`, what came in: nobody can listen yet. */
  #inbox: (() => void)[] | undefined = [];

  /** Use `connect()`. */
  constructor(platform: Platform, settings: Settings) {
    super();
    this.#platform = platform;
    this.#settings = settings;
    const session = (this.#session = new Session(platform, settings, {
      onState: (state) => this.#deliver(() => this.emit('state', state)),
      onWelcome: (welcome) => this.#welcomed(welcome),
      onMessage: (message) => this.#deliver(() => this.#receive(message)),
      onClosed: (close) => this.#deliver(() => this.#closed(close)),
    }));
    this.#roster = new Roster((name, event) => this.emit(name, event as never));
    const createConnection = () => this.#createConnection();
    this.#publisher = new Publisher({
      ...{ session, createConnection, random: platform.random },
      onLost: (tracks, error) => {
        for (const track of tracks) this.#localMedia.forget(track);
        this.emit('problem', error);
      },
    });
    this.#localMedia = new LocalMedia({
      ...{ platform, publisher: this.#publisher, permissions: () => this.permissions },
      onPublished: (track) => this.emit('localTrackPublished', track),
      onUnpublished: (track) => this.emit('localTrackUnpublished', track),
    });
    this.#subscriber = new Subscriber({
      ...{ session, createConnection },
      onTracks: (tracks) => this.#roster.receive(tracks),
      onError: (error) => this.emit('problem', error),
    });
    this.#subscriptions = new Subscriptions(session);
    this.#iceServers = new IceServers(session, platform.now, (iceServers) => {
      for (const peer of [this.#publisher, this.#subscriber]) peer.configure({ ...this.#configuration(), iceServers });
    });
  }

  get state(): ConnectionState {
    return this.#session.state;
  }

  /** Why the call is over; undefined before. */
  get closeInfo(): CloseInfo | undefined {
    return this.#session.closeInfo;
  }

  get sessionId(): string {
    return this.#known.sessionId;
  }

  /** The room, as the REST API returns it. */
  get room(): Record<string, unknown> {
    return this.#known.room;
  }

  /** The own participant, as it was at the latest welcome. */
  get participant(): RemoteParticipant {
    return this.#known.participant;
  }

  /** What the token permits, such as `audio:publish`. */
  get permissions(): readonly string[] {
    return this.#known.permissions;
  }

  /** `down`: no media server at present; everything else works, and media comes back by itself. */
  get mediaState(): 'up' | 'down' {
    return this.#mediaState;
  }

  /** The others, by participant id. */
  get participants(): ReadonlyMap<string, Participant> {
    return this.#roster.participants;
  }

  /** What is published, by track id. */
  get tracks(): ReadonlyMap<string, LocalTrack> {
    return this.#publisher.tracks;
  }

  /** Opens microphone and camera and publishes them. */
  publish(devices: DeviceOptions): Promise<LocalTrack[]>;
  /** Publishes a track of your own. */
  publish(track: MediaStreamTrack, options: TrackOptions): Promise<LocalTrack[]>;
  publish(what: DeviceOptions | MediaStreamTrack, options?: TrackOptions): Promise<LocalTrack[]> {
    if (options === undefined) return this.#localMedia.publishDevices(what as DeviceOptions);
    return this.#localMedia.publishTrack(what as MediaStreamTrack, options);
  }

  /** Lets the person choose a screen, window or tab, and publishes it, with its sound if the browser gives it. */
  shareScreen(options: DisplayMediaStreamOptions = { video: true, audio: true }): Promise<LocalTrack[]> {
    return this.#localMedia.publishScreen(options);
  }

  /** Ends the publishing of one track, or of all. Devices that the SDK opened are closed. */
  unpublish(trackId?: string): Promise<void> {
    return this.#localMedia.unpublish(trackId);
  }

  /** Sends silence or black, and tells the others. */
  mute(trackId: string): Promise<void> {
    return this.#localMedia.setMuted(trackId, true);
  }

  unmute(trackId: string): Promise<void> {
    return this.#localMedia.setMuted(trackId, false);
  }

  /** Receives tracks, or other layers of them; for calls without `autoSubscribe`. */
  subscribe(...tracks: Subscription[]): Promise<void> {
    return this.#subscriptions.subscribe(tracks);
  }

  unsubscribe(...tracks: TrackReference[]): Promise<void> {
    return this.#subscriptions.unsubscribe(tracks);
  }

  /** Sends JSON to everybody else, or to some. Needs `messages:send`. */
  async send(data: unknown, { to }: { to?: string[] } = {}): Promise<void> {
    await this.#session.request({ type: 'message', data, ...(to === undefined ? {} : { to }) });
  }

  /** Replaces the own metadata. Needs `metadata:update`. */
  async updateMetadata(metadata: Record<string, unknown>): Promise<void> {
    await this.#session.request({ type: 'metadata', metadata });
  }

  /** WebRTC's own figures of the connection that sends and of that which receives. */
  async getStats(): Promise<Record<PeerTarget, RTCStatsReport | undefined>> {
    return {
      publisher: await this.#publisher.connection?.getStats(),
      subscriber: await this.#subscriber.connection?.getStats(),
    };
  }

  /** Leaves; the others are told at once. */
  leave(): Promise<void> {
    return this.#session.leave();
  }

  /** For `connect()`. */
  async join(): Promise<void> {
    await this.#session.join();
    if (this.#settings.leaveOnPageHide) this.#platform.page?.addEventListener('pagehide', this.#onPageHide);
    // After whoever awaited this has had the chance to listen.
    setTimeout(() => {
      const inbox = this.#inbox ?? [];
      this.#inbox = undefined;
      for (const deliver of inbox) deliver();
    });
  }

  get #known(): WelcomeMessage {
    if (this.#welcome === undefined) throw new CallplaneError('unreachable', 'Not connected yet.');
    return this.#welcome;
  }

  #deliver(event: () => void): void {
    if (this.#inbox === undefined) event();
    else this.#inbox.push(event);
  }

  #welcomed(welcome: WelcomeMessage): void {
    const isFirst = this.#welcome === undefined;
    this.#welcome = welcome;
    this.#iceServers.set(welcome);
    if (isFirst) {
      this.#mediaState = welcome.media.state;
      this.#roster.replace(welcome.participants);
      return;
    }
    this.#deliver(() => {
      this.#setMediaState(welcome.media.state);
      this.#roster.replace(welcome.participants);
      if (!welcome.media.continued) this.#reset(['publisher', 'subscriber']);
      this.#publisher.mend();
      this.#subscriber.mend();
    });
  }

  #receive(message: ServerMessage): void {
    switch (message.type) {
      case 'offer':
        if (this.#platform.RTCPeerConnection !== undefined) this.#subscriber.offer(message);
        break;
      case 'candidate':
        (message.target === 'publisher' ? this.#publisher : this.#subscriber).addCandidate(message.candidate);
        break;
      case 'mediaReset':
        this.#reset(message.targets);
        break;
      case 'mediaState':
        this.#setMediaState(message.state);
        break;
      case 'participantJoined':
      case 'participantUpdated':
        this.#roster.upsert(message.participant);
        break;
      case 'participantLeft':
        this.#roster.left(message.participantId, message.sessionId);
        break;
      case 'trackPublished':
      case 'trackUpdated':
        this.#roster.published(message.participantId, message.track);
        break;
      case 'trackUnpublished':
        this.#subscriptions.forget(message);
        this.#roster.unpublished(message.participantId, message.trackId);
        break;
      case 'message': {
        const { from, data, sentAt } = message;
        this.emit('message', { from, participant: this.participants.get(from), data, sentAt: new Date(sentAt) });
        break;
      }
      default:
      // Answers were taken already; anything else is of a later version.
    }
  }

  #reset(targets: PeerTarget[]): void {
    if (targets.includes('publisher')) this.#publisher.reset();
    if (targets.includes('subscriber')) {
      this.#subscriber.reset();
      void this.#subscriptions.renew();
    }
  }

  #setMediaState(state: 'up' | 'down'): void {
    if (this.#mediaState === state) return;
    this.#mediaState = state;
    this.emit('mediaState', state);
  }

  #configuration(): RTCConfiguration {
    const { iceTransportPolicy } = this.#settings;
    return { iceTransportPolicy, bundlePolicy: 'max-bundle' };
  }

  #createConnection(): RTCPeerConnection {
    const { RTCPeerConnection: Connection } = this.#platform;
    if (Connection === undefined) throw new CallplaneError('device_unavailable', 'There is no WebRTC here.');
    return new Connection({ ...this.#configuration(), iceServers: this.#iceServers.servers });
  }

  readonly #onPageHide = (): void => {
    this.#session.post({ type: 'leave' });
  };

  #closed(close: CloseInfo): void {
    this.#platform.page?.removeEventListener('pagehide', this.#onPageHide);
    this.#iceServers.close();
    this.#localMedia.close();
    this.#subscriber.close();
    this.emit('closed', close);
  }
}
