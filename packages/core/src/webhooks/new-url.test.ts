import { describe, expect, test } from '@jest/globals';
import { createAddressFilter } from './destination.js';
import { checkNewUrl } from './new-url.js';

const check = (text: string) => checkNewUrl(text, { allowHttp: true, isAllowed: createAddressFilter([]) });
const reasonOf = (text: string) => {
  const checked = check(text);
  return checked.ok ? null : checked.reason;
};

describe('the URL of a new endpoint', () => {
  test.each([
    'https://example.com',
    'https://Example.com:8443/hook?a=b&c=%20d',
    'HTTPS://example.com/',
    'http://example.com:8080/a//b',
    'https://example.com?x=https://other.example/@y',
    'https://münchen.example/ü?ö',
    'https://xn--mnchen-3ya.example/',
    'https://hook_receiver:8443/',
    'https://localhost/',
    'https://a.b-c.d9/',
    'https://8.8.8.8:443/',
    'https://[2606:4700:4700::1111]:8443/x',
    'https://[2606:4700:4700:0:0:0:0:1111]/',
    `https://${'a'.repeat(63)}.example/`,
    `https://${'a.'.repeat(126)}b/`,
  ])('accepts %s', (text) => expect([text, reasonOf(text)]).toEqual([text, null]));

  test.each([
    ...[' https://example.com', 'https://example.com ', 'https://example.com/a b', 'https://exa mple.com/'],
    ...['https://example.com/\n', 'https://exam\nple.com/', 'ht\ttps://example.com/', 'https://example.com/a\r\nb'],
    ...[
      'https://exam\u00adple.com/',
      'https://example.com/\u200b',
      '\ufeffhttps://example.com/',
      'https://example.com/\u0007',
    ],
  ])('rejects the invisible characters of %j', (text) => expect(reasonOf(text)).toMatch(/white space|absolute URL/));

  test.each([
    ['https:\\\\example.com', /backslash/],
    ['https://example.com\\path', /backslash/],
    ['https://example.com/?q=\\', /backslash/],
    ['https:example.com', /two slashes/],
    ['https:/example.com', /two slashes/],
    ['https:///example.com', /two slashes/],
    ['https://@example.com', /user name/],
    ['https://:@example.com', /user name/],
    ['https://user@example.com', /user name/],
    ['https://user:secret@example.com', /user name/],
    ['https://example.com/#', /fragment/],
    ['https://example.com/#part', /fragment/],
    ['https://example.com:/', /port/],
    ['https://example.com:0443/', /port/],
    ['https://example.com:0/', /port/],
    ['https://a..example/', /labels/],
    ['https://.example.com/', /labels/],
    ['https://example.com./', /a dot at its end/],
    ['https://-a.example/', /labels/],
    ['https://a-.example/', /labels/],
    ['https://a!b.example/', /labels/],
    [`https://${'a'.repeat(64)}.example/`, /labels/],
    [`https://${'a.'.repeat(127)}b/`, /253/],
    ['https://1.2.3/', /its host as 1.2.0.3/],
    ['https://134744072/', /its host as 8.8.8.8/],
    ['https://8.8.010.8/', /its host as 8.8.8.8/],
    ['https://８.8.8.8/', /its host as 8.8.8.8/],
    ['https://ex%61mple.com/', /its host as example.com/],
    ['https://example.123/', /absolute URL/],
    ['https://example.com:65536/', /absolute URL/],
    ['https://10.0.0.1/', /not public/],
    ['ftp://example.com', /must begin with/],
    ['example.com', /absolute URL/],
    [`https://example.com/${'x'.repeat(2048)}`, /at most 2048/],
  ])('rejects %s with a reason that matches %s', (text, reason) =>
    expect([text, reasonOf(text)]).toEqual([text, expect.stringMatching(reason)]),
  );
});
