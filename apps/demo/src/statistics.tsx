import { useCall } from '@callplane/react';
import { useEffect, useState } from 'react';

const EVERY_MS = 1_000;

/** The fields of WebRTC's statistics that this page reads; browsers omit fields that they do not support. */
type Entry = Partial<RTCInboundRtpStreamStats & RTCOutboundRtpStreamStats & RTCIceCandidatePairStats>;

/** One line, updated every second: bit rates, resolution, loss, round trip. */
export function Statistics() {
  const call = useCall();
  const [line, setLine] = useState('');
  useEffect(() => {
    let before = { sent: 0, received: 0, at: performance.now() };
    const look = async () => {
      if (call === undefined) return;
      const { publisher, subscriber } = await call.getStats();
      const [out, into] = [entriesOf(publisher), entriesOf(subscriber)];
      const sent = sum(out, 'outbound-rtp');
      const received = sum(into, 'inbound-rtp');
      const at = performance.now();
      const rate = (bytes: number, earlier: number) =>
        `${Math.round(Math.max(0, ((bytes - earlier) * 8) / (at - before.at)))} kbit/s`;
      const parts = [
        `↑ ${rate(sent.bytes, before.sent)}${sent.resolution}`,
        `↓ ${rate(received.bytes, before.received)}${received.resolution}`,
        `${received.lost} packets lost${shareOf(received)}`,
        roundTrip([...out, ...into]),
      ];
      setLine(parts.filter((part) => part !== '').join('  ·  '));
      before = { sent: sent.bytes, received: received.bytes, at };
    };
    const timer = setInterval(() => void look().catch(() => undefined), EVERY_MS);
    return () => clearInterval(timer);
  }, [call]);
  return (
    <p className="statistics" aria-label="Statistics">
      {line}
    </p>
  );
}

function entriesOf(report: RTCStatsReport | undefined): Entry[] {
  return report === undefined ? [] : [...(report as unknown as Map<string, Entry>).values()];
}

/** Sums over all tracks of one direction. */
function sum(entries: Entry[], type: string) {
  const sums = { bytes: 0, packets: 0, lost: 0, resolution: '' };
  let largest = 0;
  for (const entry of entries) {
    if (entry.type !== type) continue;
    sums.bytes += entry.bytesSent ?? entry.bytesReceived ?? 0;
    sums.packets += entry.packetsSent ?? entry.packetsReceived ?? 0;
    sums.lost += Math.max(0, entry.packetsLost ?? 0);
    const { frameWidth = 0, frameHeight = 0, framesPerSecond = 0 } = entry;
    // A layer that nobody receives is not sent.
    if (framesPerSecond === 0 || frameWidth * frameHeight <= largest) continue;
    largest = frameWidth * frameHeight;
    sums.resolution = `, ${frameWidth}×${frameHeight}, ${Math.round(framesPerSecond)} fps`;
  }
  return sums;
}

function roundTrip(entries: Entry[]): string {
  const pair = entries.find(
    ({ type, nominated, state }) => type === 'candidate-pair' && nominated && state === 'succeeded',
  );
  if (pair?.currentRoundTripTime === undefined) return '';
  return `round trip ${Math.round(pair.currentRoundTripTime * 1000)} ms`;
}

function shareOf({ lost, packets }: { lost: number; packets: number }): string {
  if (lost === 0) return '';
  return ` (${((100 * lost) / (lost + packets)).toFixed(1)} %)`;
}
