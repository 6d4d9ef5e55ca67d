/** VP8, which every browser receives. Janus gives it this payload type in all offers (`VP8_PT` in its rtp.c). */
const VP8 = { payload: '96', line: 'a=rtpmap:96 VP8/90000' };

/**
 * Adds VP8 to the video sections of other codecs, so that every client has a codec for each section. Without one for a
 * section, some libraries fail to answer the whole offer (@roamhq/wrtc 0.10.0; Chromium 156 if it is the first section),
 * and one publisher would stop the media of its viewers. Nothing is sent as VP8 there.
 * @param offer of the media server
 */
export function withFallbackCodec(offer: string): string {
  return sectionsOf(offer)
    .map((section) => {
      if (!section.startsWith('m=video ') || payloadsOf(section).includes(VP8.payload)) return section;
      return section.replace(/^.*/, `$& ${VP8.payload}`).replace(/(?:\r?\n)*$/, `\r\n${VP8.line}\r\n`);
    })
    .join('');
}

/**
 * Mids of the sections that an answer accepts without the codec of their stream, the first one of the offer.
 * @param offer of `withFallbackCodec`
 */
export function sectionsWithoutCodec(offer: string, answer: string): string[] {
  const codecs = new Map(sectionsOf(offer).map((section) => [midOf(section), payloadsOf(section)[0] ?? '']));
  return sectionsOf(answer).flatMap((section) => {
    const mid = midOf(section);
    const codec = codecs.get(mid);
    return mid === undefined || codec === undefined || payloadsOf(section).includes(codec) ? [] : [mid];
  });
}

/** The media sections as text, after the part that precedes them. */
function sectionsOf(sdp: string): string[] {
  return sdp.split(/^(?=m=)/m);
}

function payloadsOf(section: string): string[] {
  return /^m=.*/.exec(section)?.[0].split(' ').slice(3) ?? [];
}

function midOf(section: string): string | undefined {
  return /^m=/.test(section) ? /^a=mid:(\S+)/m.exec(section)?.[1] : undefined;
}
