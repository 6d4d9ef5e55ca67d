import { newRoom } from '@callplane/core';
import type { RoomChanges, SessionTuple } from '@callplane/db';

export interface FakeSession {
  sessionId: string;
  participantId: string;
  connection: number;
  instanceId: string;
  version: number;
  gone: 'left' | null;
  metadata: Record<string, unknown>;
  role: string;
  disconnectedAt: number | null;
  /** Ids of its tracks. */
  tracks: string[];
  feedId: string;
}

/** A room as PostgreSQL stores it: sessions that have ended stay. */
export class FakeRoom {
  version = 0;
  rosterPaged = false;
  status: 'active' | 'ending' = 'active';
  mediaNodeId: string | null = 'm1';
  readonly sessions = new Map<string, FakeSession>();

  /** Writes with a new version, like every writer. */
  write(change: (version: number) => void): void {
    this.version += 1;
    change(this.version);
  }

  set(session: Partial<FakeSession> & { sessionId: string }): void {
    this.write((version) => {
      const before = this.sessions.get(session.sessionId);
      const fresh = {
        participantId: session.sessionId.replace(/^s/, 'p'),
        connection: 1,
        instanceId: 'here',
        gone: null,
        metadata: {},
        role: 'participant',
        disconnectedAt: null,
        tracks: [],
        feedId: 'f1',
      };
      this.sessions.set(session.sessionId, { ...fresh, ...before, ...session, version });
    });
  }

  /** Like `readRoomChanges`. */
  read(after: number | null): RoomChanges {
    const since = after !== null && after <= this.version ? after : null;
    const chosen = [...this.sessions.values()].filter(({ gone, version }) =>
      since === null ? gone === null : version > since,
    );
    chosen.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
    return {
      tenant: { projectId: 'proj', environmentId: 'env' },
      room: newRoom({ id: 'r', name: 'Room', status: this.status, createdAt: new Date(0), startedAt: new Date(1) }),
      sequence: 0,
      mediaNodeId: this.mediaNodeId,
      furtherNodeIds: [],
      mediaGeneration: 1,
      version: this.version,
      rosterPaged: this.rosterPaged,
      after: since,
      sessions: chosen.map((session) => this.#tuple(session)),
    };
  }

  #tuple(session: FakeSession): SessionTuple {
    const { sessionId, participantId, connection, instanceId, version, gone, metadata, tracks, feedId } = session;
    const isViewer = tracks.length === 0 && Object.keys(metadata).length === 0;
    const short: SessionTuple = [sessionId, participantId, connection, instanceId, version, gone];
    if (gone !== null || (this.rosterPaged && isViewer)) return short;
    const tuples = tracks.map((id, at): [string, 'audio', 'microphone', boolean, string, string] => [
      ...([id, 'audio', 'microphone', false] as const),
      ...([feedId, String(at)] as const),
    ]);
    return [
      ...short,
      ...([1, ['room:join'], session.disconnectedAt, null, 'Ada', metadata, session.role, 0, 9, 1, null] as const),
      tuples.length === 0 ? null : tuples,
    ] as unknown as SessionTuple;
  }
}
