import { describe, expect, test } from '@jest/globals';
import { parseUrl } from './parse-url.js';

describe('parseUrl', () => {
  test('returns null for a text that is no absolute URL', () => {
    for (const text of ['', 'example.com', '/path', 'https://', 'https://[::1']) expect(parseUrl(text)).toBeNull();
  });

  test('parses a URL with characters outside ASCII however often it was called', () => {
    const hrefs = new Set<string | undefined>();
    for (let n = 0; n < 100_000; n++) {
      parseUrl('https://example.com/');
      hrefs.add(parseUrl('https://münchen.example/ü')?.href);
    }
    expect([...hrefs]).toEqual(['https://xn--mnchen-3ya.example/%C3%BC']);
  });
});
