import { invalidArgument } from '../errors.js';
import { mapSections } from '../peers/peer.js';
import type { TrackSource } from '../protocol.generated.js';

type VideoCodec = 'vp8' | 'vp9' | 'h264' | 'av1';

/** How a track is encoded. */
export interface SendingOptions {
  /**
   * Sends the camera in up to three sizes, so that each receiver gets what it displays; default true for cameras whose
   * size is known, with VP8 and H.264.
   */
  simulcast?: boolean | undefined;
  /** Encodings of your own, the best one first; at most three. They win over `simulcast`. */
  encodings?: RTCRtpEncodingParameters[] | undefined;
  /** Default `vp8`, which is also sent if the browser cannot send the chosen one. */
  codec?: VideoCodec | undefined;
  /** Sends almost nothing while the microphone is silent; default false. */
  dtx?: boolean | undefined;
}

/** As {@link SendingOptions}, in a call that may be encrypted. */
interface ChosenSending extends SendingOptions {
  isEncrypted?: boolean;
}

/** From the best layer to the lowest, which is the order in which Janus numbers them. */
const RIDS = ['h', 'm', 'l'] as const;
/** For small tiles and slow lines: with half its pictures and with its sound it fits a line of 150 kbit/s. */
const SMALLEST: RTCRtpEncodingParameters = { maxBitrate: 100_000, maxFramerate: 20 };
/**
 * By the pixels of the picture: Chromium sends three layers, two or one. A layer that is offered and not sent would be the
 * lowest one for the media server.
 */
const LADDERS: { pixels: number; encodings: RTCRtpEncodingParameters[] }[] = [
  {
    pixels: 960 * 540,
    encodings: [
      { maxBitrate: 1_200_000 },
      // With its sound it fits a line of 400 kbit/s.
      { maxBitrate: 300_000, scaleResolutionDownBy: 2 },
      { ...SMALLEST, scaleResolutionDownBy: 4 },
    ],
  },
  {
    pixels: 480 * 270,
    encodings: [{ maxBitrate: 500_000 }, { ...SMALLEST, scaleResolutionDownBy: 2 }],
  },
  { pixels: 1, encodings: [{ maxBitrate: 250_000 }] },
];
/**
 * Bits per second that encryption adds: a header and a tag of 28 bytes to each of 50 packets of sound and 20 pictures. A
 * layer goes without them, so that it fits the same line.
 */
const SEALING_BITRATE = 28 * 8 * (50 + 20);
/** Text must stay sharp, and rarely moves. */
const SCREEN: RTCRtpEncodingParameters[] = [{ maxBitrate: 1_500_000, maxFramerate: 15 }];
/** One layer of a codec whose layers the media server cannot tell apart. */
const SINGLE: RTCRtpEncodingParameters[] = [{ maxBitrate: 1_200_000 }];
/** The media server finds the key frames of layers in these. */
const WITH_LAYERS: readonly VideoCodec[] = ['vp8', 'h264'];
const CODECS: readonly string[] = ['vp8', 'vp9', 'h264', 'av1'];
const ENCODINGS_MAX = 3;

/** @throws CallplaneError `invalid_argument` */
export function assertSending({ encodings, codec }: SendingOptions): void {
  if (codec !== undefined && !CODECS.includes(codec))
    throw invalidArgument('codec', `must be one of ${CODECS.join(', ')}`);
  if (encodings !== undefined && (encodings.length === 0 || encodings.length > ENCODINGS_MAX))
    throw invalidArgument('encodings', `must have 1 to ${ENCODINGS_MAX} entries`);
}

/**
 * How the sections of an offer carry a track. Undefined encodings and codecs are left to the browser. A section whose
 * track has ended carries a later one with the same `section`.
 * @param capabilities the video codecs that the browser sends; undefined if it does not say so
 */
export function sendingOf(
  source: TrackSource,
  media: MediaStreamTrack,
  options: ChosenSending,
  capabilities: readonly RTCRtpCodec[] | undefined,
): { encodings: RTCRtpEncodingParameters[] | undefined; codecs: RTCRtpCodec[] | undefined; section: string } {
  if (media.kind !== 'video') return { encodings: undefined, codecs: undefined, section: media.kind };
  const asked = options.codec ?? 'vp8';
  const codec = codecsOf(asked, capabilities).length > 0 ? asked : 'vp8';
  const encodings = encodingsOf(source, media, options, codec);
  const rids = (encodings ?? []).map(({ rid = '' }) => rid).join('');
  return {
    encodings,
    // The media server would take its own favourite of several codecs. VP8 is that favourite.
    codecs: codec === 'vp8' ? undefined : codecsOf(codec, capabilities),
    section: `${media.kind} ${codec} ${rids}`,
  };
}

function encodingsOf(
  source: TrackSource,
  media: MediaStreamTrack,
  { simulcast = true, encodings, isEncrypted }: ChosenSending,
  codec: VideoCodec,
): RTCRtpEncodingParameters[] | undefined {
  if (encodings !== undefined) return withRids(encodings);
  if (source === 'screen') return SCREEN;
  const ladder = ladderOf(media, isEncrypted);
  if (ladder === undefined || ladder.length === 1) return ladder;
  return simulcast && WITH_LAYERS.includes(codec) ? withRids(ladder) : SINGLE;
}

/**
 * How a section that exists carries media of another size. Layers that the size does not need are inactive, and the
 * others are the lowest ones, which receivers of a small picture request. Undefined leaves the section as it is.
 * @param present the encodings of the section
 */
export function fittingEncodings(
  source: TrackSource,
  media: MediaStreamTrack,
  options: ChosenSending,
  present: readonly RTCRtpEncodingParameters[],
): RTCRtpEncodingParameters[] | undefined {
  if (media.kind !== 'video' || source === 'screen' || options.encodings !== undefined) return undefined;
  const ladder = ladderOf(media, options.isEncrypted);
  if (ladder === undefined || present.length === 0) return undefined;
  if (present.length === 1) return ladder.length === 1 ? ladder : SINGLE;
  const [best = {}, ...others] = ladder;
  // A section with too few encodings for the size goes without the middle one.
  const fitting = [best, ...others.slice(Math.max(0, ladder.length - present.length))];
  const unused = present.length - fitting.length;
  return present.map(({ rid = '' }, at) =>
    at < unused ? { rid, active: false } : { rid, active: true, scaleResolutionDownBy: 1, ...fitting[at - unused] },
  );
}

function ladderOf(media: MediaStreamTrack, isEncrypted = false): RTCRtpEncodingParameters[] | undefined {
  const { width = 0, height = 0 } = media.getSettings();
  const ladder = LADDERS.find(({ pixels }) => width * height >= pixels)?.encodings;
  if (!isEncrypted) return ladder;
  return ladder?.map(({ maxBitrate = 0, ...rest }) => ({ ...rest, maxBitrate: maxBitrate - SEALING_BITRATE }));
}

/** The codec as the browser sends it, with what repairs losses; empty if it does not send it. */
function codecsOf(codec: VideoCodec, capabilities: readonly RTCRtpCodec[] = []): RTCRtpCodec[] {
  const named = (name: string) => capabilities.filter(({ mimeType }) => mimeType.toLowerCase() === `video/${name}`);
  const chosen = codec === 'h264' ? named(codec).filter(isBaseline) : named(codec);
  return chosen.length === 0 ? [] : [...chosen, ...['rtx', 'red', 'ulpfec'].flatMap(named)];
}

/** The one form of H.264 that every browser decodes. */
function isBaseline({ sdpFmtpLine = '' }: RTCRtpCodec): boolean {
  return sdpFmtpLine.includes('packetization-mode=1') && sdpFmtpLine.includes('profile-level-id=42e0');
}

/** Simulcast needs a name for each layer. */
function withRids(encodings: readonly RTCRtpEncodingParameters[]): RTCRtpEncodingParameters[] {
  if (encodings.length === 1) return [...encodings];
  return encodings.map((encoding, at) => ({ rid: RIDS[at] ?? '', ...encoding }));
}

/** Gives a section that carried another track the encodings of the next one. */
export async function resetEncodings(
  sender: RTCRtpSender,
  wanted: readonly RTCRtpEncodingParameters[] | undefined,
): Promise<void> {
  const parameters = sender.getParameters();
  parameters.encodings = parameters.encodings.map(({ rid }, at) => ({
    ...(rid === undefined ? {} : { rid }),
    active: true,
    ...wanted?.[at],
  }));
  if (parameters.encodings.length > 0) await sender.setParameters(parameters);
}

/** Lets the microphone of the section send with discontinuous transmission, as if the media server had asked for it. */
export function withDtx(answer: string, mid: string): string {
  const hasMid = new RegExp(`^a=mid:${mid}\\r?$`, 'm');
  return mapSections(answer, (section) => (hasMid.test(section) ? sectionWithDtx(section) : section));
}

function sectionWithDtx(section: string): string {
  const [, type] = /^a=rtpmap:(\d+) opus\//im.exec(section) ?? [];
  if (type === undefined || section.includes('usedtx=1')) return section;
  const parameters = new RegExp(`^a=fmtp:${type} .*$`, 'm');
  if (parameters.test(section)) return section.replace(parameters, '$&;usedtx=1');
  return section.replace(/^a=rtpmap:\d+ opus\/.*$/im, `$&\r\na=fmtp:${type} usedtx=1`);
}
