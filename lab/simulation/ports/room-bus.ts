import type { JobProducer, RoomBus, RoomMessage } from '@callplane/queue';
import type { SimRedis } from './redis.js';

interface Payload {
  type: string;
  from?: string;
  message: RoomMessage;
  kind?: string;
  report?: unknown;
  range: { version: number | null };
}

/** The room bus of the process that runs, as packages/queue has it, on the model of Redis. */
export function simRoomBus(redis: SimRedis, producer: JobProducer, instanceId: string): RoomBus {
  const ends = new Map<string, () => void>();
  const channelOf = (roomId: string): string => `callplane:room:${roomId}`;
  const publish = (roomId: string, payload: object): Promise<boolean> =>
    producer.redis.publish(channelOf(roomId), JSON.stringify({ ...payload, from: instanceId })).then(
      () => true,
      () => false,
    );
  const bus: Omit<RoomBus, 'close'> = {
    get isListening() {
      return !redis.isAway;
    },
    refusal: null,
    subscribe(roomId, handlers) {
      ends.get(roomId)?.();
      const receive = (text: string): void => {
        const { from = '', type, range, message, kind = '', report } = JSON.parse(text) as Payload;
        if (from === instanceId) return;
        if (type === 'message') handlers.message(message);
        else if (type === 'report') handlers.report?.(kind, report, from);
        else handlers.changed(range.version);
      };
      ends.set(roomId, redis.subscribe(channelOf(roomId), receive));
    },
    unsubscribe(roomId) {
      ends.get(roomId)?.();
      ends.delete(roomId);
    },
    publishChanged: (roomId, version) => publish(roomId, { type: 'changed', range: { version } }),
    publishMessage: (roomId, message) => publish(roomId, { type: 'message', message }),
    publishReport: (roomId, kind, report) => publish(roomId, { type: 'report', kind, report }),
  };
  return bus as unknown as RoomBus;
}
