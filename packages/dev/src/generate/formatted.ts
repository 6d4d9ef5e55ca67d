import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, type FormatConfig } from 'oxfmt';
import { root } from '../bootstrap.js';

/**
 * The text in the layout of this repository (`.oxfmtrc.json`).
 * @param path the target file, whose name selects the language
 * @throws Error if the text cannot be parsed
 */
export async function formatted(path: string, text: string): Promise<string> {
  const config = JSON.parse(readFileSync(join(root, '.oxfmtrc.json'), 'utf8')) as FormatConfig;
  const { code, errors } = await format(path, text, config);
  if (errors[0] !== undefined) throw new Error(`${path} cannot be formatted: ${errors[0].message}`);
  return code;
}
