import { encodeV1 } from './encode-v1.js';
import { changesText, encodeV2 } from './encode-v2.js';
import type { RoomMember } from './members.js';
import type { RoomChange } from './room-change.js';
import type { RosterPage } from './roster.js';

/** Sends changes to members that show everyone. Each text is serialised once. */
export function sendChanges(members: Iterable<RoomMember>, changes: readonly RoomChange[]): void {
  const v1 = encodeV1(changes).map(({ about, message }) => ({ about, text: JSON.stringify(message) }));
  const v2 = changesText(encodeV2(changes));
  for (const member of members) {
    if (member.protocol === 2) {
      if (v2 !== null) member.sendText(v2);
    } else for (const { about, text } of v1) if (member.participantId !== about) member.sendText(text);
  }
}

/** Replaces the roster of members whose room has become paged, which version 1 cannot show. */
export function sendRosterPaged(members: Iterable<RoomMember>, { participants, ...more }: RosterPage): void {
  const text = `{"type":"rosterPaged","participants":[${participants.join(',')}],${JSON.stringify(more).slice(1)}`;
  for (const member of members) {
    if (member.protocol === 2) member.sendText(text);
    else member.onRosterPaged();
  }
}
