import { OPERATION_KINDS, OPERATION_STATUSES } from '@callplane/core';
import { Type } from 'typebox';
import { oneOf, orNull, timestamp } from '../http/schemas.js';

export const OperationSchema = Type.Object(
  {
    id: Type.String({ description: 'Operation identifier, `op_…`.' }),
    kind: oneOf(OPERATION_KINDS),
    status: oneOf(OPERATION_STATUSES, '`pending` until the operation is `completed` or `failed`.'),
    attempts: Type.Integer({ description: 'Attempts of all runs. An attempt counts when it begins.' }),
    lastError: orNull(
      Type.Object(
        { code: Type.String(), message: Type.String() },
        { description: 'Why the last attempt failed.', additionalProperties: false },
      ),
    ),
    completedAt: orNull(timestamp('When the clean-up was complete.')),
  },
  { title: 'RuntimeOperation', description: 'A durable clean-up that can be polled.', additionalProperties: false },
);
