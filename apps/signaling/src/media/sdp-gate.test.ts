import { describe, expect, test } from '@jest/globals';
import type { Permission } from '@callplane/core';
import fc from 'fast-check';
import sdpTransform from 'sdp-transform';
import { RequestFailure } from '../clients/client.js';
import { checkAnswer, checkOffer, declareTracks, type DeclaredTrack } from './sdp-gate.js';

const ALL: Permission[] = ['room:join', 'audio:publish', 'video:publish', 'screen:publish'];

interface Section {
  kind?: string;
  mid?: string | null;
  direction?: string | null;
  port?: number;
  more?: string[];
}

function section({ kind = 'audio', mid = '0', direction = 'sendonly', port = 9, more = [] }: Section): string[] {
  return [
    `m=${kind} ${port} UDP/TLS/RTP/SAVPF 111`,
    'c=IN IP4 0.0.0.0',
    ...(mid === null ? [] : [`a=mid:${mid}`]),
    ...(direction === null ? [] : [`a=${direction}`]),
    'a=rtcp-mux',
    'a=rtpmap:111 opus/48000/2',
    ...more,
  ];
}

function sdp(sections: Section[], { session = [], end = '\r\n' }: { session?: string[]; end?: string } = {}): string {
  return [
    'v=0',
    'o=- 4611731400430051336 2 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    ...session,
    ...sections.flatMap(section),
    '',
  ].join(end);
}

const track = (mid: string, source: DeclaredTrack['source'] = 'microphone', trackId = mid): DeclaredTrack => ({
  trackId,
  mid,
  source,
});
/** @returns the result of the check, or the code of the refusal. Any other error fails the test. */
function resultOf<T>(check: () => T): T | string {
  try {
    return check();
  } catch (error) {
    if (error instanceof RequestFailure) return error.code;
    throw error;
  }
}
const codeOf = (check: () => unknown) => {
  const result = resultOf(check);
  return typeof result === 'string' ? result : 'ok';
};

describe('the SDP gate for offers', () => {
  test('passes declared and permitted tracks in normal form', () => {
    const checked = checkOffer(
      sdp([
        { mid: 'a' },
        { kind: 'video', mid: 'v', direction: 'sendrecv', more: ['a=rid:h send', 'a=simulcast:send h'] },
      ]),
      [track('a', 'microphone', 'mic'), track('v', 'camera', 'cam')],
      ALL,
    );
    expect(checked).toMatchObject({
      peerConnection: '- 4611731400430051336',
      tracks: [
        { trackId: 'mic', kind: 'audio', source: 'microphone', mid: 'a', muted: false },
        { trackId: 'cam', kind: 'video', source: 'camera', mid: 'v', muted: false },
      ],
    });
    expect(checked.sdp).toContain('a=simulcast:send h\r\n');
  });

  const video = (...mids: string[]) => sdp(mids.map((mid) => ({ kind: 'video', mid })));
  const tracks = (source: DeclaredTrack['source'], ...mids: string[]) => mids.map((mid) => track(mid, source));

  test.each<[string, string, DeclaredTrack[], Permission[]]>([
    ['a microphone needs audio:publish', sdp([{}]), [track('0')], ['video:publish', 'screen:publish']],
    ['a camera needs video:publish', video('0'), tracks('camera', '0'), ['audio:publish', 'screen:publish']],
    ['a screen needs screen:publish', video('0'), tracks('screen', '0'), ['audio:publish', 'video:publish']],
    ['its sound, too', sdp([{}]), tracks('screen_audio', '0'), ['audio:publish', 'video:publish']],
    ['a second video, too, whatever it declares', video('a', 'b'), tracks('camera', 'a', 'b'), ['video:publish']],
  ])('requires permissions: %s', (_, text, declared, permissions) => {
    expect(codeOf(() => checkOffer(text, declared, permissions))).toBe('permission_denied');
  });

  test.each<[string, string, DeclaredTrack[], Permission[]]>([
    ['a screen alone, without video:publish', video('0'), tracks('screen', '0'), ['screen:publish']],
    ['a rejected section with port 0, which does not send', sdp([{ port: 0 }, { mid: '1' }]), [track('1')], ALL],
  ])('passes %s', (_, text, declared, permissions) => {
    expect(codeOf(() => checkOffer(text, declared, permissions))).toBe('ok');
  });

  const inactive = { direction: 'inactive' };
  test.each<[string, string, DeclaredTrack[]?]>([
    ['an offer that only receives', sdp([{ direction: 'recvonly' }])],
    ['an offer without sections', sdp([])],
    ['a sending section that is not declared', sdp([{}])],
    ['a camera in an audio section', sdp([{}]), tracks('camera', '0')],
    ['a declared section that does not send', sdp([inactive]), [track('0')]],
    [
      'a track with two sections',
      sdp([{ mid: 'a' }, { mid: 'b' }]),
      ['a', 'b'].map((mid) => track(mid, 'microphone', 'x')),
    ],
    ['data channels', sdp([{ kind: 'application' }])],
    ['inactive data channels', sdp([{ kind: 'application', port: 0, ...inactive }])],
    ['a section that sends as the session says', sdp([{ direction: null }], { session: ['a=sendonly'] })],
    ['a section without any direction, which sends', sdp([{ direction: null }])],
    ['a section whose last direction sends', sdp([{ ...inactive, more: ['a=sendonly'] }])],
    ['a bundle-only section with port 0, which sends', sdp([{ port: 0, more: ['a=bundle-only'] }])],
    ['a mid that occurs twice', sdp([inactive, { kind: 'video' }]), tracks('camera', '0')],
    ['a section without a mid', sdp([{ mid: null, ...inactive }])],
    ['three video sections', video('a', 'b', 'c'), tracks('camera', 'a', 'b', 'c')],
    ['33 sections', sdp(Array.from({ length: 33 }, (_, n) => ({ mid: `${n}`, ...inactive })))],
    ['a section after bare line feeds', sdp([{}], { end: '\n' })],
    ['a section after bare carriage returns', sdp([{}], { end: '\r' })],
    ['a Unicode line separator', sdp([{ direction: 'inactive\u2028a=sendonly' }])],
    ['unencrypted media', sdp([{}]).replace('UDP/TLS/RTP/SAVPF', 'RTP/AVP'), [track('0')]],
    ['an empty text', ''],
  ])('refuses %s', (_, text, declared = []) => {
    expect(codeOf(() => checkOffer(text, declared, ALL))).toBe('invalid_sdp');
  });

  test('drops unknown attributes, because another parser might interpret them', () => {
    const hidden = { direction: 'recvonly', more: ['a=SendRecv', 'a= sendonly', 'a=x-anything:1'] };
    const { sdp: text } = checkOffer(sdp([hidden, { mid: '1', direction: 'sendrecv' }]), [track('1')], ALL);
    expect(text).not.toMatch(/SendRecv|sendonly|x-anything/);
  });

  // Lines that have a meaning for some parser, in any order and with any line end.
  const line = fc.oneof(
    fc.constantFrom(
      'a=sendrecv',
      'a=sendonly',
      'a=recvonly',
      'a=inactive',
      'a=SENDRECV',
      'a=sendonly ',
      ' a=sendonly',
      'a=bundle-only',
      'a=mid:0',
      'a=mid:1',
      'a=mid:',
      'm=audio 9 UDP/TLS/RTP/SAVPF 111',
      'm=video 9 UDP/TLS/RTP/SAVPF 96',
      'm=video 0 UDP/TLS/RTP/SAVPF 96',
      'm=application 9 UDP/DTLS/SCTP webrtc-datachannel',
      'm=audio',
      'm=',
      'a=rid:h send',
      'a=simulcast:send h;m;l',
      'a=group:BUNDLE 0 1',
      'a=rtpmap:96 VP8/90000',
      'c=IN IP4 0.0.0.0',
      's=-',
      'v=0',
      'o=- 1 1 IN IP4 0.0.0.0',
      'a=msid:a b',
      'a=fmtp:96 a=sendonly',
      'b=AS:100',
      'k=clear:x',
    ),
    fc.string({ maxLength: 30 }),
  );
  const hostile = fc
    .tuple(fc.array(line, { maxLength: 40 }), fc.constantFrom('\r\n', '\n', '\r', '\r\r\n', '\n\n'))
    .map(([lines, end]) => ['v=0', 'o=- 1 1 IN IP4 0.0.0.0', ...lines, ''].join(end));

  test('outputs no sending section without its permission, and accepts its own output unchanged', () => {
    fc.assert(
      fc.property(hostile, fc.subarray(['room:join', 'audio:publish'] as Permission[]), (text, permissions) => {
        const checked = resultOf(() => checkOffer(text, [track('0')], permissions));
        if (typeof checked === 'string') return;
        const read = sdpTransform.parse(checked.sdp);
        expect(read.direction).toBeUndefined();
        for (const one of read.media) {
          expect(['audio', 'video']).toContain(one.type);
          expect(checked.sdp.match(/^m=/gm)).toHaveLength(read.media.length);
          if (one.direction === 'sendrecv' || one.direction === 'sendonly') {
            expect(one.type).toBe('audio');
            expect(permissions).toContain('audio:publish');
          } else expect(['recvonly', 'inactive']).toContain(one.direction);
        }
        // Each section has exactly one direction line.
        expect(checked.sdp.match(/^a=(sendrecv|sendonly|recvonly|inactive)\r$/gm) ?? []).toHaveLength(
          read.media.length,
        );
        expect(checkOffer(checked.sdp, [track('0')], permissions)).toMatchObject({ sdp: checked.sdp });
      }),
      { numRuns: 2000 },
    );
  });

  test('only refuses, whatever text it gets', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 400 }), (text) => {
        resultOf(() => checkOffer(text, [], ALL));
        resultOf(() => checkAnswer(text));
      }),
      { numRuns: 500 },
    );
  });
});

test('the SDP gate keeps the SHA-256 of a certificate that an offer names with several hashes', () => {
  const prints = ['sha-256 AA', 'sha-384 BB', 'sha-512 CC'].map((print) => `a=fingerprint:${print}`);
  for (const more of [prints, [...prints].reverse()]) {
    const { sdp: text } = checkOffer(sdp([{ more }]), [track('0')], ALL);
    expect(text.match(/a=fingerprint:.*/g)).toEqual(['a=fingerprint:sha-256 AA']);
  }
  const { sdp: other } = checkOffer(sdp([{ more: prints.slice(1, 2) }]), [track('0')], ALL);
  expect(other).toContain('a=fingerprint:sha-384 BB');
});

describe('the declared tracks of an offer', () => {
  const declared = (sections: Section[], permissions = ALL) =>
    resultOf(() => declareTracks(sdp(sections), permissions).map(({ mid, source }) => `${mid} ${source}`));
  const both = [{ kind: 'video', mid: 'v' }, { mid: 'a' }];

  test('are a camera and a microphone first, and what else the participant may publish', () => {
    expect(declared(both)).toEqual(['v camera', 'a microphone']);
    expect(declared([...both, { kind: 'video', mid: 'w' }])).toEqual(['v camera', 'a microphone', 'w screen']);
    expect(declared(both, ['room:join', 'screen:publish'])).toEqual(['v screen', 'a screen_audio']);
    expect(declared(both, ['room:join', 'video:publish'])).toBe('permission_denied');
    expect(declared([...both, { mid: 'x', direction: 'recvonly' }])).toEqual(['v camera', 'a microphone']);
    expect(declared([{ mid: 'a' }, { mid: 'b' }, { mid: 'c' }])).toBe('invalid_sdp');
  });
});

describe('the SDP gate for answers', () => {
  test('accepts sections that receive and refuses sections that send', () => {
    const answered = (...answer: Parameters<typeof sdp>) => codeOf(() => checkAnswer(sdp(...answer)));
    expect(answered([{ direction: 'recvonly' }, { mid: '1', direction: 'inactive' }])).toBe('ok');
    expect(answered([{ direction: 'sendrecv' }])).toBe('invalid_sdp');
    expect(answered([{ direction: null }])).toBe('invalid_sdp');
    expect(answered([{ direction: null }], { session: ['a=recvonly'] })).toBe('ok');
  });
});
