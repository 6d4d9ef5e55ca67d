import { MESSAGE_RECIPIENTS_MAX, PATH_ID_PATTERN } from '@callplane/core';
import { Type } from 'typebox';
import { strictObject, timestamp } from '../http/schemas.js';

export const SendMessageBody = strictObject(
  {
    data: Type.Unknown({ description: 'Any JSON value, at most 16 KiB.' }),
    to: Type.Optional(
      Type.Array(Type.String({ pattern: PATH_ID_PATTERN }), {
        minItems: 1,
        maxItems: MESSAGE_RECIPIENTS_MAX,
        uniqueItems: true,
        description: 'Participants that get the message. Everyone in the room by default.',
      }),
    ),
  },
  { title: 'SendMessage' },
);

export const SentMessageSchema = Type.Object(
  {
    sentAt: timestamp('The `sentAt` of the message.'),
    recipients: Type.Integer({ description: 'Number of participants in the room that the message is for.' }),
  },
  { title: 'SentMessage', additionalProperties: false },
);
