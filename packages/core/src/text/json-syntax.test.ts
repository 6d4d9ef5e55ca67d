import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { syntaxProblem } from './json-syntax.js';

describe('the problem of a text that is not JSON', () => {
  test.each([
    ['', 'it ends too early, at line 1, column 1'],
    ['{"name":', 'it ends too early, at line 1, column 9'],
    ['{"name": "x', 'it ends too early, at line 1, column 12'],
    ['{"a":1,}', 'unexpected "}" at line 1, column 8'],
    ['[1,]', 'unexpected "]" at line 1, column 4'],
    ['[1}', 'unexpected "}" at line 1, column 3'],
    ["{'a':1}", `unexpected "'" at line 1, column 2`],
    ['{a:1}', 'unexpected "a" at line 1, column 2'],
    ['{"a" 1}', 'unexpected "1" at line 1, column 6'],
    ['{"a":01}', 'unexpected "1" at line 1, column 7'],
    ['{"a":1}x', 'unexpected "x" at line 1, column 8'],
    ['{"a":"\\x"}', 'unexpected "\\\\" at line 1, column 7'],
    ['undefined', 'unexpected "u" at line 1, column 1'],
    ['{\n  "a": 1,\r\n  "b": 2;\n}', 'unexpected ";" at line 3, column 9'],
    ['{"a":"x\ny"}', 'unexpected "\\n" at line 1, column 8'],
    ['{"a":\u009b}', 'unexpected "\\u009b" at line 1, column 6'],
    ['[😀]', 'unexpected "😀" at line 1, column 2'],
    ['[\ud800]', 'unexpected "\\ud800" at line 1, column 2'],
    ['['.repeat(130_000), 'it ends too early, at line 1, column 130001'],
    [`"${'x'.repeat(130_000)}`, 'it ends too early, at line 1, column 130002'],
  ])('of %j is: %s', (text, problem) => {
    expect(syntaxProblem(text)).toBe(problem);
  });

  test('is where V8 finds it, if V8 says where', () => {
    const broken = fc
      .tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.constantFrom('', ',', '"', '}', ']', ':', '1', 'x', '{', '['))
      .map(([json, at, put]) => json.slice(0, at % (json.length + 1)) + put + json.slice((at % (json.length + 1)) + 1));
    let compared = 0;
    fc.assert(
      fc.property(broken, (text) => {
        const position = positionOfV8(text);
        if (position === undefined) return;
        compared += 1;
        expect([text, syntaxProblem(text)]).toEqual([text, expect.stringMatching(`column ${position + 1}$`)]);
      }),
      { numRuns: 2000 },
    );
    expect(compared).toBeGreaterThan(100);
  });
});

/**
 * Where V8 finds the error; inside of a word, the start of the word. Leaves out errors inside of numbers and escapes, in
 * which V8 points further in.
 */
function positionOfV8(text: string): number | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    if (/number|minus|fraction|exponent|escape/i.test(message)) return undefined;
    const position = Number(/in JSON at position (\d+)/.exec(message)?.[1] ?? NaN);
    if (message.startsWith('Unterminated string')) return position;
    const [word = ''] = /(?!(?:true|false|null)$)(?<![a-z])[a-z]*$/.exec(text.slice(0, position)) ?? [];
    return Number.isNaN(position) ? undefined : position - word.length;
  }
}
