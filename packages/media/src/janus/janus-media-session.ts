import { randomUUID } from 'node:crypto';
import type { AdoptedSubscriber, MediaPublisher, MediaSession, MediaSubscriber } from '../media-node.js';
import type { JanusDeadlines } from './janus-connection.js';
import { JanusHandle } from './janus-handle.js';
import { JanusPublisher } from './janus-publisher.js';
import { publishedStreams } from './janus-rooms.js';
import type { JanusSession } from './janus-session.js';
import { JanusSubscriber, type JanusSubscriberOptions } from './janus-subscriber.js';

/** The peers on one Janus session. */
export class JanusMediaSession implements MediaSession {
  readonly #session: JanusSession;
  readonly #deadlines: JanusDeadlines;

  constructor(session: JanusSession, deadlines: JanusDeadlines) {
    this.#session = session;
    this.#deadlines = deadlines;
  }

  get id(): number {
    return this.#session.id;
  }

  get isOpen(): boolean {
    return this.#session.isOpen;
  }

  attachPublisher(roomId: string, feedId: string): Promise<MediaPublisher> {
    return JanusPublisher.attach(this.#session, roomId, feedId, this.#deadlines.requestMs);
  }

  attachSubscriber(roomId: string, label: string): Promise<MediaSubscriber> {
    return JanusSubscriber.attach(this.#session, this.#subscriberOptions(roomId, label));
  }

  adoptPublisher(handleId: number, feedId: string): MediaPublisher {
    return JanusPublisher.adopt(this.#session, handleId, feedId, this.#deadlines.requestMs);
  }

  adoptSubscriber({ roomId, label, handleId, streams }: AdoptedSubscriber): MediaSubscriber {
    return JanusSubscriber.adopt(this.#session, this.#subscriberOptions(roomId, label), handleId, streams);
  }

  detach(handleId: number): Promise<void> {
    return JanusHandle.adopt(this.#session, handleId).detach();
  }

  destroy(): Promise<void> {
    return this.#session.destroy();
  }

  abandon(): void {
    this.#session.abandon();
  }

  #subscriberOptions(roomId: string, label: string): JanusSubscriberOptions {
    const published = async () => {
      const probe = await JanusHandle.attach(this.#session, `${label} looks`);
      try {
        return await publishedStreams(probe, roomId, randomUUID());
      } finally {
        await probe.detach();
      }
    };
    return { roomId, label, offerWithinMs: this.#deadlines.offerMs, published };
  }
}
