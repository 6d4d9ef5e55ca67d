import { describe, expect, test } from '@jest/globals';
import type { Permission } from '@callplane/core';
import fc from 'fast-check';
import sdpTransform from 'sdp-transform';
import { judgeAnswer, judgeOffer, type DeclaredTrack } from './sdp-gate.js';

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
const codeOf = (judged: ReturnType<typeof judgeOffer> | ReturnType<typeof judgeAnswer>) =>
  judged.ok ? 'ok' : judged.refusal.code;

describe('an offer', () => {
  test('of what is declared and permitted passes, in normal form', () => {
    const judged = judgeOffer(
      sdp([
        { mid: 'a' },
        { kind: 'video', mid: 'v', direction: 'sendrecv', more: ['a=rid:h send', 'a=simulcast:send h'] },
      ]),
      [track('a', 'microphone', 'mic'), track('v', 'camera', 'cam')],
      ALL,
    );
    expect(judged).toMatchObject({
      ok: true,
      peerConnection: '- 4611731400430051336',
      tracks: [
        { trackId: 'mic', kind: 'audio', source: 'microphone', mid: 'a', muted: false },
        { trackId: 'cam', kind: 'video', source: 'camera', mid: 'v', muted: false },
      ],
    });
    expect(judged.ok && judged.sdp).toContain('a=simulcast:send h\r\n');
  });

  test.each<[string, string, DeclaredTrack[], Permission[], string]>([
    [
      'a microphone needs audio:publish',
      sdp([{}]),
      [track('0')],
      ['video:publish', 'screen:publish'],
      'permission_denied',
    ],
    [
      'a camera needs video:publish',
      sdp([{ kind: 'video' }]),
      [track('0', 'camera')],
      ['audio:publish', 'screen:publish'],
      'permission_denied',
    ],
    [
      'a screen needs screen:publish',
      sdp([{ kind: 'video' }]),
      [track('0', 'screen')],
      ['audio:publish', 'video:publish'],
      'permission_denied',
    ],
    [
      'the sound of a screen needs screen:publish',
      sdp([{}]),
      [track('0', 'screen_audio')],
      ['audio:publish', 'video:publish'],
      'permission_denied',
    ],
    ['a screen alone needs no camera', sdp([{ kind: 'video' }]), [track('0', 'screen')], ['screen:publish'], 'ok'],
    [
      'a second picture needs screen:publish, whatever it is called',
      sdp([
        { kind: 'video', mid: 'a' },
        { kind: 'video', mid: 'b' },
      ]),
      [track('a', 'camera'), track('b', 'camera')],
      ['video:publish'],
      'permission_denied',
    ],
    ['what is not declared does not send', sdp([{}]), [], ALL, 'invalid_sdp'],
    ['a camera in an audio section is none', sdp([{}]), [track('0', 'camera')], ALL, 'invalid_sdp'],
    ['what is declared must send', sdp([{ direction: 'inactive' }]), [track('0')], ALL, 'invalid_sdp'],
    [
      'a track has one section',
      sdp([{ mid: 'a' }, { mid: 'b' }]),
      [track('a', 'microphone', 'x'), track('b', 'screen_audio', 'x')],
      ALL,
      'invalid_sdp',
    ],
    ['data channels are refused', sdp([{ kind: 'application' }]), [], ALL, 'invalid_sdp'],
    [
      'data channels are refused, idle ones too',
      sdp([{ kind: 'application', port: 0, direction: 'inactive' }]),
      [],
      ALL,
      'invalid_sdp',
    ],
    [
      'a direction of the session counts',
      sdp([{ direction: null }], { session: ['a=sendonly'] }),
      [],
      ALL,
      'invalid_sdp',
    ],
    ['without any direction a section sends', sdp([{ direction: null }]), [], ALL, 'invalid_sdp'],
    ['the last direction counts', sdp([{ direction: 'inactive', more: ['a=sendonly'] }]), [], ALL, 'invalid_sdp'],
    ['a section that is only bundled sends', sdp([{ port: 0, more: ['a=bundle-only'] }]), [], ALL, 'invalid_sdp'],
    ['a rejected section does not', sdp([{ port: 0 }]), [], ALL, 'ok'],
    [
      'a mid stands once',
      sdp([{ direction: 'inactive' }, { kind: 'video' }]),
      [track('0', 'camera')],
      ALL,
      'invalid_sdp',
    ],
    ['every section has a mid', sdp([{ mid: null, direction: 'inactive' }]), [], ALL, 'invalid_sdp'],
    [
      'three pictures are too many',
      sdp(['a', 'b', 'c'].map((mid) => ({ kind: 'video', mid }))),
      ['a', 'b', 'c'].map((mid) => track(mid, 'camera')),
      ALL,
      'invalid_sdp',
    ],
    [
      '33 sections are too many',
      sdp(Array.from({ length: 33 }, (_, n) => ({ mid: `${n}`, direction: 'inactive' }))),
      [],
      ALL,
      'invalid_sdp',
    ],
    ['bare line feeds are line ends', sdp([{}], { end: '\n' }), [], ALL, 'invalid_sdp'],
    ['bare carriage returns are line ends', sdp([{}], { end: '\r' }), [], ALL, 'invalid_sdp'],
    ['other line ends are refused', sdp([{ direction: 'inactive\u2028a=sendonly' }]), [], ALL, 'invalid_sdp'],
    [
      'unencrypted media is refused',
      sdp([{}]).replace('UDP/TLS/RTP/SAVPF', 'RTP/AVP'),
      [track('0')],
      ALL,
      'invalid_sdp',
    ],
    ['an empty text is no description', '', [], ALL, 'invalid_sdp'],
  ])('%s', (_, text, declared, permissions, expected) => {
    expect(codeOf(judgeOffer(text, declared, permissions))).toBe(expected);
  });

  test('attributes that nobody knows do not pass: another parser might read them', () => {
    const hidden = sdp([{ direction: 'recvonly', more: ['a=SendRecv', 'a= sendonly', 'a=x-anything:1'] }]);
    const judged = judgeOffer(hidden, [], ALL);
    expect(judged.ok).toBe(true);
    expect(judged.ok && judged.sdp).not.toMatch(/SendRecv|sendonly|x-anything/);
  });

  // Lines that mean something to one parser or another, in any order, with any line end.
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

  test('whatever it holds: nothing that is not permitted sends in what goes on, and that is read the same again', () => {
    fc.assert(
      fc.property(hostile, fc.subarray(['room:join', 'audio:publish'] as Permission[]), (text, permissions) => {
        const judged = judgeOffer(text, [track('0'), track('1', 'camera')].slice(0, 1), permissions);
        if (!judged.ok) return;
        const read = sdpTransform.parse(judged.sdp);
        expect(read.direction).toBeUndefined();
        for (const one of read.media) {
          expect(['audio', 'video']).toContain(one.type);
          expect(judged.sdp.match(/^m=/gm)).toHaveLength(read.media.length);
          if (one.direction === 'sendrecv' || one.direction === 'sendonly') {
            expect(one.type).toBe('audio');
            expect(permissions).toContain('audio:publish');
          } else expect(['recvonly', 'inactive']).toContain(one.direction);
        }
        // Each section says its direction exactly once.
        expect(judged.sdp.match(/^a=(sendrecv|sendonly|recvonly|inactive)\r$/gm) ?? []).toHaveLength(read.media.length);
        expect(judgeOffer(judged.sdp, [track('0')], permissions)).toMatchObject({ sdp: judged.sdp });
      }),
      { numRuns: 2000 },
    );
  });

  test('any text at all is judged, never thrown over', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 400 }), (text) => {
        judgeOffer(text, [], ALL);
        judgeAnswer(text);
      }),
      { numRuns: 500 },
    );
  });
});

describe('an answer', () => {
  test('receives and does not send', () => {
    expect(codeOf(judgeAnswer(sdp([{ direction: 'recvonly' }, { mid: '1', direction: 'inactive' }])))).toBe('ok');
    expect(codeOf(judgeAnswer(sdp([{ direction: 'sendrecv' }])))).toBe('invalid_sdp');
    expect(codeOf(judgeAnswer(sdp([{ direction: null }])))).toBe('invalid_sdp');
    expect(codeOf(judgeAnswer(sdp([{ direction: null }], { session: ['a=recvonly'] })))).toBe('ok');
  });
});
