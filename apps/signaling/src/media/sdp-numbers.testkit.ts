/** A number of a description. */
export interface SdpNumber {
  /** Where it stands, for the name of a test. */
  line: string;
  min: bigint;
  max: bigint;
  usual: string;
  /** Whether it may also be written as hexadecimal digits. */
  isHex: boolean;
}

/** A description with every attribute that passes the gate. `<min..max|usual>` stands for a number. */
const TEMPLATE = `v=<0..0|0>
o=- <0..9223372036854775807|4611731400430051336> <0..9007199254740991|2> IN IP<4..6|4> 127.0.0.1
s=-
t=<0..9007199254740991|0> <0..9007199254740991|0>
a=group:BUNDLE 0 1
a=extmap-allow-mixed
a=msid-semantic: WMS s
m=audio <0..65535|9> UDP/TLS/RTP/SAVPF <0..127|111> <0..127|63>
c=IN IP<4..6|4> 0.0.0.0
b=AS:<0..2147483647|100>
a=rtpmap:<0..127|111> opus/<1..2147483647|48000>/<1..255|2>
a=fmtp:<0..127|111> minptime=<0..4294967295|10|hex>;useinbandfec=1
a=rtcp:<0..65535|9> IN IP<4..6|4> 0.0.0.0
a=rtcp-fb:<0..127|111> trr-int <0..2147483647|100>
a=rtcp-fb:<0..127|111> transport-cc
a=extmap:<1..255|1> urn:ietf:params:rtp-hdrext:ssrc-audio-level
a=extmap:<1..255|4> urn:ietf:params:rtp-hdrext:sdes:mid
a=setup:actpass
a=mid:0
a=bundle-only
a=msid:s a
a=ptime:<1..2147483647|20>
a=maxptime:<1..2147483647|60>
a=sendonly
a=ice-ufrag:abcd
a=ice-pwd:abcdefghijklmnopqrstuvwx
a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => 'AB').join(':')}
a=candidate:1 <1..256|1> udp <1..2147483647|2122260223> 192.0.2.1 <0..65535|9> typ srflx raddr 0.0.0.0 rport <0..65535|9> generation <0..2147483647|0> network-id <0..2147483647|1> network-cost <0..2147483647|10>
a=ssrc:<0..4294967295|11> cname:c
a=rtcp-mux
a=rtcp-rsize
m=video <0..65535|9> UDP/TLS/RTP/SAVPF <0..127|96> <0..127|97>
c=IN IP4 0.0.0.0
b=TIAS:<0..2147483647|100000>
a=rtpmap:<0..127|96> VP8/<1..2147483647|90000>
a=rtpmap:<0..127|97> rtx/90000
a=fmtp:<0..127|97> apt=<0..127|96>
a=fmtp:<0..127|96> max-fr=<0..4294967295|60|hex>
a=rtcp-fb:<0..127|96> nack pli
a=rtcp-fb:<0..127|96> transport-cc
a=extmap:<1..255|4> urn:ietf:params:rtp-hdrext:sdes:mid
a=extmap:<1..255|3> http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=extmap:<1..255|10> urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
a=extmap:<1..255|11> urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id
a=setup:actpass
a=mid:1
a=bundle-only
a=msid:s v
a=sendonly
a=ice-ufrag:abcd
a=ice-pwd:abcdefghijklmnopqrstuvwx
a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => 'AB').join(':')}
a=ssrc:<0..4294967295|21> cname:c
a=ssrc:<0..4294967295|22> cname:c
a=ssrc-group:FID <0..4294967295|21> <0..4294967295|22>
a=ssrc-group:SIM <0..4294967295|21> <0..4294967295|23> <0..4294967295|24>
a=rtcp-mux
a=rid:h send pt=<0..127|96>;max-width=<0..4294967295|1280|hex>
a=rid:l send max-fps=<0..4294967295|30|hex>
a=simulcast:send h;l
`;
const PLACEHOLDER = /<(\d+)\.\.(\d+)\|(\d+)(\|hex)?>/g;

export const SDP_NUMBERS: readonly SdpNumber[] = TEMPLATE.split('\n').flatMap((line) =>
  [...line.matchAll(PLACEHOLDER)].map(([, min = '', max = '', usual = '', hex], index) => ({
    line: `number ${index + 1} of ${line.replaceAll(PLACEHOLDER, '…').slice(0, 60)}`,
    min: BigInt(min),
    max: BigInt(max),
    usual,
    isHex: hex !== undefined,
  })),
);

/** The tracks that the description sends. */
export const SDP_TRACKS = [
  { trackId: 'mic', mid: '0', source: 'microphone' as const },
  { trackId: 'cam', mid: '1', source: 'camera' as const },
];

/**
 * A description with these numbers, by their index, and the usual ones.
 * @param changes of other parts of the text
 */
export function descriptionWith(numbers: ReadonlyMap<number, string>): string {
  let index = -1;
  return TEMPLATE.replaceAll(PLACEHOLDER, (_, _min, _max, usual: string) => {
    index += 1;
    return numbers.get(index) ?? usual;
  }).replaceAll('\n', '\r\n');
}

/** The lines of a description that have the number, as they stand in the text. */
export function lineWith(index: number, value: string): string {
  const usual = descriptionWith(new Map()).split('\r\n');
  const changed = descriptionWith(new Map([[index, value]])).split('\r\n');
  return changed.find((line, at) => line !== usual[at]) ?? '';
}
