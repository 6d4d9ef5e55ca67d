import type { LineQuality } from './quality-level.js';

/** Counters of one peer connection. */
export interface LineSample {
  sent: number;
  /** Of the sent packets, as the receiver reports it. */
  sentLost: number;
  received: number;
  receivedLost: number;
  roundTripMs: number | undefined;
  jitterMs: number | undefined;
  isRelayed: boolean;
}

/** The fields of WebRTC's statistics that are read here. Browsers leave out those that they do not support. */
interface Entry {
  id: string;
  type: string;
  packetsSent?: number;
  packetsReceived?: number;
  packetsLost?: number;
  jitter?: number;
  roundTripTime?: number;
  currentRoundTripTime?: number;
  nominated?: boolean;
  state?: string;
  localCandidateId?: string;
  candidateType?: string;
}

export function sampleOf(report: RTCStatsReport): LineSample {
  const entries = [...(report as unknown as Map<string, Entry>).values()];
  const of = (type: string) => entries.filter((entry) => entry.type === type);
  const sum = (type: string, field: 'packetsSent' | 'packetsReceived' | 'packetsLost') =>
    of(type).reduce((total, { [field]: value = 0 }) => total + value, 0);
  const seconds = [...of('inbound-rtp'), ...of('remote-inbound-rtp')].flatMap(({ jitter }) => jitter ?? []);
  const pair = of('candidate-pair').find(({ nominated, state }) => nominated === true && state === 'succeeded');
  const local = entries.find(({ id }) => id === pair?.localCandidateId);
  return {
    sent: sum('outbound-rtp', 'packetsSent'),
    sentLost: sum('remote-inbound-rtp', 'packetsLost'),
    received: sum('inbound-rtp', 'packetsReceived'),
    receivedLost: sum('inbound-rtp', 'packetsLost'),
    roundTripMs: pair?.currentRoundTripTime === undefined ? undefined : pair.currentRoundTripTime * 1000,
    jitterMs: seconds.length === 0 ? undefined : Math.max(...seconds) * 1000,
    isRelayed: local?.candidateType === 'relay',
  };
}

/** What happened between two samples of the same connection. */
export function qualityBetween(before: LineSample, now: LineSample): LineQuality {
  const sending = percentOf(now.sentLost - before.sentLost, now.sent - before.sent);
  const receivedLost = now.receivedLost - before.receivedLost;
  const receiving = percentOf(receivedLost, now.received - before.received + receivedLost);
  return {
    lossPercent: Math.max(sending, receiving),
    roundTripMs: now.roundTripMs,
    jitterMs: now.jitterMs,
  };
}

function percentOf(lost: number, all: number): number {
  return all <= 0 ? 0 : Math.min(100, Math.max(0, (100 * lost) / all));
}
