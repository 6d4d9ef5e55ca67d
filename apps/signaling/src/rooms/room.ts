import { isOpen, presentRoom } from '@callplane/core';
import type { RoomChanges, SessionState } from '@callplane/db';
import { changeEntries, changesText, type Departure, type RoomChange, type RoomMember, subjectOf } from './changes.js';
import { RoomLayers } from './layers.js';
import { RoomQuality, Paced, type SendReport } from './quality.js';
import { Shown } from './shown.js';
import { RoomSpeakers } from './speakers.js';
import { RoomState, Roster, withParticipants, type RoomInfo, type RosterPage } from './state.js';
import { TrackIndex, TrackOrder } from './tracks.js';

/** Members that depart at once. A large room that ends would otherwise block the process. */
const DEPARTURES_MAX = 500;
const DEPARTURES_EVERY_MS = 50;
const UPDATES_EVERY_MS = 1000;

/** A room in which this instance holds sessions. Keeps its state and sends the members the changes. */
export class Room {
  /** All live sessions, also of other instances. */
  readonly sessions: RoomState;
  readonly tracks: TrackIndex;
  readonly roster: Roster;
  readonly shown: Shown;
  readonly speakers: RoomSpeakers;
  readonly layers: RoomLayers;
  readonly quality: RoomQuality;
  readonly order: TrackOrder;
  /** Sessions, and joins and resumptions in progress, that use the room. It is removed when none is left. */
  holders = 0;
  completeAtMs = performance.now();
  readonly #members = new Map<string, RoomMember>();
  /** Sessions in the lobby. They become members when their welcome follows. */
  readonly #lobby = new Map<string, RoomMember>();
  #departures: NodeJS.Timeout | undefined;
  /** The content of the room that the members know; null until the room was read. */
  #toldInfo: string | null = null;
  readonly #updates = new Paced(
    () => UPDATES_EVERY_MS,
    () => this.#sendUpdate(),
  );
  #orderSeen = 0;
  #countsSent = '';

  constructor(
    readonly roomId: string,
    private readonly instanceId: string,
    private readonly onDeparture: (member: RoomMember, departure: Departure) => void,
    report: SendReport = () => undefined,
  ) {
    const state = (this.sessions = new RoomState(instanceId));
    this.tracks = new TrackIndex(state);
    this.roster = new Roster(state);
    this.shown = new Shown(state, this.tracks.publishers);
    this.quality = new RoomQuality(this, report);
    this.speakers = new RoomSpeakers(this, report);
    this.layers = new RoomLayers(this.tracks, state, report);
    this.order = new TrackOrder(this.tracks, this.speakers.state);
  }

  /** A copy, so that members may be removed meanwhile. */
  get members(): RoomMember[] {
    return [...this.#members.values()];
  }

  get size(): number {
    return this.#members.size;
  }

  /** The room without its sessions; null until it was read for the first time. */
  get state(): RoomInfo | null {
    return this.sessions.info;
  }

  get isClosed(): boolean {
    return this.state !== null && !isOpen(this.state.room.status);
  }

  /** The participant's session: everyone in a small room, the roster in a paged one. */
  sessionOf(participantId: string): SessionState | undefined {
    return this.sessions.entryOf(participantId)?.state ?? undefined;
  }

  memberOf(participantId: string): RoomMember | undefined {
    return this.#members.get(this.sessions.entryOf(participantId)?.sessionId ?? '');
  }

  /** Why, according to the last read, this instance no longer holds the session; null if it still does. */
  departureOf(member: RoomMember): Departure | null {
    if (this.isClosed) return 'room_ended';
    const { entries, waiting } = this.sessions;
    const entry = entries.get(member.sessionId) ?? waiting.get(member.sessionId);
    if (entry === undefined) return 'missing';
    // A higher number on this same instance is a resumption in progress.
    return entry.connection > member.connectionNumber && entry.instanceId !== this.instanceId ? 'elsewhere' : null;
  }

  isWaiting({ sessionId }: RoomMember): boolean {
    return this.sessions.waiting.has(sessionId);
  }

  /** Holds a session in the lobby: it gets nothing of the room but its end, and its admission. */
  hold(member: RoomMember): void {
    this.#lobby.set(member.sessionId, member);
  }

  add(member: RoomMember): void {
    this.#lobby.delete(member.sessionId);
    this.#members.set(member.sessionId, member);
    this.shown.add(member);
    this.layers.add(member);
  }

  remove(member: RoomMember): void {
    for (const held of [this.#members, this.#lobby]) {
      if (held.get(member.sessionId) === member) held.delete(member.sessionId);
    }
    this.shown.remove(member);
    this.layers.remove(member);
  }

  close(): void {
    clearTimeout(this.#departures);
    this.#updates.close();
    this.shown.stop();
    this.speakers.close();
    this.layers.close();
  }

  /** The participants of a welcome: everyone in a small room; in a paged one the first page, publishers first. */
  firstPage(): RosterPage {
    return this.roster.firstPage(() => this.shown.firstPublishers());
  }

  /**
   * Takes over a read or a notice: removes members whose sessions this instance lost, and sends the others the changes.
   * @param atStart the version that was known when the read began.
   */
  apply(read: RoomChanges | null, atStart: number | null = null): void {
    const { after, before, changes } = this.sessions.apply(read, atStart);
    this.#afterChange(changes);
    if (after === null || !isOpen(after.room.status)) {
      this.shown.stop();
      this.#endForAll();
      return;
    }
    this.#dropDeparted(changes, read?.after === null);
    this.#toldInfo ??= contentOf(after);
    if (this.#toldInfo !== contentOf(after)) this.#updates.soon();
    if (after.rosterPaged && before?.rosterPaged !== true) this.#becomePaged();
    else this.#send(changes, after.rosterPaged);
    if (placementOf(before) !== placementOf(after)) this.mediaChanged();
    this.#wakeForTracks(changes);
    this.#visitLobby();
  }

  mediaChanged(): void {
    for (const member of this.members) member.media.onPlacement();
  }

  /** The periodic work: quality, speakers and layers, and in a paged room the numbers of participants. */
  eachSecond(): void {
    this.quality.eachSecond();
    this.speakers.eachSecond();
    this.layers.eachSecond();
    if (this.state?.rosterPaged !== true) return;
    const text = JSON.stringify({ type: 'viewerCount', ...this.roster.counts });
    if (text !== this.#countsSent) this.#sendAll(text);
    this.#countsSent = text;
  }

  #afterChange(changes: readonly RoomChange[]): void {
    for (const { after } of changes) if (after?.state) this.#members.get(after.sessionId)?.onOwn(after.state);
    this.roster.apply(changes);
    this.quality.apply(changes);
  }

  /** @param isComplete whether the changes come from a complete read, which does not say why a session is missing */
  #dropDeparted(changes: readonly RoomChange[], isComplete: boolean): void {
    if (isComplete) for (const member of this.members) this.#depart(member, this.departureOf(member));
    else {
      for (const change of changes) {
        const member = this.#members.get(subjectOf(change).sessionId);
        if (member !== undefined) this.#depart(member, change.gone ?? this.departureOf(member));
      }
    }
  }

  #depart(member: RoomMember, departure: Departure | null): void {
    if (departure === null) return;
    this.remove(member);
    this.onDeparture(member, departure);
  }

  /** Last, so that the members know of an admitted session before its welcome, as of one that joins. */
  #visitLobby(): void {
    for (const member of [...this.#lobby.values()]) {
      const departure = this.departureOf(member);
      if (departure !== null) this.#depart(member, departure);
      else if (!this.isWaiting(member)) member.onAdmitted();
    }
  }

  #endForAll(): void {
    clearTimeout(this.#departures);
    const held = [...this.#members.values(), ...this.#lobby.values()];
    for (const member of held.slice(0, DEPARTURES_MAX)) this.#depart(member, 'room_ended');
    if (held.length > DEPARTURES_MAX) this.#departures = setTimeout(() => this.#endForAll(), DEPARTURES_EVERY_MS);
  }

  #send(changes: readonly RoomChange[], isPaged: boolean): void {
    if (changes.length === 0) return;
    const text = isPaged ? null : changesText(changeEntries(changes));
    if (isPaged) this.shown.noteSoon(changes);
    else if (text !== null) this.#sendAll(text);
  }

  #becomePaged(): void {
    this.shown.reset();
    const { participants, ...page } = this.firstPage();
    this.#sendAll(withParticipants({ type: 'rosterPaged', ...page }, participants));
  }

  #sendUpdate(): void {
    if (this.state === null || this.#toldInfo === contentOf(this.state)) return;
    this.#toldInfo = contentOf(this.state);
    this.#sendAll(JSON.stringify({ type: 'roomUpdated', room: presentRoom(this.state.tenant, this.state.room) }));
  }

  #sendAll(text: string): void {
    for (const member of this.members) member.sendText(text);
  }

  #wakeForTracks(changes: readonly RoomChange[]): void {
    const { muteVersion, version } = this.tracks;
    this.tracks.apply(changes);
    if (this.tracks.version === version && this.tracks.muteVersion === muteVersion) return;
    this.speakers.onTracks();
    this.layers.onTracks();
    this.wakeMembers();
  }

  /** Wakes the members if their received tracks may change. */
  wakeMembers(): void {
    const { version } = this.order;
    if (version === this.#orderSeen) return;
    this.#orderSeen = version;
    for (const member of this.members) if (member.media.followsTracks) member.media.onTracks();
  }
}

/** The media servers of the room, as a text. */
function placementOf(info: RoomInfo | null): string | null {
  return info && [info.mediaNodeId, info.mediaGeneration, ...info.furtherNodeIds].join(' ');
}

/** The fields that change while a room is open. Clients see the status by other means. */
function contentOf({ room }: RoomInfo): string {
  return JSON.stringify([room.name, room.metadata, room.maxParticipants, room.recordingSince]);
}
