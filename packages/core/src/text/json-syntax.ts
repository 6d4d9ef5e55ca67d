import { escapeSteering } from './text.js';

const SPACE = /[ \t\n\r]*/y;
const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** JSON forbids the control characters up to U+001F alone. */
const STRING_START = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*/uy;

/** The tokens that the grammar allows next. After a bracket opens, it may close at once. */
type Expected = 'value' | 'value_or_end' | 'key' | 'key_or_end' | 'colon' | 'comma_or_end' | 'nothing';

/**
 * Says where a text that `JSON.parse` refuses stops being JSON, such as `unexpected "}" at line 3, column 1`. V8 gives no
 * position for many of its errors. Reads each character once, without recursion.
 */
export function syntaxProblem(text: string): string {
  const at = new SyntaxScan(text).run();
  const before = text.slice(0, at).split(/\r\n|[\n\r]/);
  const place = `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
  const [character] = text.slice(at, at + 2);
  return character === undefined
    ? `it ends too early, at ${place}`
    : `unexpected ${escapeSteering(JSON.stringify(character))} at ${place}`;
}

class SyntaxScan {
  readonly #closings: string[] = [];
  #expected: Expected = 'value';
  #index = 0;

  constructor(private readonly text: string) {}

  /** The index of the first character that is wrong, or the length of the text if its end is missing. */
  run(): number {
    this.#take(SPACE);
    while (this.#index < this.text.length && this.#token(this.text.charAt(this.#index))) this.#take(SPACE);
    return this.#index;
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#index;
    if (!pattern.test(this.text)) return false;
    this.#index = pattern.lastIndex;
    return true;
  }

  /** @returns whether the grammar allows the token; if not, the index stays at the wrong character */
  #token(character: string): boolean {
    const isValue = this.#expected === 'value' || this.#expected === 'value_or_end';
    switch (character) {
      case '{':
      case '[':
        if (!isValue) return false;
        this.#closings.push(character === '{' ? '}' : ']');
        return this.#step(character === '{' ? 'key_or_end' : 'value_or_end');
      case '}':
      case ']':
        if (!this.#expected.endsWith('_or_end') || this.#closings.at(-1) !== character) return false;
        this.#closings.pop();
        return this.#step(this.#afterValue());
      case ',':
        return this.#expected === 'comma_or_end' && this.#step(this.#closings.at(-1) === '}' ? 'key' : 'value');
      case ':':
        return this.#expected === 'colon' && this.#step('value');
      case '"': {
        const isKey = this.#expected === 'key' || this.#expected === 'key_or_end';
        if (!isKey && !isValue) return false;
        this.#take(STRING_START);
        return this.text.charAt(this.#index) === '"' && this.#step(isKey ? 'colon' : this.#afterValue());
      }
      default:
        if (!isValue || !this.#take(WORD)) return false;
        this.#expected = this.#afterValue();
        return true;
    }
  }

  #step(expected: Expected): true {
    this.#index += 1;
    this.#expected = expected;
    return true;
  }

  #afterValue(): Expected {
    return this.#closings.length === 0 ? 'nothing' : 'comma_or_end';
  }
}
