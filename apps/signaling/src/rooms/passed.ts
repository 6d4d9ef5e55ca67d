import { isAcceptedTime, PATH_ID_PATTERN, QUALITY_LEVELS } from '@callplane/core';
import { Asked, CreditGiven, PartReceived, ReceivedMessage, Replied, StreamOpened } from '@callplane/protocol';
import { InvalidPayloadError, parsePayload, payloadReader, type RoomMessage } from '@callplane/queue';
import { Type } from 'typebox';
import { LAYER_HIGHEST, LAYERS_REPORTED_MAX } from './layers.js';
import type { Room } from './room.js';
import { TALKING_MAX } from './speakers.js';

const MESSAGE = 'a message of a room';
const readFrame = payloadReader(
  MESSAGE,
  Type.Union([ReceivedMessage, Asked, Replied, StreamOpened, PartReceived, CreditGiven]),
);
/** Characters of a time. */
const TIME_CHARS_MAX = 32;

/**
 * A message that another instance passes on, serialised anew: its text may be no message, but something that clients
 * believe of the server.
 * @throws InvalidPayloadError
 */
export function messageOf(message: RoomMessage): RoomMessage {
  const frame = readFrame(parsePayload(MESSAGE, message.text));
  if (frame.from !== message.from) throw new InvalidPayloadError(MESSAGE, 'another sender');
  const { sentAt } = { sentAt: undefined, ...frame };
  if (sentAt !== undefined && (sentAt.length > TIME_CHARS_MAX || !isAcceptedTime(new Date(sentAt))))
    throw new InvalidPayloadError(MESSAGE, 'no time');
  return { ...message, text: JSON.stringify(frame) };
}

const TrackKey = Type.String({ maxLength: 300 });
const readTalking = payloadReader(
  'a report of speakers',
  Type.Array(Type.Tuple([TrackKey, Type.Integer({ minimum: 0, maximum: 127 })]), { maxItems: TALKING_MAX }),
);
const Layers = Type.Array(Type.Integer({ minimum: 0, maximum: LAYER_HIGHEST }), { maxItems: LAYER_HIGHEST + 1 });
const readLayers = payloadReader(
  'a report of layers',
  Type.Union([Type.Array(Type.Tuple([TrackKey, Layers]), { maxItems: LAYERS_REPORTED_MAX }), Type.Null()]),
);
const readQuality = payloadReader(
  'a report of quality',
  Type.Array(
    Type.Object({
      participantId: Type.String({ pattern: PATH_ID_PATTERN }),
      level: Type.Union(QUALITY_LEVELS.map((level) => Type.Literal(level))),
    }),
  ),
);

/**
 * Takes the report of another instance about its members. Ignores instances and participants that, by PostgreSQL, are
 * not in the room, and kinds of another release.
 * @throws InvalidPayloadError
 */
export function receiveReport(room: Room, kind: string, report: unknown, from: string): void {
  if (!room.sessions.isHeldBy(from)) return;
  if (kind === 'speakers') room.speakers.receive(from, readTalking(report));
  else if (kind === 'layers') room.layers.receive(from, readLayers(report));
  else if (kind === 'quality') {
    const entries = readQuality(report);
    room.quality.receive(entries.filter(({ participantId }) => room.sessions.entryOf(participantId) !== undefined));
  }
}
