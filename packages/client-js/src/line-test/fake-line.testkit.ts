import type { Platform } from '../platform.js';
import { transportOf, type Transport } from './transports.js';

export interface FakeLine {
  /** The ways to relays that are open. */
  open: readonly Transport[];
  /** Answers of a TURN server that refuses. */
  refuses?: { errorCode: number; errorText: string };
  /** Whether UDP without a relay is open. */
  udp: boolean;
  /** Whether relays reach each other. */
  loops?: boolean;
  /** Of the messages that cross a way over UDP: 3 loses every third one. */
  losesEvery?: { up?: number; down?: number };
  bytesPerSecond?: number;
  tripMs?: number;
}

/** Peer connections of one page over a line that the test makes up. */
export function fakeConnections(line: FakeLine) {
  const all: FakePeer[] = [];
  class FakePeer extends EventTarget {
    isClosed = false;
    connectionState = 'new';
    channel: FakeChannel | undefined;
    localDescription: object | null = null;
    constructor(readonly configuration: RTCConfiguration) {
      super();
      all.push(this);
    }
    get isRelay() {
      return this.configuration.iceTransportPolicy === 'relay';
    }
    loses(way: 'up' | 'down') {
      const urls = (this.configuration.iceServers ?? []).flatMap(({ urls: some }) => some);
      return urls.every((url) => transportOf(url) === 'udp') ? (line.losesEvery?.[way] ?? Infinity) : Infinity;
    }
    createDataChannel() {
      return (this.channel = new FakeChannel());
    }
    createOffer = () => Promise.resolve({ type: 'offer', from: this });
    createAnswer = () => Promise.resolve({ type: 'answer', from: this });
    setLocalDescription(description: object) {
      this.localDescription = description;
      const urls = (this.configuration.iceServers ?? []).flatMap(({ urls: some }) => some);
      const reachable = urls.some((url) => line.open.some((one) => one === transportOf(url)));
      const tell = (name: string, fields: object) => this.dispatchEvent(Object.assign(new Event(name), fields));
      const candidate = this.isRelay ? 'candidate:1 1 udp 1 192.0.2.1 42000 typ relay' : '… typ host';
      queueMicrotask(() => {
        if (line.refuses !== undefined) tell('icecandidateerror', line.refuses);
        else if (this.isRelay && !reachable) tell('icecandidateerror', { errorCode: 701, errorText: 'no answer' });
        else tell('icecandidate', { candidate: { candidate } });
        tell('icecandidate', { candidate: null });
      });
      return Promise.resolve();
    }
    /** The side that answers is the far one. */
    setRemoteDescription({ from, type }: { from: FakePeer; type: string }) {
      const gets = from.isRelay ? line.loops !== false : line.udp;
      if (type !== 'offer' || from.channel === undefined) return Promise.resolve();
      if (!gets) {
        this.connectionState = 'failed';
        setTimeout(() => this.dispatchEvent(new Event('connectionstatechange')));
        return Promise.resolve();
      }
      const [near, channel] = [from.channel, new FakeChannel()];
      setTimeout(() => {
        near.readyState = channel.readyState = 'open';
        near.carry(channel, line, [from.loses('up'), this.loses('down')]);
        channel.carry(near, line, [this.loses('up'), from.loses('down')]);
        this.dispatchEvent(Object.assign(new Event('datachannel'), { channel }));
        near.dispatchEvent(new Event('open'));
      });
      return Promise.resolve();
    }
    addIceCandidate = () => Promise.resolve();
    close() {
      this.isClosed = true;
    }
  }
  return { all, RTCPeerConnection: FakePeer as unknown as Platform['RTCPeerConnection'] };
}

class FakeChannel extends EventTarget {
  readyState = 'connecting';
  bufferedAmount = 0;
  onmessage: ((event: { data: ArrayBuffer }) => void) | undefined;
  send = (_: ArrayBuffer | Uint8Array<ArrayBuffer>): void => undefined;

  carry(far: FakeChannel, { bytesPerSecond = Infinity, tripMs = 0 }: FakeLine, loses: readonly number[]): void {
    let count = 0;
    let freeAtMs = 0;
    this.send = (message) => {
      const data = message instanceof ArrayBuffer ? message : message.slice().buffer;
      count += 1;
      this.bufferedAmount += data.byteLength;
      freeAtMs = Math.max(freeAtMs, performance.now()) + (data.byteLength * 1000) / bytesPerSecond;
      const isLost = loses.some((every) => count % every === 0);
      setTimeout(() => {
        this.bufferedAmount -= data.byteLength;
        if (!isLost) setTimeout(() => far.onmessage?.({ data }), tripMs);
      }, freeAtMs - performance.now());
    };
  }
}
