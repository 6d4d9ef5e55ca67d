import type { MediaDescription, SessionDescription } from 'sdp-transform';

type Range = readonly [min: number, max: number | bigint];

const INT32_MAX = 2 ** 31 - 1;
const UINT32_MAX = 2 ** 32 - 1;
/** Numbers to which their RFC gives no bound. Every parser's integers hold this range. */
const ANY: Range = [0, INT32_MAX];
const PAYLOAD: Range = [0, 127];
const PORT: Range = [0, 65_535];
const SSRC: Range = [0, UINT32_MAX];
/** sdp-transform writes larger numbers in another notation, or rounded. */
const LONG: Range = [0, Number.MAX_SAFE_INTEGER];
const IP_VERSION: Range = [4, 6];

/** The range of each number, by sdp-transform's names. Some fields hold several numbers, separated by spaces. */
const RANGES: Readonly<Record<string, Range | Readonly<Record<string, Range>>>> = {
  version: [0, 0],
  // RFC 3264, section 5: the session id has 64 bits with a sign.
  origin: { sessionId: [0, 2n ** 63n - 1n], sessionVersion: LONG, ipVer: IP_VERSION },
  timing: { start: LONG, stop: LONG },
  connection: { version: IP_VERSION },
  bandwidth: { limit: ANY },
  port: PORT,
  payloads: PAYLOAD,
  rtp: { payload: PAYLOAD, rate: [1, INT32_MAX], encoding: [1, 255] },
  fmtp: { payload: PAYLOAD },
  rtcp: { port: PORT, ipVer: IP_VERSION },
  rtcpFb: { payload: PAYLOAD },
  rtcpFbTrrInt: { payload: PAYLOAD, value: ANY },
  // RFC 8285, section 5: up to 14 in headers of one byte, up to 255 in headers of two.
  ext: { value: [1, 255] },
  // RFC 8445, section 5.1.
  candidates: {
    component: [1, 256],
    priority: [1, INT32_MAX],
    port: PORT,
    rport: PORT,
    generation: ANY,
    'network-id': ANY,
    'network-cost': ANY,
  },
  ssrcs: { id: SSRC },
  ssrcGroups: { ssrcs: SSRC },
  ptime: [1, INT32_MAX],
  maxptime: [1, INT32_MAX],
};

/** Fields with parameters such as `apt=96` and `max-width=1280`. */
const PARAMETERS: Readonly<Record<string, string>> = { fmtp: 'config', rids: 'params' };
/** Parameters that name payload types: RFC 4588, section 8.6, and RFC 8851, section 5. */
const PAYLOAD_PARAMETERS = ['apt', 'pt'];
/** RFC 8852, section 3: the id of a layer has at most 16 bytes in a header extension of one byte. */
const RID_PATTERN = /^\w{1,16}$/;

/**
 * @param part the session's part of a description, a media section, or both
 * @returns the fault of the first number that is out of its RFC's range or not written as a decimal number; null if
 *   there is none
 */
export function numberFault(part: Partial<SessionDescription & MediaDescription>): string | null {
  for (const [field, content] of Object.entries(part) as [string, unknown][]) {
    const ranges = RANGES[field];
    for (const item of Array.isArray(content) ? (content as unknown[]) : [content]) {
      const fault =
        rangesFault(field, item, ranges) ??
        parametersFault(field, item) ??
        (field === 'rids' ? ridFault((item as { id: unknown }).id) : null);
      if (fault !== null) return fault;
    }
  }
  return null;
}

function rangesFault(field: string, item: unknown, ranges: (typeof RANGES)[string] | undefined): string | null {
  if (ranges === undefined) return null;
  if (isRange(ranges)) return listFault(field, item, ranges);
  for (const [name, range] of Object.entries(ranges)) {
    const value = (item as Record<string, unknown>)[name];
    // An optional number that is absent, or feedback for all payload types.
    if (value === undefined || (value === '*' && name === 'payload' && field.startsWith('rtcpFb'))) continue;
    const fault = listFault(`${field}.${name}`, value, range);
    if (fault !== null) return fault;
  }
  return null;
}

function isRange(ranges: Range | Readonly<Record<string, Range>>): ranges is Range {
  return Array.isArray(ranges);
}

function listFault(name: string, value: unknown, [min, max]: Range): string | null {
  for (const text of String(value).split(' ')) {
    if (/^(?:0|[1-9]\d{0,18})$/.test(text) && BigInt(text) >= min && BigInt(text) <= max) continue;
    return `${name} must be a decimal number from ${min} to ${max}, not "${text}"`;
  }
  return null;
}

function parametersFault(field: string, item: unknown): string | null {
  const part = PARAMETERS[field];
  const text = part === undefined ? undefined : (item as Record<string, string | number | undefined>)[part];
  if (text === undefined) return null;
  for (const parameter of String(text).split(/[;\s]+/)) {
    const [name = '', value = name] = parameter.split('=', 2);
    const isPayload = PAYLOAD_PARAMETERS.includes(name);
    // `111/111` of RED, `0-15` of telephone events.
    for (const one of value.split(/[,/]|(?<=\d)-/)) {
      if (isPayload) {
        const fault = listFault(`${field}.${name}`, one, PAYLOAD);
        if (fault !== null) return fault;
        // Others may be hexadecimal, which allows leading zeros.
      } else if (/^[-+.\d]+$/.test(one) && !(/^\d{1,10}(?:\.\d{1,9})?$/.test(one) && Number(one) <= UINT32_MAX)) {
        return `${field} must have numbers from 0 to ${UINT32_MAX}, not "${one}"`;
      }
    }
  }
  return null;
}

function ridFault(id: unknown): string | null {
  return RID_PATTERN.test(String(id)) ? null : 'rids.id must have at most 16 characters';
}
