import { join } from 'node:path';
import { freePort, isPortFree } from '@callplane/local-servers';
import { readJson } from '../bootstrap.js';
import { writeJson } from '../local-data.js';

export interface PortBook {
  portOf(name: string, host?: string): Promise<number>;
}

/** The ports of this DATA_DIR's servers. They stay the same at every start, unless another program has taken one. */
export function portBook(dataDir: string): PortBook {
  const file = join(dataDir, 'ports.json');
  const kept = (readJson(file) ?? {}) as Record<string, number>;
  return {
    async portOf(name: string, host = '127.0.0.1') {
      const known = kept[name];
      if (known !== undefined && (await isPortFree(known, host))) return known;
      const port = await freePort(host);
      kept[name] = port;
      writeJson(file, kept);
      return port;
    },
  };
}
