import { describe, expect, test } from '@jest/globals';
import { processorSeconds, ratesBetween, receivedOf, spreadOf } from './figures.js';

test('a spread has the median, the value that 95 % reach, and the worst one', () => {
  const values = Array.from({ length: 100 }, (_, n) => 100 - n);
  expect(spreadOf(values)).toEqual({ count: 100, median: 50, p95: 95, worst: 100 });
  expect(spreadOf(values, 'lowest')).toEqual({ count: 100, median: 51, p95: 6, worst: 1 });
  expect(spreadOf([7])).toEqual({ count: 1, median: 7, p95: 7, worst: 7 });
  expect(spreadOf([])).toEqual({ count: 0, median: null, p95: null, worst: null });
});

describe('the rates of a viewer', () => {
  const audio = { type: 'inbound-rtp', kind: 'audio', bytesReceived: 1000, packetsReceived: 50, packetsLost: 0 };
  const video = {
    type: 'inbound-rtp',
    kind: 'video',
    bytesReceived: 9000,
    packetsReceived: 50,
    packetsLost: 3,
    framesDecoded: 30,
  };

  test('come from all streams that it receives', () => {
    const before = receivedOf([audio, video, { type: 'candidate-pair', bytesReceived: 5 }]);
    expect(before).toEqual({ bytes: 10_000, packets: 100, lost: 3, frames: 30, pictures: 1 });
    const after = { bytes: 30_000, packets: 298, lost: 5, frames: 60, pictures: 2 };
    expect(ratesBetween(before, after, 2)).toEqual({ kbps: 80, lossPercent: 1, framesPerSecond: 7.5 });
  });

  test('are zero if nothing has arrived, or its connection began anew', () => {
    const before = receivedOf([video]);
    expect(ratesBetween(before, receivedOf([]), 2)).toEqual({ kbps: 0, lossPercent: 0, framesPerSecond: null });
    expect(receivedOf([{ type: 'inbound-rtp', packetsLost: -2 }]).lost).toBe(0);
  });
});

test('the processor time is read from a page of Prometheus', () => {
  const page = '# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total{app="signaling"} 12.5\nother 1\n';
  expect(processorSeconds(page)).toEqual({ app: 'signaling', seconds: 12.5 });
  expect(processorSeconds('process_cpu_seconds_total 3e-2\n')).toEqual({ app: 'process', seconds: 0.03 });
  expect(processorSeconds('<html>nothing</html>')).toBeNull();
});
