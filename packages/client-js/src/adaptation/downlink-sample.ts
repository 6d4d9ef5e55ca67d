/** Counters of one received video stream. */
interface VideoCounters {
  /** With RTP headers. */
  bytes: number;
  framesDecoded: number;
  width: number;
  height: number;
}

/** Counters of one received stream. */
export interface StreamCounters {
  packets: number;
  lost: number;
  /** With RTP headers. */
  bytes: number;
  /** The same for audio, 0 for video; as are all further ones. */
  audioBytes: number;
  /** Samples that the audio decoder invented, of all that it played. */
  concealed: number;
  samples: number;
  /** The sum of the delays of all played audio samples in the jitter buffer, in seconds; and their number. */
  bufferSeconds: number;
  buffered: number;
}

/** Counters of the receiving connection at one moment. */
export interface DownlinkSample {
  atMs: number;
  /** By id of the statistics. */
  streams: Record<string, StreamCounters>;
  /**
   * How long the fastest of the latest sender reports took to arrive, in milliseconds, by the clocks of sender and
   * receiver, which may differ by any amount. Undefined in browsers without it.
   */
  transitMs: number | undefined;
  /** When the latest report arrived. */
  reportAtMs: number | undefined;
  /** How late this machine was with the sample, in milliseconds. */
  lateMs: number;
  /** By id of the received MediaStreamTrack. */
  videos: Record<string, VideoCounters>;
}

/** The fields of WebRTC's statistics that are read here. Browsers leave out those that they do not support. */
interface Entry {
  id: string;
  type: string;
  kind?: string;
  timestamp: number;
  remoteTimestamp?: number;
  trackIdentifier?: string;
  bytesReceived?: number;
  headerBytesReceived?: number;
  packetsReceived?: number;
  packetsLost?: number;
  concealedSamples?: number;
  silentConcealedSamples?: number;
  totalSamplesReceived?: number;
  jitterBufferDelay?: number;
  jitterBufferEmittedCount?: number;
  framesDecoded?: number;
  frameWidth?: number;
  frameHeight?: number;
}

/** Of the reports of several streams that arrived within this time, the fastest one says how long the queue is. */
const REPORTS_WITHIN_MS = 500;

export function downlinkSampleOf(report: RTCStatsReport, atMs: number): DownlinkSample {
  const sample: DownlinkSample = {
    atMs,
    streams: {},
    transitMs: undefined,
    reportAtMs: undefined,
    lateMs: 0,
    videos: {},
  };
  const reports: { atMs: number; transitMs: number }[] = [];
  for (const entry of (report as unknown as Map<string, Entry>).values()) {
    if (entry.type === 'inbound-rtp') count(sample, entry);
    const { type, timestamp, remoteTimestamp } = entry;
    if (type !== 'remote-outbound-rtp' || remoteTimestamp === undefined) continue;
    reports.push({ atMs: timestamp, transitMs: timestamp - remoteTimestamp });
  }
  if (reports.length === 0) return sample;
  const reportAtMs = Math.max(...reports.map((one) => one.atMs));
  const latest = reports.filter((one) => one.atMs >= reportAtMs - REPORTS_WITHIN_MS);
  return { ...sample, reportAtMs, transitMs: Math.min(...latest.map(({ transitMs }) => transitMs)) };
}

function count(sample: DownlinkSample, entry: Entry): void {
  const bytes = (entry.bytesReceived ?? 0) + (entry.headerBytesReceived ?? 0);
  const isAudio = entry.kind === 'audio';
  sample.streams[entry.id] = {
    packets: entry.packetsReceived ?? 0,
    lost: entry.packetsLost ?? 0,
    bytes,
    audioBytes: isAudio ? bytes : 0,
    // Silence that replaces silence is not heard, such as that of a muted track.
    concealed: isAudio ? (entry.concealedSamples ?? 0) - (entry.silentConcealedSamples ?? 0) : 0,
    samples: isAudio ? (entry.totalSamplesReceived ?? 0) : 0,
    bufferSeconds: isAudio ? (entry.jitterBufferDelay ?? 0) : 0,
    buffered: isAudio ? (entry.jitterBufferEmittedCount ?? 0) : 0,
  };
  if (!isAudio && entry.trackIdentifier !== undefined) {
    const { framesDecoded = 0, frameWidth: width = 0, frameHeight: height = 0 } = entry;
    sample.videos[entry.trackIdentifier] = { bytes, framesDecoded, width, height };
  }
}
