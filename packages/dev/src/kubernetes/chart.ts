import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../bootstrap.js';

export const CHART = join(root, 'infra', 'helm', 'callplane');
export const RENDERED = join(root, 'infra', 'kubernetes');
export const SCHEMAS = join(RENDERED, 'schemas.json');

/** Files of infra/coturn that the chart contains as well, because Helm reads no file outside of a chart. */
export const COTURN_FILES = ['turnserver.conf', 'start.sh'];

/** Changes with every file of the chart. */
export function chartDigest(): string {
  const hash = createHash('sha256');
  const files = readdirSync(CHART, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const path of files.map(({ parentPath, name }) => join(parentPath, name)).sort()) {
    hash.update(`${path.slice(CHART.length)}\0${readFileSync(path, 'utf8')}\0`);
  }
  return hash.digest('hex');
}

/** The first lines of a rendered file. */
export function headOf(digest: string): string {
  return (
    '# Written by "node scripts/dev.mjs kubernetes" from infra/helm/callplane with its default values. Do not edit.\n' +
    `# SHA-256 of the chart: ${digest}\n`
  );
}
