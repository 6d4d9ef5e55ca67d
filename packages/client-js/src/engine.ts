import { Adaptation } from './adaptation/adaptation.js';
import { asCallplaneError, CallplaneError } from './errors.js';
import { receivedMessage, subscriptionFailures, type CallEvents } from './events.js';
import { Inbox } from './inbox.js';
import type { LocalMedia } from './local/local-media.js';
import type { Settings } from './options.js';
import { Connections } from './peers/connections.js';
import { presentPeers } from './peers/present-peers.js';
import { Publisher } from './peers/publisher.js';
import { Subscriber } from './peers/subscriber.js';
import type { Platform } from './platform.js';
import { LazyDisplays } from './playback/lazy-displays.js';
import { Playback } from './playback/playback.js';
import type { PeerTarget, ServerMessage, WelcomeMessage } from './protocol.generated.js';
import { loadOwnQuality } from './quality/load-own-quality.js';
import type { OwnQuality } from './quality/own-quality.js';
import { applyQuality } from './quality/reported-quality.js';
import type { RemoteTrack } from './remote/participant.js';
import { Presence } from './remote/presence.js';
import { Roster } from './remote/roster.js';
import { Session, type CloseInfo } from './signaling/session.js';
import { Subscriptions } from './subscriptions.js';

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
  readonly adaptation: Adaptation;
  /** Undefined until it is loaded. */
  ownQuality: OwnQuality | undefined;
  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #emit: Emit;
  readonly #connections: Connections;
  readonly #displays: LazyDisplays;
  #welcome: WelcomeMessage | undefined;
  #localMedia: LocalMedia | undefined;
  #permissions: readonly string[] = [];
  #mediaState: 'up' | 'down' = 'down';
  readonly #inbox = new Inbox();

  constructor(platform: Platform, settings: Settings, emit: Emit) {
    this.#platform = platform;
    this.#settings = settings;
    this.#emit = emit;
    const session = (this.session = new Session(platform, settings, {
      onState: (state) => this.#inbox.deliver(() => emit('state', state)),
      onWelcome: (welcome) => this.#welcomed(welcome),
      onMessage: (message) => this.#inbox.deliver(() => this.#receive(message)),
      presentPeers: () => presentPeers(this.publisher, this.subscriber),
      onClosed: (close) => this.#inbox.deliver(() => this.#closed(close)),
    }));
    this.#displays = new LazyDisplays((track, display) => this.adaptation.display(track, display));
    this.playback = new Playback({
      emit: (name) => emit(name, undefined),
      ...(settings.adaptive ? { observe: (track, element) => this.#displays.observe(track, element) } : {}),
    });
    this.roster = new Roster(
      (name, event) => {
        if (name === 'trackPublished') this.adaptation.published(event as RemoteTrack);
        emit(name, event as never);
      },
      (track, why) => {
        if (why === 'unpublished') this.subscriptions.forget(track);
        if (why === 'left') this.subscriptions.forgetAdaptation(track);
        if (why === 'hidden') this.adaptation.hide(track);
        else this.adaptation.forget(track);
      },
      this.playback,
    );
    this.presence = new Presence({
      session,
      roster: this.roster,
      isPublishing: () => this.publisher.tracks.size > 0,
      onOwnTracks: (tracks) => this.#localMedia?.align(tracks),
      emit: (name, event) => emit(name, event as never),
    });
    this.#connections = new Connections({
      platform,
      settings,
      session,
      onChange: (configuration) => {
        for (const peer of [this.publisher, this.subscriber]) peer.configure(configuration);
      },
      onNetworkChange: () => {
        for (const peer of [this.publisher, this.subscriber]) peer.networkChanged();
      },
    });
    const createConnection = () => this.#connections.open();
    this.publisher = new Publisher({
      session,
      createConnection,
      random: platform.random,
      onLost: (tracks, error) => {
        for (const track of tracks) this.#localMedia?.forget(track);
        emit('problem', error);
      },
    });
    this.subscriber = new Subscriber({
      session,
      createConnection,
      random: platform.random,
      onTracks: (tracks) => this.roster.receive(tracks),
      onError: (error) => emit('problem', error),
    });
    this.subscriptions = new Subscriptions(session, settings.autoSubscribe);
    this.adaptation = new Adaptation({
      isEnabled: settings.adaptive,
      now: platform.now,
      roster: this.roster,
      subscriptions: this.subscriptions,
      connection: () => this.subscriber.connection,
      onChange: (change) => emit('trackQuality', change),
    });
  }

  /** The latest welcome. @throws CallplaneError `unreachable` before the first one. */
  get welcome(): WelcomeMessage {
    if (this.#welcome === undefined) throw new CallplaneError('unreachable', 'The call is not connected yet.');
    return this.#welcome;
  }

  get permissions(): readonly string[] {
    return this.#permissions;
  }

  get mediaState(): 'up' | 'down' {
    return this.#mediaState;
  }

  /** Loads the code that publishes when it is first used: those who only watch do not need it. */
  async localMedia(): Promise<LocalMedia> {
    // A device that opens after the call would only be closed again.
    this.session.assertOpen();
    if (this.#localMedia !== undefined) return this.#localMedia;
    const { LocalMedia } = await import('./local/local-media.js');
    this.session.assertOpen();
    return (this.#localMedia ??= new LocalMedia({
      platform: this.#platform,
      publisher: this.publisher,
      permissions: () => this.#permissions,
      emit: this.#emit,
    }));
  }

  async join(): Promise<void> {
    await this.session.join();
    if (this.#settings.leaveOnPageHide) this.#platform.page?.addEventListener('pagehide', this.#onPageHide);
    this.#inbox.open();
  }

  #welcomed(welcome: WelcomeMessage): void {
    const isFirst = this.#welcome === undefined;
    this.#welcome = welcome;
    this.#connections.welcomed(welcome);
    this.ownQuality?.welcomed();
    const { permissions } = welcome;
    if (isFirst) {
      this.#permissions = permissions;
      this.#mediaState = welcome.media.state;
      this.presence.welcome(welcome);
      this.#measure().catch((error: unknown) => this.#emit('problem', asCallplaneError(error)));
      return;
    }
    this.#inbox.deliver(() => {
      this.#localMedia?.layersUnknown();
      this.#setPermissions(permissions);
      this.#setMediaState(welcome.media.state);
      this.presence.welcome(welcome);
      if (!welcome.media.continued) this.#reset(['publisher', 'subscriber']);
      this.publisher.reachable();
      this.subscriber.reachable();
    });
  }

  #receive(message: ServerMessage): void {
    switch (message.type) {
      case 'offer':
        if (this.#platform.RTCPeerConnection !== undefined) this.subscriber.offer(message);
        break;
      case 'subscribed':
        this.subscriber.subscribed(message);
        break;
      case 'subscriptionFailed':
        for (const failure of subscriptionFailures(message)) this.#emit('trackSubscriptionFailed', failure);
        break;
      case 'layersWanted':
        this.#localMedia?.layersWanted(message);
        break;
      case 'speakers':
        this.roster.speak(message.speakers);
        break;
      case 'candidate':
        (message.target === 'publisher' ? this.publisher : this.subscriber).addCandidate(message.candidate);
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
      case 'slowLink':
        if (message.target === 'subscriber') this.adaptation.slowLink();
        break;
      case 'roomUpdated':
      case 'changes':
      case 'viewerCount':
      case 'rosterPaged':
      case 'shown':
        this.presence.receive(message);
        break;
      case 'quality':
        applyQuality(this.roster.participants, message.participants, (change) =>
          this.#emit('connectionQuality', change),
        );
        break;
      case 'message':
        this.#emit('message', receivedMessage(message, this.roster.participants));
        break;
      default:
      // The session has already matched answers to their requests. Other types are of a later protocol version.
    }
  }

  #reset(targets: PeerTarget[]): void {
    if (targets.includes('publisher')) this.publisher.reset();
    if (targets.includes('subscriber')) {
      this.subscriber.reset();
      void this.subscriptions.renew();
    }
  }

  async #measure(): Promise<void> {
    this.ownQuality = await loadOwnQuality({
      session: this.session,
      connections: () => [this.publisher, this.subscriber].flatMap(({ connection }) => connection ?? []),
      onChange: (level) => {
        const { participantId } = this.welcome.participant;
        this.#emit('connectionQuality', { participant: undefined, participantId, level });
      },
    });
    // Nothing is loaded for a call that is over.
    if (this.ownQuality !== undefined) await this.adaptation.start();
  }

  #setPermissions(permissions: readonly string[]): void {
    const before = this.#permissions;
    this.#permissions = permissions;
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
    this.#platform.page?.removeEventListener('pagehide', this.#onPageHide);
    this.#connections.close();
    this.ownQuality?.close();
    this.adaptation.close();
    this.#displays.close();
    this.#localMedia?.close();
    this.publisher.close();
    this.subscriber.close();
    // Ends the tracks of the others, so that their elements do not stay on the page with the last picture.
    this.roster.receive([]);
    this.#emit('closed', close);
  }
}
