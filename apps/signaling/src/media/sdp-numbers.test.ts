import { describe, expect, test } from '@jest/globals';
import { PERMISSIONS } from '@callplane/core';
import { RequestFailure } from '../clients/client.js';
import { checkAnswer, checkCandidate, checkOffer } from './sdp-gate.js';
import { descriptionWith, lineWith, SDP_NUMBERS, SDP_TRACKS } from './sdp-numbers.testkit.js';

/** @returns the written text; null if it is refused */
function written(check: () => string): string | null {
  try {
    return check();
  } catch (error) {
    if (error instanceof RequestFailure && error.code === 'invalid_sdp') return null;
    throw error;
  }
}
const offered = (sdp: string) => written(() => checkOffer(sdp, SDP_TRACKS, PERMISSIONS).sdp);
const answered = (sdp: string) => written(() => checkAnswer(sdp.replaceAll('a=sendonly', 'a=recvonly')).sdp);

/** Texts that some parser takes for a number, but that are not decimal numbers. */
const OTHER_NOTATIONS = ['-1', '+1', '1e5', '1.5', '0x10', 'NaN', 'Infinity', '-Infinity', '1e+21', '', '٣'];
/** Numbers that a double, or an integer of 64 bits, does not hold. */
const HUGE = [2n ** 64n, 10n ** 21n, 10n ** 30n].map(String);

describe('the SDP gate for numbers', () => {
  test('passes the usual ones unchanged', () => {
    const lines = offered(descriptionWith(new Map()))?.split('\r\n').toSorted();
    expect(lines).toEqual(descriptionWith(new Map()).split('\r\n').toSorted());
  });

  test.each(SDP_NUMBERS.map((number, index) => ({ ...number, index })))(
    'takes it from $min to $max and refuses it beyond: $line',
    ({ index, min, max, usual, isHex }) => {
      const gates: [string, (sdp: string) => string | null][] = [
        ['offer', offered],
        ['answer', answered],
      ];
      for (const [name, gate] of gates) {
        const pass = (value: string) => gate(descriptionWith(new Map([[index, value]])));
        for (const value of [min, max].map(String).filter((one) => one !== usual)) {
          expect([name, pass(value)]).toEqual([name, expect.stringContaining(lineWith(index, value))]);
        }
        for (const value of [max + 1n, ...(min > 0n ? [min - 1n] : [])].map(String)) {
          expect([name, value, pass(value)]).toEqual([name, value, null]);
        }
        // A line that does not even look right may be left out instead.
        for (const value of [...HUGE, ...(isHex ? ['-1', '+1'] : [...OTHER_NOTATIONS, `0${usual}`])]) {
          expect(pass(value)?.split('\r\n') ?? []).not.toContain(lineWith(index, value));
        }
      }
    },
  );

  test('passes descriptions of browsers', () => {
    const parameters = ['a=fmtp:111 0-15', 'a=fmtp:111 111/111', 'a=fmtp:111 profile-level-id=42e01f;sprop=000000'];
    for (const line of [...parameters, 'a=rtcp-fb:* nack', 'a=rtcp-fb:* trr-int 5']) {
      const sdp = descriptionWith(new Map()).replace('a=mid:0', `a=mid:0\r\n${line}`);
      expect(offered(sdp)).toContain(`${line}\r\n`);
    }
  });

  test('refuses a section without payload types', () => {
    expect(offered(descriptionWith(new Map()).replace('SAVPF 111 63', 'SAVPF'))).toBeNull();
  });
});

describe('the SDP gate for candidates', () => {
  const candidate = (change: [from: string, to: string] = ['', '']) =>
    'candidate:1 1 udp 2122260223 192.0.2.1 5000 typ srflx raddr 0.0.0.0 rport 9 generation 0'.replace(...change);

  test('passes a valid one, with or without its prefix, and the empty one that marks the end', () => {
    expect(checkCandidate(candidate())).toBe(candidate());
    expect(checkCandidate(`${candidate()} ufrag abcd unknown 1`)).toBe(candidate());
    expect(checkCandidate('')).toBe('');
  });

  test.each<[string, string]>([
    ['a component above 256', candidate([' 1 udp', ' 257 udp'])],
    ['a priority of 2^32 - 1', candidate(['2122260223', '4294967295'])],
    ['a port above 65535', candidate(['5000', '65536'])],
    ['a related port above 65535', candidate(['rport 9', 'rport 99999999999999999999999'])],
    ['a second line', `${candidate()}\r\na=${candidate()}`],
    ['another attribute', 'sendonly'],
    ['another attribute in a second line', `${candidate()}\r\na=sendonly`],
    ['other characters', candidate(['srflx', 'srflx\u2028'])],
    ['an incomplete one', 'candidate:1 1 udp'],
  ])('refuses %s', (_, line) => {
    expect(written(() => checkCandidate(line))).toBeNull();
  });
});
