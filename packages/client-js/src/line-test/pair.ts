import { pause } from '../wait.js';

export type Connect = (configuration: RTCConfiguration) => RTCPeerConnection;

/** @returns the value of `task`, or undefined if it takes longer */
export async function within<T>(milliseconds: number, task: Promise<T>): Promise<T | undefined> {
  const timeout = pause(milliseconds);
  try {
    return await Promise.race([task, timeout.over.then(() => undefined)]);
  } finally {
    timeout.end();
  }
}

/** An answer of a TURN server that refuses, such as 486 for a quota; without an answer the code is 701. */
const REFUSALS = { min: 300, max: 699 };

/** How a relay answered: with an address, with an error, or not at all. */
export type RelayAnswer = { is: 'relay' } | { is: 'refused'; code: number; text: string } | { is: 'silent' };

/** Allocates a relay and gives it up again. Each address of the machine may take one. */
export async function askRelay(connect: Connect, iceServers: RTCIceServer[], withinMs: number): Promise<RelayAnswer> {
  const peer = connect({ iceServers, iceTransportPolicy: 'relay' });
  let refusal: RelayAnswer = { is: 'silent' };
  try {
    const answered = new Promise<RelayAnswer>((resolve) => {
      peer.addEventListener('icecandidateerror', ({ errorCode: code, errorText: text }) => {
        if (code >= REFUSALS.min && code <= REFUSALS.max) refusal = { is: 'refused', code, text };
      });
      peer.addEventListener('icecandidate', ({ candidate }) => {
        if (candidate === null) resolve(refusal);
        else if (candidate.candidate.includes(' typ relay')) resolve({ is: 'relay' });
      });
    });
    peer.createDataChannel('');
    await peer.setLocalDescription(await peer.createOffer());
    return (await within(withinMs, answered)) ?? refusal;
  } finally {
    peer.close();
  }
}

export interface Pair {
  /** An end of the same data channel at each of the two connections. Messages may be lost, and overtake each other. */
  near: RTCDataChannel;
  far: RTCDataChannel;
  close(): void;
}

/** Connects two peer connections of this page. @returns undefined if no packet gets through in time */
export async function connectPair(
  connect: Connect,
  [nearSide, farSide]: readonly [near: RTCConfiguration, far: RTCConfiguration],
  withinMs: number,
): Promise<Pair | undefined> {
  const [nearPeer, farPeer] = [connect(nearSide), connect(farSide)];
  const close = () => {
    nearPeer.close();
    farPeer.close();
  };
  try {
    // Candidates may come before the other side has its description.
    const described = { near: settable(), far: settable() };
    const pass = (from: RTCPeerConnection, to: RTCPeerConnection, isReady: Promise<void>) =>
      from.addEventListener('icecandidate', ({ candidate }) => {
        if (candidate !== null) void isReady.then(() => to.addIceCandidate(candidate)).catch(() => undefined);
      });
    pass(nearPeer, farPeer, described.far.done);
    pass(farPeer, nearPeer, described.near.done);
    const near = nearPeer.createDataChannel('', { ordered: false, maxRetransmits: 0 });
    const open = new Promise<RTCDataChannel | undefined>((resolve) => {
      for (const peer of [nearPeer, farPeer])
        peer.addEventListener('connectionstatechange', () => peer.connectionState === 'failed' && resolve(undefined));
      farPeer.addEventListener('datachannel', ({ channel }) => {
        if (near.readyState === 'open') resolve(channel);
        else near.addEventListener('open', () => resolve(channel));
      });
    });
    const offer = await nearPeer.createOffer();
    await nearPeer.setLocalDescription(offer);
    await farPeer.setRemoteDescription(offer);
    described.far.set();
    const answer = await farPeer.createAnswer();
    await farPeer.setLocalDescription(answer);
    await nearPeer.setRemoteDescription(answer);
    described.near.set();
    const far = await within(withinMs, open);
    if (far !== undefined) return { near, far, close };
  } catch (error) {
    close();
    throw error;
  }
  close();
  return undefined;
}

function settable(): { done: Promise<void>; set: () => void } {
  let set = (): void => undefined;
  const done = new Promise<void>((resolve) => (set = resolve));
  return { done, set };
}
