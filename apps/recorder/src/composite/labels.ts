import { HEIGHT, WIDTH } from './layouts.js';
import type { Tile } from './scenes.js';

/** Advanced SubStation Alpha: libass shapes all scripts, and takes glyphs from other fonts where one lacks them. */
const HEAD = `[Script Info]
ScriptType: v4.00+
PlayResX: ${WIDTH}
PlayResY: ${HEIGHT}
WrapStyle: 2

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, OutlineColour, BackColour, BorderStyle, Outline, Shadow, Alignment
Style: Picture, sans-serif, 24, &H00FFFFFF, &H90000000, &H90000000, 3, 5, 0, 1
Style: None, sans-serif, 34, &H00FFFFFF, &HFF000000, &HFF000000, 1, 0, 0, 5

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
`;
const MARGIN = 14;
const SMALL_TILE_WIDTH = 400;
/** Mean widths of letters, as shares of the font's size. */
const WIDE = 0.85;
const NARROW = 0.45;
const isWide = /\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Extended_Pictographic}/u;
const letters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** The names of tiles: in the corner of a picture, or in the middle of a tile without one. */
export function labelsOf(tiles: readonly Tile[]): string {
  return HEAD + tiles.map((tile) => `Dialogue: 0,0:00:00.00,9:00:00.00,${lineOf(tile)}\n`).join('');
}

function lineOf({ x, y, width, height, name, fileId }: Tile): string {
  const isSmall = width < SMALL_TILE_WIDTH;
  const [style, size, left, top] =
    fileId === null
      ? ['None', isSmall ? 24 : 34, x + width / 2, y + height / 2]
      : ['Picture', isSmall ? 18 : 24, x + MARGIN, y + height - MARGIN];
  const clip = `\\clip(${x},${y},${x + width},${y + height})`;
  const text = shortened(name.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ').trim(), (width - 2 * MARGIN) / size);
  // Without the word joiner, a backslash begins an override.
  const literal = text.replaceAll('\\', '\\\u2060').replaceAll('{', '\\{');
  return `${style},,0,0,0,,{\\fs${size}\\pos(${left},${top})${clip}}${literal}`;
}

/** @param width in sizes of the font */
function shortened(name: string, width: number): string {
  let used = 0;
  let text = '';
  for (const { segment } of letters.segment(name)) {
    used += isWide.test(segment) ? WIDE : NARROW;
    if (used > width - NARROW) return `${text.trimEnd()}…`;
    text += segment;
  }
  return text;
}
