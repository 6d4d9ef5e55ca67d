import { createHash } from 'node:crypto';
import { run, toolsEnvironment } from '../bootstrap.js';

/** Options of pnpm for the packages in the images (infra/Dockerfile). The image of the API has the console's bundle. */
export const IN_IMAGES = [
  ...['api', 'signaling', 'cleanup-worker', 'webhook-worker', 'cli', 'console'].flatMap((app) => [
    '--filter',
    `@callplane/${app}...`,
  ]),
  '--prod',
];

/** The part of CycloneDX that differs between two runs of pnpm. */
interface Bom {
  serialNumber: string;
  metadata: { timestamp?: string; component: { version: string } };
  components: { 'bom-ref': string }[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

/**
 * The bill of materials of the images as pnpm writes it, in CycloneDX's JSON: every package of their production trees
 * with its licence, its hash from the lockfile, and its dependencies. The same commit gives the same bytes.
 */
export async function billOfMaterials({ version, commit }: { version: string; commit: string }): Promise<string> {
  const format = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-spec-version', '1.6', '--sbom-type', 'application'];
  const bom = JSON.parse(await run('pnpm', [...IN_IMAGES, ...format], { env: toolsEnvironment() })) as Bom;
  delete bom.metadata.timestamp;
  bom.metadata.component.version = version;
  bom.serialNumber = serial(commit);
  bom.components.sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  bom.dependencies.sort((a, b) => (a.ref < b.ref ? -1 : 1));
  for (const { dependsOn } of bom.dependencies) dependsOn?.sort();
  return `${JSON.stringify(bom, null, 2)}\n`;
}

/** A UUID (version 8) from the commit. */
function serial(commit: string): string {
  const bytes = createHash('sha256').update(commit).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return `urn:uuid:${parts.join('-')}`;
}
