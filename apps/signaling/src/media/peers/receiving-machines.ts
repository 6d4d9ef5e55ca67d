import { Machine } from '../../states/machine.js';
import type { MediaHost } from '../media-host.js';
import { RECEIVER_STATES, type ReceiverAction, type ReceiverEvent, type ReceiverStateName } from './receiver-states.js';
import {
  SUBSCRIBER_STATES,
  type SubscriberAction,
  type SubscriberEvent,
  type SubscriberStateName,
} from './subscriber-states.js';

export interface ReceivingMachines {
  /** The connection on the media server. */
  peer: Machine<SubscriberStateName, SubscriberEvent, SubscriberAction>;
  /** The client's side. */
  receiver: Machine<ReceiverStateName, ReceiverEvent, ReceiverAction>;
}

/** The two state machines of a receiving connection. Defects are logged. */
export function receivingMachines(
  { sessionId, logger }: Pick<MediaHost, 'sessionId' | 'logger'>,
  run: { peer: (action: SubscriberAction) => void; receiver: (action: ReceiverAction) => void },
): ReceivingMachines {
  const onUnexpected = (state: string, event: string) =>
    logger.error('event impossible in this state', { sessionId, machine: 'subscriber', state, event });
  return {
    peer: new Machine<SubscriberStateName, SubscriberEvent, SubscriberAction>(SUBSCRIBER_STATES, 'idle', {
      run: run.peer,
      onUnexpected,
    }),
    receiver: new Machine<ReceiverStateName, ReceiverEvent, ReceiverAction>(RECEIVER_STATES, 'paused', {
      run: run.receiver,
      onUnexpected,
    }),
  };
}
