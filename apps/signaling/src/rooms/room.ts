import { isOpen } from '@callplane/core';
import type { RoomChanges, SessionState } from '@callplane/db';
import { DepartedMembers } from './departed-members.js';
import { changeEntries, changesText } from './changes.js';
import { Members, type Departure, type RoomMember } from './members.js';
import { OtherInstances } from './other-instances.js';
import type { RoomChange } from './room-change.js';
import { RoomLayers } from './room-layers.js';
import { RoomNews } from './room-news.js';
import { RoomQuality } from './room-quality.js';
import { NO_REPORTS, type RoomReports } from './room-reports.js';
import { isMoved, RoomState, type RoomInfo } from './room-state.js';
import { Roster, withParticipants, type RosterPage } from './roster.js';
import { RoomSpeakers } from './room-speakers.js';
import { Shown } from './shown.js';
import { TrackIndex } from './track-index.js';
import { TrackOrder } from './track-order.js';

export type { Departure, RoomMember } from './members.js';

/** A room in which this instance holds sessions. Keeps its state and sends the members what changes. */
export class Room {
  readonly roomId: string;
  readonly tracks = new TrackIndex();
  readonly speakers: RoomSpeakers;
  readonly layers: RoomLayers;
  /** Which tracks members receive first. */
  readonly order: TrackOrder;
  /** Sessions, and joins and resumptions in progress, that use the room. It is removed when none is left. */
  holders = 0;
  readonly #instanceId: string;
  readonly #members = new Members();
  readonly #departed: DepartedMembers;
  readonly #state = new RoomState();
  readonly #roster = new Roster(this.#state);
  readonly #shown = new Shown<RoomMember>(this.#state, this.tracks.publishers, (member, text) => member.sendText(text));
  readonly quality = new RoomQuality(this.#members, this.#state, this.#shown);
  readonly #news = new RoomNews(this.#members);
  /** The first page without the counts; null if the roster has changed since. */
  #firstPage: Pick<RosterPage, 'participants' | 'next'> | null = null;
  readonly #others: OtherInstances;
  /** The order's version at which the members were woken last. */
  #orderSeen = 0;

  constructor(
    roomId: string,
    instanceId: string,
    onDeparture: (member: RoomMember, departure: Departure) => void,
    reports: RoomReports = NO_REPORTS,
  ) {
    this.roomId = roomId;
    this.#instanceId = instanceId;
    this.#others = new OtherInstances(instanceId);
    this.#departed = new DepartedMembers(
      this.#members,
      (member) => this.departureOf(member),
      (member, departure) => {
        this.remove(member);
        onDeparture(member, departure);
      },
    );
    this.speakers = new RoomSpeakers(this.tracks, {
      members: () => this.members,
      memberCount: () => this.size,
      wake: () => this.#wakeMembers(),
      report: reports.speakers,
    });
    this.layers = new RoomLayers(this.tracks, this.#others, {
      isHeldElsewhere: (participantId) => this.isHeldElsewhere(participantId),
      report: reports.layers,
    });
    this.order = new TrackOrder(this.tracks, this.speakers.state);
  }

  get members(): Iterable<RoomMember> {
    return this.#members.all;
  }

  get size(): number {
    return this.#members.size;
  }

  /** The room without its sessions; null until it was read for the first time. */
  get state(): RoomInfo | null {
    return this.#state.info;
  }

  /** Whether the room is no longer open. */
  get isClosed(): boolean {
    const { info } = this.#state;
    return info !== null && !isOpen(info.room.status);
  }

  /** Whether the room has sessions that this instance does not hold. Possibly no instance holds them. */
  get isElsewhere(): boolean {
    return this.#others.areThere;
  }

  get counts(): { participantCount: number; viewerCount: number } {
    return this.#roster.counts;
  }

  /** The participant's session: everyone in a small room, the roster in a paged one. */
  sessionOf(participantId: string): SessionState | undefined {
    return this.#state.entryOf(participantId)?.state ?? undefined;
  }

  isInRoom(participantId: string): boolean {
    return this.#state.entryOf(participantId) !== undefined;
  }

  isHeldElsewhere(participantId: string): boolean {
    const entry = this.#state.entryOf(participantId);
    return entry !== undefined && entry.instanceId !== this.#instanceId;
  }

  membersOf(participantId: string): Iterable<RoomMember> {
    return this.#members.of(participantId);
  }

  /** Why, according to the last read, this instance no longer holds the session; null if it still does. */
  departureOf(member: RoomMember): Departure | null {
    if (this.isClosed) return 'room_ended';
    const entry = this.#state.entries.get(member.sessionId);
    if (entry === undefined) return 'missing';
    // A higher number on this same instance is a resumption in progress.
    return entry.connection > member.connectionNumber && entry.instanceId !== this.#instanceId ? 'moved' : null;
  }

  add(member: RoomMember): void {
    this.#members.add(member);
    this.#shown.add(member);
    this.layers.add(member);
  }

  remove(member: RoomMember): void {
    this.#members.remove(member);
    this.#shown.remove(member);
    this.layers.remove(member);
  }

  /** Ends timers. Call it when the room is removed. */
  close(): void {
    this.#shown.stop();
    this.#departed.close();
    this.#news.close();
    this.speakers.close();
    this.layers.close();
  }

  /** @param cursor the last session id of the previous page; null for the first one. */
  page(cursor: string | null, limit: number): RosterPage {
    return this.#roster.page(cursor, limit);
  }

  /** What a welcome shows: everyone in a small room; in a paged one the first page, publishers first. */
  firstPage(): RosterPage {
    const isPaged = this.#state.info?.rosterPaged === true;
    this.#firstPage ??= isPaged ? this.#roster.firstPage(this.#shown.firstPublishers()) : this.#roster.everyone();
    return { ...this.#firstPage, ...this.counts };
  }

  /**
   * Replaces the participants that a member of a paged room shows.
   * @param publishers whether it shows the first publishers, too.
   * @returns the present state of those in the roster, as JSON texts. Their later changes follow.
   */
  show(member: RoomMember, participantIds: readonly string[], publishers: boolean): string[] {
    return this.#shown.show(member, participantIds, publishers);
  }

  /**
   * Takes over a read or a notice: removes members whose sessions this instance lost, and sends the others the changes.
   * @param atStart the version that was known when the read began.
   */
  apply(read: RoomChanges | null, atStart: number | null = null): void {
    const applied = this.#state.apply(read, atStart);
    this.#afterChange(applied.changes);
    if (applied.after === null || !isOpen(applied.after.room.status)) {
      this.#shown.stop();
      this.#departed.endRoom();
      return;
    }
    this.#departed.apply(applied.changes, read?.after === null);
    this.#news.show(applied.after);
    const isPaged = applied.after.rosterPaged;
    if (isPaged && applied.before?.rosterPaged !== true) this.#becomePaged();
    else this.#send(applied.changes, isPaged);
    if (isMoved(applied)) this.mediaChanged();
    this.#wakeForTracks(applied.changes);
  }

  /** Takes over the state of a session that this instance has just written. A welcome then need not wait for a read. */
  learn(state: SessionState): void {
    const changes = this.#state.learn(state);
    this.#afterChange(changes);
    this.#send(changes, this.#state.info?.rosterPaged === true);
    this.#wakeForTracks(changes);
  }

  /** The room's media server went up or down. */
  mediaChanged(): void {
    for (const member of this.#members.all) member.onPlacement();
  }

  /** Sends everyone in the room the numbers of participants. */
  sendCounts(): void {
    this.#sendAll(JSON.stringify({ type: 'viewerCount', ...this.counts }));
  }

  #afterChange(changes: readonly RoomChange[]): void {
    this.#members.showOwn(changes);
    if (this.#roster.apply(changes) || this.#state.info?.rosterPaged !== true) this.#firstPage = null;
    this.quality.apply(changes);
    this.#others.apply(changes);
  }

  #send(changes: readonly RoomChange[], isPaged: boolean): void {
    if (changes.length === 0) return;
    if (isPaged) {
      this.#shown.noteSoon(changes);
      return;
    }
    const text = changesText(changeEntries(changes));
    if (text !== null) this.#sendAll(text);
  }

  #becomePaged(): void {
    this.#shown.stop();
    this.#firstPage = null;
    this.#shown.reset();
    const { participants, ...page } = this.firstPage();
    this.#sendAll(withParticipants({ type: 'rosterPaged', ...page }, participants));
  }

  #sendAll(text: string): void {
    for (const member of this.#members.all) member.sendText(text);
  }

  #wakeForTracks(changes: readonly RoomChange[]): void {
    const { muteVersion } = this.tracks;
    const areTracksNew = this.tracks.apply(changes);
    if (!areTracksNew && this.tracks.muteVersion === muteVersion) return;
    this.speakers.onTracks();
    this.layers.onTracks();
    this.#wakeMembers();
  }

  /** Wakes the members if what they receive may change. */
  #wakeMembers(): void {
    const { version } = this.order;
    if (version === this.#orderSeen) return;
    this.#orderSeen = version;
    for (const member of this.#members.all) if (member.wantsTracks) member.onTracks();
  }
}
