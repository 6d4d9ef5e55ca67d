import { describe, expect, test } from '@jest/globals';
import { endpointHeaderFailures, ENDPOINT_HEADERS_MAX } from './endpoint-headers.js';
import { SIGNATURE_CONTRACT, standardWebhooksHeaders, requestHeaders } from './request.js';

const failuresOf = (headers: unknown) => endpointHeaderFailures('body.headers', headers).map(({ message }) => message);

describe('headers of an endpoint', () => {
  test('are accepted with the names and values that RFC 9110 allows', () => {
    const longest = { ['n'.repeat(64)]: 'v'.repeat(2048) };
    for (const headers of [{}, { Authorization: 'Bearer a.b-c_d=' }, { "x-!#$%&'*+.^_`|~": 'a \t b' }, longest]) {
      expect(failuresOf(headers)).toEqual([]);
    }
    const most = Object.fromEntries(Array.from({ length: ENDPOINT_HEADERS_MAX }, (_, n) => [`x-${n}`, 'v']));
    expect(failuresOf(most)).toEqual([]);
    expect(failuresOf({ ...most, more: 'v' })).toEqual(['must have at most 16 headers, not 17']);
  });

  test.each(['', 'a b', 'a:b', 'é', 'a\r\n', '(a)', 'n'.repeat(65)])('are refused with the name %j', (name) => {
    expect(failuresOf({ [name]: 'v' })).toEqual([expect.stringContaining('RFC 9110')]);
  });

  test.each(['', ' v', 'v ', 'v\r\nx: y', 'é', '\u0000', 'v'.repeat(2049), '***', 7, null])(
    'are refused with the value %j',
    (value) => expect(failuresOf({ authorization: value })).toHaveLength(1),
  );

  test('are refused with names of the service, the connection and the framing, in any case', () => {
    const secret = 'whsec_YQ==';
    const own = requestHeaders({
      deliveryId: '',
      replayCount: 0,
      secretVersion: 1,
      signature: '',
      standardWebhooks: standardWebhooksHeaders({ secret, timestampUnixSeconds: 1, eventId: '', body: '' }),
      traceparent: '',
    });
    const names = [...Object.keys(own), 'Host', 'Content-Length', 'TRANSFER-ENCODING', 'connection', 'te', 'upgrade'];
    expect(names).toContain(SIGNATURE_CONTRACT.signatureHeader);
    for (const name of [...names, 'x-service-later', 'proxy-authorization']) {
      expect([name, ...failuresOf({ [name]: 'v' })]).toEqual([name, expect.stringContaining('set by the service')]);
    }
  });

  test('are refused if two have the same name', () => {
    expect(endpointHeaderFailures('body.headers', { 'x-a': 'v', 'X-A': 'v' })).toEqual([
      { path: 'body.headers.X-A', message: 'has the same name as another header' },
    ]);
  });
});
