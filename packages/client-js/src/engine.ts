import type { Asks, RequestHandler } from './data/asks.js';
import type { StreamHandler } from './data/incoming.js';
import type { Streams } from './data/streams.js';
import type { Encryption } from './encryption/encryption.js';
import type { EncryptionError, EncryptionOptions } from './encryption/options.js';
import { asCallplaneError, CallplaneError } from './errors.js';
import type { CallEvents } from './events.js';
import { IceServers } from './ice-servers.js';
import { assertDevice } from './local/devices.js';
import { assertMessage } from './limits.js';
import type { LocalMedia } from './local/local-media.js';
import type { Room } from './metadata.js';
import type { Settings } from './options.js';
import type { PeersContext } from './peers/peer.js';
import { Publisher } from './peers/publisher.js';
import { Subscriber } from './peers/subscriber.js';
import type { Platform } from './platform.js';
import { Playback } from './playback/playback.js';
import type { PeerTarget, ResumeRequest, ServerMessage, WelcomeMessage } from './protocol.generated.js';
import type { RemoteTrack } from './remote/participant.js';
import { Presence } from './remote/presence.js';
import { Roster } from './remote/roster.js';
import { errorOf, type CloseInfo } from './signaling/close-info.js';
import { Session, type ConnectionState } from './signaling/session.js';
import { Snapshots, type CallSnapshot } from './snapshot.js';
import { Subscriptions } from './subscriptions.js';
import type { Watching } from './watching/watching.js';

export type Emit = <Name extends keyof CallEvents>(name: Name, event: CallEvents[Name]) => void;

/** The parts of a call. Hands each message of the gateway to the part that it concerns. */
export class Engine {
  readonly session: Session;
  readonly roster: Roster;
  readonly presence: Presence;
  readonly publisher: Publisher;
  readonly subscriber: Subscriber;
  readonly subscriptions: Subscriptions;
  readonly playback: Playback;
  readonly snapshots = new Snapshots(() => this.#read());
  readonly handlers = new Map<string, RequestHandler>();
  readonly streamHandlers = new Map<string, StreamHandler>();
  encryption: Encryption | undefined;
  permissions: readonly string[] = [];
  #mediaState: 'up' | 'down' = 'down';
  #watching: Watching | undefined;
  readonly #emit: Emit;
  readonly #iceServers: IceServers;
  /** The connections whose path is lost, until they or their successors have one. */
  readonly #lostPaths = new Set<PeerTarget>();
  #stateBefore: ConnectionState = 'connected';
  #welcome: WelcomeMessage | undefined;
  #localMedia: LocalMedia | undefined;
  #loading: Promise<LocalMedia> | undefined;
  #asks: Promise<Asks> | undefined;
  #streams: Promise<Streams> | undefined;
  /** The loaded ones of the two. */
  readonly #followers: (Asks | Streams)[] = [];
  #isOver = false;
  /** Events that wait until the caller of `connect()` has added its listeners; undefined from then on. */
  #waiting: (() => void)[] | undefined = [];

  constructor(
    private readonly platform: Platform,
    private readonly settings: Settings,
    send: Emit,
  ) {
    const emit: Emit = (this.#emit = (name, event) => {
      if (this.#isOver) return;
      this.#isOver = name === 'closed';
      this.snapshots.changed();
      send(name, event);
      for (const one of this.#followers) one.onEvent(name, event);
    });
    const session = (this.session = new Session(platform, settings, {
      onState: () => this.#stateChanged(),
      onWelcome: (welcome) => this.#welcomed(welcome),
      onMessage: (message) =>
        this.#deliver(() => {
          this.#receive(message);
          // The last one whose media was received may have gone.
          if (this.#lostPaths.size > 0) this.#stateChanged();
        }),
      onOnline: () => this.#peers.forEach((peer) => peer.repair.networkChanged()),
      presentPeers: () => this.#presentPeers(),
      onClosed: (close) => this.#deliver(() => this.#closed(close)),
    }));
    this.subscriptions = new Subscriptions(session, settings.autoSubscribe);
    this.playback = new Playback({
      emit: (name) => emit(name, undefined),
      onPlaying: (track, isPlaying) => {
        this.roster.changeTrack(track, { isPlaying });
        this.snapshots.changed();
      },
    });
    this.roster = new Roster({
      emit: (name, event) => {
        if (name === 'trackPublished') this.subscriptions.published(event as RemoteTrack);
        emit(name, event as never);
      },
      onTrackGone: (track, why) => this.subscriptions.gone(track, why),
      playback: this.playback,
    });
    this.presence = new Presence({
      session,
      roster: this.roster,
      isPublishing: () => this.publisher.tracks.size > 0,
      onOwnTracks: (tracks) => this.#localMedia?.align(tracks),
      emit: (name, event) => emit(name, event as never),
    });
    this.#iceServers = new IceServers(session, platform.now, settings.iceTransportPolicy);
    const peers: PeersContext = {
      session,
      iceServers: this.#iceServers,
      createConnection: () => this.#createConnection(),
      encryption: () => this.encryption,
      random: platform.random,
      onPath: (target, isLost) => {
        if (isLost) this.#lostPaths.add(target);
        else this.#lostPaths.delete(target);
        this.#stateChanged();
      },
    };
    this.publisher = new Publisher({
      ...peers,
      onChange: () => this.snapshots.changed(),
      onLost: (tracks, error) => {
        for (const track of tracks) this.#localMedia?.forget(track);
        emit('problem', error);
      },
    });
    this.subscriber = new Subscriber({
      ...peers,
      onTracks: (tracks) => this.roster.receive(tracks),
      onError: (error) => emit('problem', error),
    });
  }

  /** Without a path for its media, a call is no more connected than without a gateway. */
  get state(): ConnectionState {
    const { state } = this.session;
    const isReceiving = () =>
      [...this.roster.participants.values()].some(({ tracks }) =>
        [...tracks.values()].some((track) => this.subscriptions.isWanted(track)),
      );
    const isLost = this.#lostPaths.has('publisher') || (this.#lostPaths.has('subscriber') && isReceiving());
    return state === 'connected' && isLost ? 'reconnecting' : state;
  }

  #read(): Omit<CallSnapshot, 'version'> {
    const { session, presence, roster, playback, permissions } = this;
    return {
      state: this.state,
      closeInfo: session.closeInfo,
      sessionId: this.#welcome?.sessionId,
      room: presence.room,
      recordingSince: presence.room?.recordingSince ?? null,
      participant: presence.own,
      permissions,
      mediaState: this.#mediaState,
      connectionQuality: this.#watching?.quality.level,
      participants: roster.participants,
      activeSpeakers: roster.activeSpeakers,
      ...presence.counts,
      isRosterPaged: presence.isPaged,
      tracks: new Map([...this.publisher.tracks].map(([trackId, track]) => [trackId, track.snapshot])),
      pending: this.#localMedia?.attempts.pending ?? [],
      failures: this.#localMedia?.attempts.failures ?? [],
      encryption: this.encryption?.state,
      isAudioBlocked: playback.isAudioBlocked,
    };
  }

  get connections(): Record<PeerTarget, RTCPeerConnection | undefined> {
    return { publisher: this.publisher.peer?.connection, subscriber: this.subscriber.peer?.connection };
  }

  /** Loads the code that publishes when it is first used: those who only watch do not need it. */
  async localMedia(): Promise<LocalMedia> {
    // A device that opens after the call would only be closed again.
    this.session.assertOpen();
    this.#loading ??= import('./local/local-media.js').then(({ LocalMedia }) => {
      const { publisher, session } = this;
      return (this.#localMedia = new LocalMedia({
        platform: this.platform,
        publisher,
        permissions: () => this.permissions,
        assertOpen: () => session.assertOpen(),
        onChange: () => this.snapshots.changed(),
        onProblem: (error) => this.#emit('problem', error),
        emit: (name, track) => this.#emit(name, track.snapshot),
      }));
    });
    try {
      return await this.#loading;
    } catch (error) {
      this.#loading = undefined;
      throw error;
    }
  }

  /** Loads the code for requests between participants when one is sent or arrives. */
  asks(): Promise<Asks> {
    return (this.#asks ??= import('./data/asks.js').then(({ Asks }) =>
      this.#follow(new Asks(this, this.platform.random, assertMessage, this.#emit)),
    ));
  }

  streams(): Promise<Streams> {
    return (this.#streams ??= import('./data/streams.js').then(({ Streams }) =>
      this.#follow(new Streams(this, this.platform, assertMessage, this.#emit)),
    ));
  }

  #follow<T extends Asks | Streams>(data: T): T {
    this.#followers.push(data);
    return data;
  }

  /** Changes published tracks, and tracks on their way. Rejects with the reason when the call ends first. */
  async changeMedia(task: (media: LocalMedia) => Promise<void>): Promise<void> {
    await this.session.untilOver(this.localMedia().then(task));
  }

  /** The same, unless nothing can be published. */
  async changePublished(task: (media: LocalMedia) => Promise<void>): Promise<void> {
    if (this.#loading !== undefined && this.session.state !== 'closed') await this.changeMedia(task);
  }

  async setOutput(deviceId: string): Promise<void> {
    // The empty id is the default device.
    if (deviceId !== '') await assertDevice(this.platform, 'audiooutput', deviceId);
    await this.playback.setOutput(deviceId);
  }

  async join(): Promise<void> {
    try {
      const { encryption } = this.settings;
      if (encryption !== undefined) await this.#encrypt(encryption);
      await this.session.join();
      this.#assertEncryption();
      if (this.settings.leaveOnPageHide) this.platform.page?.addEventListener('pagehide', this.#onPageHide);
    } finally {
      // Runs after the continuation of `await connect()`.
      setTimeout(() => {
        const waiting = this.#waiting ?? [];
        this.#waiting = undefined;
        for (const deliver of waiting) deliver();
      });
    }
  }

  async #encrypt(options: EncryptionOptions): Promise<void> {
    const { Encryption } = await import('./encryption/encryption.js');
    this.encryption = await Encryption.open(options, {
      own: () => this.presence.own,
      participants: () => this.roster.participants,
      onKey: () => this.snapshots.changed(),
      onTrack: (track, reason) => {
        this.roster.changeTrack(track, { isUndecryptable: reason !== undefined });
        this.snapshots.changed();
        if (reason !== undefined) this.#undecryptable({ ...track, reason });
      },
      refreshVideo: () => this.session.post({ type: 'refreshVideo', targets: ['subscriber'] }),
    });
    this.snapshots.changed();
  }

  /** The keys decide: a server that calls an encrypted room a plain one gets nothing, and hands nothing over. */
  #assertEncryption(): void {
    const isRequired = this.presence.room?.encryption === 'required';
    if (isRequired === (this.encryption !== undefined)) {
      this.encryption?.align();
      return;
    }
    this.#waiting = [];
    throw isRequired
      ? new CallplaneError('encryption_required', 'The room is encrypted: pass `encryption`.')
      : new CallplaneError('room_not_encrypted', 'The room is not encrypted.');
  }

  #undecryptable(error: Omit<EncryptionError, 'participant'>): void {
    this.#emit('encryptionError', { ...error, participant: this.roster.participants.get(error.participantId) });
  }

  #stateChanged(): void {
    this.snapshots.changed();
    const { state } = this;
    if (state === this.#stateBefore) return;
    this.#stateBefore = state;
    this.#deliver(() => this.#emit('state', state));
  }

  #deliver(event: () => void): void {
    const deliver = () => {
      event();
      // Not every change of a participant or of the room has an event.
      this.snapshots.changed();
    };
    if (this.#waiting === undefined) deliver();
    else this.#waiting.push(deliver);
  }

  get #peers() {
    return [this.publisher, this.subscriber].flatMap(({ peer }) => peer ?? []);
  }

  #presentPeers(): Pick<ResumeRequest, 'peers' | 'offerId'> {
    const peers = (['publisher', 'subscriber'] as const).filter((target) => this[target].peer !== undefined);
    const { lastAnswered } = this.subscriber;
    return lastAnswered === undefined ? { peers } : { peers, offerId: lastAnswered };
  }

  #createConnection(): RTCPeerConnection {
    const { RTCPeerConnection: Connection } = this.platform;
    if (Connection === undefined)
      throw new CallplaneError('unsupported', 'WebRTC is not available in this environment.');
    return new Connection(this.#iceServers.configuration);
  }

  #welcomed(welcome: WelcomeMessage): void {
    const before = this.#welcome;
    this.#welcome = welcome;
    this.snapshots.changed();
    if (welcome.waiting) {
      this.presence.welcome(welcome);
      if (!before) this.#stateBefore = 'waiting';
      return;
    }
    this.#iceServers.welcome(welcome);
    this.#watching?.quality.welcomed();
    const { permissions } = welcome;
    if (!before || before.waiting) {
      this.permissions = permissions;
      this.#mediaState = welcome.media.state;
      this.presence.welcome(welcome);
      this.#watch().catch((error: unknown) => this.#emit('problem', asCallplaneError(error)));
      if (before) this.#deliver(() => this.#emit('admitted', undefined));
      return;
    }
    this.#deliver(() => {
      this.#setPermissions(permissions);
      this.#setMediaState(welcome.media.state);
      this.presence.welcome(welcome);
      this.encryption?.align();
      if (before.sessionId !== welcome.sessionId) this.#emit('moved', this.presence.room as Room);
      if (!welcome.media.continued) this.#reset(['publisher', 'subscriber']);
      for (const peer of this.#peers) peer.repair.reachable();
    });
  }

  #receive(message: ServerMessage): void {
    switch (message.type) {
      case 'offer':
        if (this.platform.RTCPeerConnection !== undefined) this.subscriber.offer(message);
        break;
      case 'subscribed':
        this.subscriber.subscribed(message);
        break;
      case 'subscriptionFailed':
        for (const { code, message: text, ...track } of message.tracks)
          this.#emit('trackSubscriptionFailed', { ...track, error: new CallplaneError(code, text) });
        break;
      case 'layersWanted':
        this.#localMedia?.layers.receive(message);
        break;
      case 'speakers':
        this.roster.speak(message.speakers);
        break;
      case 'mediaReset':
        this.#reset(message.targets);
        break;
      case 'mediaState':
        this.#setMediaState(message.state);
        break;
      case 'permissions':
        this.#setPermissions(message.permissions);
        break;
      case 'quality':
        this.roster.rate(message.participants);
        break;
      case 'message': {
        const { from, data, sentAt } = message;
        const participant = this.roster.participants.get(from);
        const isFromServer = from === 'server';
        const emit = (opened: unknown) =>
          this.#emit('message', { from, isFromServer, participant, data: opened, sentAt: new Date(sentAt) });
        if (isFromServer || this.encryption === undefined) emit(data);
        else {
          this.encryption.open(from, data, (opened, reason) => {
            if (reason === undefined) emit(opened);
            else this.#undecryptable({ participantId: from, reason });
          });
        }
        break;
      }
      case 'ask':
      case 'reply':
      case 'stream':
      case 'part':
      case 'credit': {
        const isAsk = message.type === 'ask' || message.type === 'reply';
        // If the code cannot be loaded, the other side gets no answer in time.
        (isAsk ? this.asks() : this.streams()).then(
          (data) => data.receive(message as never),
          () => undefined,
        );
        break;
      }
      default:
        this.presence.receive(message);
        this.encryption?.align();
    }
  }

  #reset(targets: PeerTarget[]): void {
    if (targets.includes('publisher')) this.publisher.reset();
    if (targets.includes('subscriber')) {
      this.subscriber.reset();
      void this.subscriptions.renew();
    }
  }

  async #watch(): Promise<void> {
    const { Watching } = await import('./watching/watching.js');
    if (this.session.state === 'closed') return;
    this.#watching = new Watching({
      session: this.session,
      isAdaptive: this.settings.adaptive,
      now: this.platform.now,
      roster: this.roster,
      subscriptions: this.subscriptions,
      connections: () => this.connections,
      onLevel: (level) => {
        const participantId = this.presence.own?.participantId ?? '';
        this.#emit('connectionQuality', { participant: undefined, participantId, level });
      },
      onTrackQuality: (track, quality) => this.roster.changeTrack(track, { quality }),
    });
    if (this.#watching.displays !== undefined) this.playback.watch(this.#watching.displays);
  }

  #setPermissions(permissions: readonly string[]): void {
    const before = this.permissions;
    this.permissions = permissions;
    if (permissions.length === before.length && permissions.every((one) => before.includes(one))) return;
    void this.#localMedia?.permissionsChanged();
    this.#emit('permissionsChanged', permissions);
  }

  #setMediaState(state: 'up' | 'down'): void {
    if (this.#mediaState === state) return;
    this.#mediaState = state;
    this.#emit('mediaState', state);
  }

  readonly #onPageHide = (): void => {
    this.session.post({ type: 'leave' });
  };

  #closed(close: CloseInfo): void {
    this.platform.page?.removeEventListener('pagehide', this.#onPageHide);
    this.#watching?.close();
    this.#localMedia?.close(errorOf(close));
    this.publisher.close();
    // Ends the tracks of the others, so that their elements do not stay on the page with the last picture.
    this.subscriber.reset();
    this.encryption?.close();
    this.#emit('closed', close);
  }
}
