import { join } from 'node:path';
import { readJson, writeJson } from '../lib/files.mjs';

/**
 * Ports of this DATA_DIR's servers: the same ones at every start, as long as nothing else has taken them.
 * @param {string} dataDir
 * @param {Pick<typeof import('@callplane/local-servers'), 'freePort' | 'isPortFree'>} tools
 */
export function portBook(dataDir, { freePort, isPortFree }) {
  const file = join(dataDir, 'ports.json');
  /** @type {Record<string, number>} */
  const kept = readJson(file) ?? {};
  return {
    /**
     * @param {string} name
     * @param {string} [host]
     */
    async portOf(name, host = '127.0.0.1') {
      const known = kept[name];
      if (known !== undefined && (await isPortFree(known, host))) return known;
      const port = await freePort(host);
      kept[name] = port;
      writeJson(file, kept);
      return port;
    },
  };
}
