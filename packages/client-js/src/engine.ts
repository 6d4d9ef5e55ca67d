import { asCallplaneError, CallplaneError } from './errors.js';
import type { CallEvents } from './events.js';
import { Inbox } from './inbox.js';
import type { LocalMedia } from './local/local-media.js';
import type { Settings } from './options.js';
import { Connections } from './peers/connections.js';
import { Publisher } from './peers/publisher.js';
import { Subscriber } from './peers/subscriber.js';
import type { Platform } from './platform.js';
import { Playback } from './playback/playback.js';
import type { PeerTarget, ServerMessage, WelcomeMessage } from './protocol.generated.js';
import type { OwnQuality } from './quality/own-quality.js';
import { applyQuality } from './quality/reported-quality.js';
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
  /** Undefined until it is loaded. */
  ownQuality: OwnQuality | undefined;
  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #emit: Emit;
  readonly #connections: Connections;
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
      lastAnswered: () => this.subscriber.lastAnswered,
      onClosed: (close) => this.#inbox.deliver(() => this.#closed(close)),
    }));
    this.playback = new Playback({ emit: (name) => emit(name, undefined) });
    this.roster = new Roster(
      (name, event) => emit(name, event as never),
      (track) => this.subscriptions.forget(track),
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
      onTracks: (tracks) => this.roster.receive(tracks),
      onError: (error) => emit('problem', error),
    });
    this.subscriptions = new Subscriptions(session);
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
    const { LocalMedia } = await import('./local/local-media.js');
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
      this.#setPermissions(permissions);
      this.#setMediaState(welcome.media.state);
      this.presence.welcome(welcome);
      if (!welcome.media.continued) this.#reset(['publisher', 'subscriber']);
      this.publisher.repair();
      this.subscriber.repair();
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
        for (const { code, message: text, ...track } of message.tracks) {
          this.#emit('trackSubscriptionFailed', { ...track, error: new CallplaneError(code, text) });
        }
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
      case 'message': {
        const { from, data, sentAt } = message;
        const participant = this.roster.participants.get(from);
        this.#emit('message', { from, participant, data, sentAt: new Date(sentAt) });
        break;
      }
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

  /** Loads the code that measures the line after the call has begun: it is not needed to begin. */
  async #measure(): Promise<void> {
    const { OwnQuality } = await import('./quality/own-quality.js');
    if (this.session.state === 'closed') return;
    this.ownQuality = new OwnQuality({
      session: this.session,
      connections: () => [this.publisher, this.subscriber].flatMap(({ connection }) => connection ?? []),
      onChange: (level) => {
        const { participantId } = this.welcome.participant;
        this.#emit('connectionQuality', { participant: undefined, participantId, level });
      },
    });
    this.ownQuality.welcomed();
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
    this.#localMedia?.close();
    this.publisher.close();
    this.subscriber.close();
    // Ends the tracks of the others, so that their elements do not stay on the page with the last picture.
    this.roster.receive([]);
    this.#emit('closed', close);
  }
}
