import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Writes `SHA256SUMS`, which `sha256sum --check` reads, over all files of the folder. */
export async function writeChecksums(folder: string): Promise<{ name: string; bytes: number }[]> {
  const names = readdirSync(folder).sort();
  const lines: string[] = [];
  for (const name of names) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(join(folder, name)), hash);
    lines.push(`${hash.digest('hex')}  ${name}\n`);
  }
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
  return [...names, 'SHA256SUMS'].map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
}
